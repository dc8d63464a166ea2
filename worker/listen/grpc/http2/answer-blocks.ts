// The header blocks of answers, prepared once where they are always the same. gRPC's rules for them
// are in "gRPC over HTTP/2", Responses.
import type { GrpcErrorStatus } from '../method.ts';
import { encodeHeaderBlock } from './hpack/encoder.ts';
import { maxErrorTextLength } from './limits.ts';

const common = [
  [':status', '200'],
  ['content-type', 'application/grpc'],
] as const;

export const messageHeaders = encodeHeaderBlock(common);
/** The same, and Envoy asks other servers from then on, without waiting for its health check. */
export const farewellHeaders = encodeHeaderBlock([
  ...common,
  ['x-envoy-immediate-health-check-fail', 'true'],
]);
export const okTrailers = encodeHeaderBlock([['grpc-status', '0']]);

/** An answer without a message: headers and trailers in one block. */
export function toErrorBlock(status: number, text: string): Buffer {
  return encodeHeaderBlock([...common, ...toStatusFields(status, text)]);
}

/** What ends an answer that has had its headers. */
export function toErrorTrailers(status: number, text: string): Buffer {
  return encodeHeaderBlock(toStatusFields(status, text));
}

/** For a message in a form that we do not read, with what we do. */
export function toUnknownEncodingBlock(status: GrpcErrorStatus, text: string): Buffer {
  return encodeHeaderBlock([
    ...common,
    ...toStatusFields(status, text),
    ['grpc-accept-encoding', 'identity,deflate,gzip'],
  ]);
}

/** For a request that is not gRPC at all. */
export function toHttpHeaders(status: number, bodyBytes: number): Buffer {
  return encodeHeaderBlock([
    [':status', String(status)],
    ['content-type', 'text/plain; charset=utf-8'],
    ['content-length', String(bodyBytes)],
  ]);
}

function toStatusFields(status: number, text: string) {
  return [
    ['grpc-status', String(status)],
    ['grpc-message', percentEncode(text.slice(0, maxErrorTextLength))],
  ] as const;
}

/** Everything but printable ASCII, and the percent sign; and a blank at either end, which no field may have
 * (RFC 9113 section 8.2.1). */
function percentEncode(text: string): string {
  let encoded = '';
  for (const byte of Buffer.from(text.toWellFormed())) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += isPlain
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded.replace(/^ | $/g, '%20');
}
