// The interface between gRPC transports and methods: methods take and return the bytes of messages; the
// transport handles frames, headers, connections and deadlines.
import type { GrpcErrorStatus } from '../../shared/grpc/status.ts';

/** A unary call, as its method sees it. */
export interface UnaryCall {
  /**
   * Arrival time of the request's end, on the monotonic clock; a wait after it, such as for its turn, is not in
   * it.
   */
  readonly receivedMs: number;
  /** When the caller stops waiting, on the monotonic clock; undefined without grpc-timeout. */
  readonly deadlineMs: number | undefined;
  /** `address:port` of the peer, or the transport's equivalent. */
  peer(): string;
  /** A header's first value, by its name in lower case. Valid until `answer` returns. */
  header(name: string): string | undefined;
  /** Answers with the first `length` bytes, by default all; they belong to the method again afterwards. */
  succeed(message: Uint8Array, length?: number): void;
  fail(status: GrpcErrorStatus, text: string): void;
}

export interface PendingAnswer {
  /** The caller has left. The method may still answer, which is ignored. */
  cancel(): void;
}

/** One request, one answer. */
export interface UnaryMethod {
  readonly kind: 'unary';
  /**
   * Answers the call once, possibly before it returns, and never throws. The request is in bytes[start,
   * end), which belong to the transport again afterwards. Returns a handler for the caller's leaving, if
   * needed.
   */
  answer(bytes: Buffer, start: number, end: number, call: UnaryCall): PendingAnswer | undefined;
}

/** A bidirectional stream. */
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

/** The method's end of a stream; its functions never throw. */
export interface StreamHandler {
  message(bytes: Buffer): void;
  /** The caller sends no more, but still listens. */
  halfClose(): void;
  /** The stream has ended, for whatever reason; called once. */
  closed(): void;
}

export type GrpcMethod = UnaryMethod | StreamMethod;

/** By path, such as `/grpc.health.v1.Health/Check`. */
export type GrpcMethods = ReadonlyMap<string, GrpcMethod>;

/** The message for an unknown path, with UNIMPLEMENTED (behaviour: errors-over-grpc). */
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
