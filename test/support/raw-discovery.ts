// Discovery streams to the ADS server that send arbitrary bytes.
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { rateLimitConfigTypeUrl } from '../../shared/wire/discovery.ts';
import { discoveryProtos } from './ads-fixture.ts';
import { eventually } from './eventually.ts';
import type { Owner } from './owner.ts';

const sotw = discoveryProtos.aggregated.StreamAggregatedResources;
const node = { id: 'worker-1' };

export interface RawStream {
  readonly session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
  /** The gRPC status and text, wherever the server puts them. */
  status(): Promise<string>;
}

/** A stream on its own connection, closed when its owner ends, that sends the given bytes unchanged. */
export async function openRaw(
  t: Owner,
  { port }: { readonly port: number },
  headers: Readonly<Record<string, string>> = {},
): Promise<RawStream> {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on('error', () => {});
  t.teardown(() => session.destroy());
  await once(session, 'remoteSettings');
  return { session, ...openOn(session, headers) };
}

export function openOn(
  session: ClientHttp2Session,
  headers: Readonly<Record<string, string>> = {},
) {
  const stream = session.request({
    ':method': 'POST',
    ':path': sotw.path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  let status: string | undefined;
  const read = (given: Record<string, unknown>): void => {
    if (given['grpc-status'] === undefined) return;
    status = `${given['grpc-status']} ${decodeURIComponent(String(given['grpc-message'] ?? ''))}`;
  };
  stream.on('error', () => {});
  stream.on('response', read);
  stream.on('trailers', read);
  stream.resume();
  return {
    stream,
    async status() {
      await eventually('a gRPC status', () => status !== undefined);
      return status ?? '';
    },
  };
}

export function frame(message: Buffer, compressed = 0): Buffer {
  const prefix = Buffer.from([compressed, 0, 0, 0, 0]);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

export function request(more: object = {}): Buffer {
  return frame(sotw.requestSerialize({ node, typeUrl: rateLimitConfigTypeUrl, ...more }));
}
