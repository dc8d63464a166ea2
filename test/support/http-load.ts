// A steady stream of HTTP requests, with what became of each, for tests that end a server which they
// depend on.
import { Agent, request } from 'node:http';

export interface LoadAnswer {
  /** 0: there was none. */
  readonly status: number;
  /** When the last of the request was given to the system, or it failed before; on performance.now(). */
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

/** What a busy machine held up is made up for, but never with more at once than servers and proxies take: what they
 * refuse above that would look like a loss. */
const maxOpen = 100;

/** So many requests a second. `keepAlive: false` opens a connection for each. */
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
    const elapsedMs = performance.now() - beganMs;
    while (sent * everyMs < elapsedMs && open.size < maxOpen) send();
  }, everyMs);

  function send(): void {
    const asked = ask(agent, next(sent++)).then((answer) => {
      answers.push(answer);
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

function ask(agent: Agent, { port, path, headers, body }: LoadRequest): Promise<LoadAnswer> {
  const method = body === undefined ? 'GET' : 'POST';
  return new Promise((resolve) => {
    let askedMs: number | undefined;
    const end = (status: number) => {
      const answeredMs = performance.now();
      resolve({ status, askedMs: askedMs ?? answeredMs, answeredMs });
    };
    request({ host: '127.0.0.1', port, path, method, headers, agent }, (response) => {
      response.resume();
      response.once('end', () => end(response.statusCode ?? 0));
      response.once('error', () => end(0));
    })
      .once('finish', () => {
        askedMs = performance.now();
      })
      .once('error', () => end(0))
      .end(body);
  });
}
