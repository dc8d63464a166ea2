// A steady stream of HTTP requests, with what became of each, for tests that end a server which they
// depend on.
import { Agent, request } from 'node:http';

export interface LoadAnswer {
  /** 0: there was none. */
  readonly status: number;
  /** On performance.now(). */
  readonly askedMs: number;
  readonly answeredMs: number;
}

export interface LoadRequest {
  readonly port: number;
  /** Default: `/`. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Makes it a POST. */
  readonly body?: string;
}

export interface HttpLoad {
  /** In the order of the answers. */
  readonly answers: readonly LoadAnswer[];
  /** Asked and not answered. */
  readonly open: number;
  /** Ends the stream; resolves when every request is answered. */
  stop(): Promise<void>;
}

/** So many requests a second; those that a busy machine held up are made up for. `keepAlive: false` opens a
 * connection for each. */
export function startHttpLoad(
  perSecond: number,
  next: (index: number) => LoadRequest,
  { keepAlive } = { keepAlive: true },
): HttpLoad {
  const answers: LoadAnswer[] = [];
  const open = new Set<Promise<void>>();
  // A request that waited for a connection would go to a server that was picked long before.
  const agent = new Agent({ keepAlive });
  const everyMs = 1000 / perSecond;
  const beganMs = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    while (sent * everyMs < nowMs - beganMs) send(nowMs);
  }, everyMs);

  function send(askedMs: number): void {
    const asked = readStatus(agent, next(sent++)).then((status) => {
      answers.push({ status, askedMs, answeredMs: performance.now() });
      open.delete(asked);
    });
    open.add(asked);
  }

  return {
    answers,
    get open() {
      return open.size;
    },
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
      agent.destroy();
    },
  };
}

function readStatus(agent: Agent, { port, path, headers, body }: LoadRequest): Promise<number> {
  const method = body === undefined ? 'GET' : 'POST';
  return new Promise((resolve) => {
    request({ host: '127.0.0.1', port, path, method, headers, agent }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
      response.once('error', () => resolve(0));
    })
      .once('error', () => resolve(0))
      .end(body);
  });
}
