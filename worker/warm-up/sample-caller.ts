// Callers of the worker's own ports.
import { once } from 'node:events';
import { type RequestOptions, request } from 'node:http';
import { connect, type OutgoingHttpHeaders } from 'node:http2';
import { request as requestTls } from 'node:https';

export interface SampleTarget {
  readonly host: string;
  readonly port: number;
  /** The port's certificate in PEM; undefined without TLS. */
  readonly certificate: Buffer | undefined;
  /** Ends the connections when it aborts. */
  readonly signal: AbortSignal;
}

export interface SampleCaller {
  /** Sends one request; resolves with the answer. Rejects when the connection ends. One call at a time. */
  call(message: Buffer): Promise<void>;
  /** Resolves when the connection is closed. */
  close(): Promise<void>;
}

const headers: OutgoingHttpHeaders = {
  ':method': 'POST',
  ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  te: 'trailers',
  'content-type': 'application/grpc',
  'x-envoy-internal': 'true',
  'user-agent': 'envoy',
};
const prefixBytes = 5;

/** Resolves when the caller is connected. */
export async function createSampleCaller(target: SampleTarget): Promise<SampleCaller> {
  const { host, port, certificate, signal } = target;
  signal.throwIfAborted();
  // Trusts only this CA, since loading those of Node takes time.
  const session =
    certificate === undefined
      ? connect(`http://${host}:${port}`)
      : connect(`https://${host}:${port}`, { ca: certificate, rejectUnauthorized: false });
  // May also occur when the connection is no longer awaited.
  session.on('error', () => {});
  const destroy = () => session.destroy();
  signal.addEventListener('abort', destroy, { once: true });
  session.once('close', () => signal.removeEventListener('abort', destroy));
  await once(session, 'connect', { signal });
  let calls = 0;

  return {
    async call(message) {
      const data = Buffer.alloc(prefixBytes + message.length);
      data.writeUInt32BE(message.length, 1);
      data.set(message, prefixBytes);
      calls += 1;
      // Callers with and without tracing.
      const traced = { 'grpc-timeout': '2S', 'x-request-id': `5f0c2a-${calls}-b7e9` };
      const stream = session.request(calls % 2 === 0 ? { ...headers, ...traced } : headers);
      stream.end(data);
      stream.resume();
      await once(stream, 'close');
    },
    async close() {
      const closed = once(session, 'close');
      session.close();
      await closed;
    },
  };
}

/** Resolves at the end of the answer, whatever the answer is. */
export async function postSample(
  { host, port, certificate, signal }: SampleTarget,
  path: string,
  body: string,
): Promise<void> {
  const options: RequestOptions = { host, port, path, method: 'POST', agent: false, signal };
  const posted =
    certificate === undefined
      ? request(options)
      : requestTls({ ...options, ca: certificate, rejectUnauthorized: false });
  // May also occur after the answer has begun, when the request is no longer awaited.
  posted.on('error', () => {});
  posted.end(body);
  const [response] = await once(posted, 'response');
  response.resume();
  await once(response, 'close');
}
