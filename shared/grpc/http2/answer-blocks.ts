// The header blocks of answers; constant ones are prepared once. gRPC's rules for them are in "gRPC over
// HTTP/2", Responses.
import { type GrpcErrorStatus, toGrpcMessage } from '../status.ts';
import { encodeHeaderBlock } from './hpack/encoder.ts';
import { maxErrorTextLength } from './limits.ts';

const common = [
  [':status', '200'],
  ['content-type', 'application/grpc'],
] as const;

export const messageHeaders = encodeHeaderBlock(common);
/** The same, with a header that makes Envoy use other servers without waiting for its health check. */
export const farewellHeaders = encodeHeaderBlock([
  ...common,
  ['x-envoy-immediate-health-check-fail', 'true'],
]);
export const okTrailers = encodeHeaderBlock([['grpc-status', '0']]);

/** An answer without a message: headers and trailers in one block. */
export function toErrorBlock(status: number, text: string): Buffer {
  return encodeHeaderBlock([...common, ...toStatusFields(status, text)]);
}

/** The trailers of an answer whose headers were sent. */
export function toErrorTrailers(status: number, text: string): Buffer {
  return encodeHeaderBlock(toStatusFields(status, text));
}

/** For a message with an unsupported encoding; lists the supported ones. */
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
    ['grpc-message', toGrpcMessage(text.slice(0, maxErrorTextLength))],
  ] as const;
}
