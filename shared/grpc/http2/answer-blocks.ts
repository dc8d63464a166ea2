// The header blocks of answers, prepared once where they are always the same. gRPC's rules for them
// are in "gRPC over HTTP/2", Responses.
import { type GrpcErrorStatus, toGrpcMessage } from '../status.ts';
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
    ['grpc-message', toGrpcMessage(text.slice(0, maxErrorTextLength))],
  ] as const;
}
