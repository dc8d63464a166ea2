// The status at the end of a gRPC call: its codes, and how its message is encoded.

export const grpcStatus = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;
export type GrpcStatus = (typeof grpcStatus)[keyof typeof grpcStatus];
export type GrpcErrorStatus = Exclude<GrpcStatus, 0>;

/**
 * The value of `grpc-message`. Percent-encodes everything but printable ASCII, the percent sign (gRPC over HTTP/2,
 * Status-Message), and a blank at the start or the end, which no field may have there (RFC 9113 section 8.2.1).
 */
export function toGrpcMessage(text: string): string {
  let encoded = '';
  for (const byte of Buffer.from(text.toWellFormed())) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += isPlain
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded.replace(/^ | $/g, '%20');
}
