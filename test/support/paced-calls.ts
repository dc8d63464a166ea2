// Calls of workers at a fixed rate over one connection to each, each with its answer and how long it took, for
// tests that measure. What a client library would cost is left out: messages are encoded once.
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { loadProtos } from '../../shared/wire/protos.ts';

export interface PacedCall {
  /** When it was given to the system, or failed before; on performance.now(). */
  readonly askedMs: number;
  readonly answeredMs: number;
  readonly answer: 'OK' | 'OVER_LIMIT' | 'failed';
}

export interface PacedCalls {
  /** In the order of the answers. */
  readonly calls: readonly PacedCall[];
  /** Asked and not answered. */
  readonly open: number;
  /** Ends the stream; resolves when every call is answered. */
  stop(): Promise<void>;
}

const { requestSerialize, path } = loadProtos().rateLimitService.ShouldRateLimit;
const answers = { 1: 'OK', 2: 'OVER_LIMIT' } as const;
const tickMs = 1;
/** Where a busy machine answers more slowly than calls are due, no more than these wait: a backlog that grows
 * would look like a store or a worker that is away. */
export const maxOpen = 100;

/** `requests` take turns. `pick` gives the port of each call. */
export async function startPacedCalls(
  port: number,
  ratePerSecond: number,
  requests: readonly object[],
  pick = () => port,
): Promise<PacedCalls> {
  const sessions = new Map<number, ClientHttp2Session>();
  const connectTo = (to: number) => {
    const session = connect(`http://127.0.0.1:${to}`);
    session.on('error', () => {});
    sessions.set(to, session);
    return session;
  };
  await once(connectTo(port), 'connect');
  const frames = requests.map(toFrame);
  const everyMs = 1000 / ratePerSecond;
  const calls: PacedCall[] = [];
  const open = new Set<Promise<void>>();
  const startMs = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    for (; startMs + sent * everyMs <= now && open.size < maxOpen; sent++) {
      const to = pick();
      const asked = call(
        sessions.get(to) ?? connectTo(to),
        frames[sent % frames.length] ?? Buffer.of(),
      ).then((outcome) => {
        calls.push(outcome);
        open.delete(asked);
      });
      open.add(asked);
    }
  }, tickMs);
  return {
    calls,
    get open() {
      return open.size;
    },
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
      for (const session of sessions.values()) session.close();
    },
  };
}

function toFrame(request: object): Buffer {
  const message = requestSerialize(request);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The overall code is the first field of the message, and never 0. */
function call(session: ClientHttp2Session, frame: Buffer): Promise<PacedCall> {
  return new Promise((resolve) => {
    let answer: PacedCall['answer'] = 'failed';
    let askedMs: number | undefined;
    const end = () => {
      const answeredMs = performance.now();
      resolve({ askedMs: askedMs ?? answeredMs, answeredMs, answer });
    };
    // The server may have asked to leave it.
    if (session.closed) return end();
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('finish', () => {
      askedMs = performance.now();
    });
    stream.on('data', (chunk: Buffer) => {
      if (chunk[5] === 8) answer = answers[chunk[6] as 1 | 2] ?? 'failed';
    });
    stream.on('error', () => {});
    stream.on('close', end);
    stream.end(frame);
  });
}
