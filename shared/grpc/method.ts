// The seam between gRPC transports and what they carry: methods take and give the bytes of
// messages; frames, headers, connections and deadlines are left to the transport.
import type { GrpcErrorStatus } from './status.ts';

/** One unary call, as its method sees it. */
export interface UnaryCall {
  /** What the caller still waits, in milliseconds; undefined without grpc-timeout. */
  readonly timeoutMs: number | undefined;
  /** When the end of the request came, on the monotonic clock. */
  readonly receivedMs: number;
  /** `address:port` of the other end, or what the transport has in its place. */
  peer(): string;
  /** A header's first value, by its name in lower case. Good until `answer` returns. */
  header(name: string): string | undefined;
  /** Answers with the first `length` bytes, by default all; they are the method's again afterwards. */
  succeed(message: Uint8Array, length?: number): void;
  fail(status: GrpcErrorStatus, text: string): void;
}

export interface PendingAnswer {
  /** The caller is gone. The answer may still be given, and then goes nowhere. */
  cancel(): void;
}

/** One request, one answer. */
export interface UnaryMethod {
  readonly kind: 'unary';
  /**
   * Answers the call once, possibly before it returns, and never throws. The request is in
   * bytes[start, end), which are the transport's again afterwards. Returned is what to tell when the
   * caller goes, if anything.
   */
  answer(bytes: Buffer, start: number, end: number, call: UnaryCall): PendingAnswer | undefined;
}

/** Messages in either direction for as long as either side likes. */
export interface StreamMethod {
  readonly kind: 'stream';
  open(caller: StreamCaller): StreamHandler;
}

/** The transport's end of a stream; calls after the end are ignored. */
export interface StreamCaller {
  send(message: Buffer): void;
  /** Ends the stream, with OK when no error is given. */
  finish(error?: { readonly status: GrpcErrorStatus; readonly text: string }): void;
}

/** The method's end of a stream; none of them throws. */
export interface StreamHandler {
  message(bytes: Buffer): void;
  /** The caller sends no more, but still listens. */
  halfClose(): void;
  /** The stream is over, however that came; called once. */
  closed(): void;
}

export type GrpcMethod = UnaryMethod | StreamMethod;

/** By path, such as `/grpc.health.v1.Health/Check`. */
export type GrpcMethods = ReadonlyMap<string, GrpcMethod>;

/** What callers of a path that is not there are told, with UNIMPLEMENTED
 * (behaviour: errors-over-grpc). */
export function unknownMethodText(path: string, methods: GrpcMethods): string {
  const separator = path.lastIndexOf('/');
  if (!path.startsWith('/') || separator < 1) return `malformed method name: "${path}"`;
  const service = path.slice(1, separator);
  for (const known of methods.keys()) {
    if (known.startsWith(`/${service}/`)) {
      return `unknown method ${path.slice(separator + 1)} for service ${service}`;
    }
  }
  return `unknown service ${service}`;
}
