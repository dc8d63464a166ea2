// The gRPC status codes that the server answers with, and how a status travels in trailers.

export const grpcStatus = {
  ok: 0,
  invalidArgument: 3,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;
export type GrpcStatus = (typeof grpcStatus)[keyof typeof grpcStatus];

const maxTextLength = 1024;

export function toTrailers(status: GrpcStatus, text: string): Record<string, string> {
  const trailers: Record<string, string> = { 'grpc-status': String(status) };
  if (text !== '') trailers['grpc-message'] = percentEncode(text.slice(0, maxTextLength));
  return trailers;
}

/** Printable ASCII as it is, the rest percent-encoded (gRPC over HTTP/2, Status-Message). */
function percentEncode(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^ -$&-~]/gu, (character) =>
      [...Buffer.from(character)]
        .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
        .join(''),
    );
}
