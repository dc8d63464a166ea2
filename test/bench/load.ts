// A closed-loop generator of ShouldRateLimit calls over plain HTTP/2: each answer is followed by the
// next request on the same stream slot.
import { type ClientHttp2Session, connect } from 'node:http2';

export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  /** Concurrent calls on each connection. */
  readonly streams: number;
  /** Framed gRPC messages, sent in turn. */
  readonly messages: readonly Buffer[];
}

export interface Load {
  /** Calls answered with status 0 since the start. */
  readonly answered: number;
  /** Calls that ended in any other way; the first one's reason. */
  readonly failed: number;
  readonly firstFailure: string | undefined;
  stop(): Promise<void>;
}

const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

export async function startLoad(options: LoadOptions): Promise<Load> {
  const counts = { answered: 0, failed: 0, firstFailure: undefined as string | undefined };
  let next = 0;
  let running = true;
  let inFlight = 0;
  let idle: (() => void) | undefined;

  const call = (session: ClientHttp2Session) => {
    if (!running) {
      if (inFlight === 0) idle?.();
      return;
    }
    inFlight++;
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    let status: string | undefined;
    const readStatus = (headers: { 'grpc-status'?: string | string[] }) => {
      if (headers['grpc-status'] !== undefined) status = String(headers['grpc-status']);
    };
    stream.on('response', readStatus);
    stream.on('trailers', readStatus);
    stream.on('error', (error) => {
      counts.firstFailure ??= error.message;
    });
    stream.on('close', () => {
      inFlight--;
      if (status === '0') counts.answered++;
      else {
        counts.failed++;
        counts.firstFailure ??= `grpc-status ${status}`;
      }
      if (!session.destroyed) call(session);
    });
    stream.resume();
    stream.end(options.messages[next++ % options.messages.length]);
  };

  const sessions: ClientHttp2Session[] = [];
  for (let index = 0; index < options.connections; index++) {
    const session = connect(`http://127.0.0.1:${options.port}`);
    await new Promise<void>((resolve, reject) => {
      session.once('connect', () => resolve());
      session.once('error', reject);
    });
    session.on('error', (error) => {
      counts.firstFailure ??= error.message;
    });
    sessions.push(session);
  }
  for (const session of sessions) {
    for (let stream = 0; stream < options.streams; stream++) call(session);
  }

  return {
    get answered() {
      return counts.answered;
    },
    get failed() {
      return counts.failed;
    },
    get firstFailure() {
      return counts.firstFailure;
    },
    async stop() {
      const drained = new Promise<void>((resolve) => {
        idle = resolve;
      });
      running = false;
      if (inFlight > 0) await drained;
      for (const session of sessions) session.destroy();
    },
  };
}
