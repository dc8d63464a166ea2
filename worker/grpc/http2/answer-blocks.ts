// The header blocks of answers; constant ones are encoded once. gRPC's rules for them are in "gRPC over HTTP/2",
// Responses.
import { toGrpcMessage } from '../../../shared/grpc/status.ts';
import { encodeHeaderBlock } from './hpack/encoder.ts';
import { maxErrorTextLength } from './limits.ts';

const common = [
  [':status', '200'],
  ['content-type', 'application/grpc'],
] as const;

export const messageHeaders = encodeHeaderBlock(common);
/** The common headers, and one that makes Envoy switch to other servers without waiting for its health check. */
export const farewellHeaders = encodeHeaderBlock([
  ...common,
  ['x-envoy-immediate-health-check-fail', 'true'],
]);
export const okTrailers = encodeHeaderBlock([['grpc-status', '0']]);

/** The headers of an answer to a message with an unsupported encoding. */
export const supportedEncodings = encodeHeaderBlock([
  ['grpc-accept-encoding', 'identity,deflate,gzip'],
]);

/** The trailers of an answer; an answer without a message has them in its header block. */
export function toErrorTrailers(status: number, text: string): Buffer {
  return encodeHeaderBlock([
    ['grpc-status', String(status)],
    ['grpc-message', toGrpcMessage(text.slice(0, maxErrorTextLength))],
  ]);
}

/** Headers that answer a request that is not gRPC at all. */
export function toHttpHeaders(status: number, bodyBytes: number): Buffer {
  return encodeHeaderBlock([
    [':status', String(status)],
    ['content-type', 'text/plain; charset=utf-8'],
    ['content-length', String(bodyBytes)],
  ]);
}
