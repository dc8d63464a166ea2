// The interface between gRPC transports and methods: methods receive and return the bytes of messages; the transport
// handles frames, headers, connections and deadlines.
import type { GrpcErrorStatus } from '../../shared/grpc/status.ts';

/** What a method needs of a unary call. */
export interface UnaryCall {
  /** Arrival time of the request's end, on the monotonic clock: before any wait for its turn. */
  readonly receivedMs: number;
  /** When the caller stops waiting, on the monotonic clock; undefined without grpc-timeout. */
  readonly deadlineMs: number | undefined;
  /** `address:port` of the peer, or the transport's equivalent. */
  peer(): string;
  /** A header's first value, by its lower-case name. Valid until `answer` returns. */
  header(name: string): string | undefined;
  /** Answers with the first `length` bytes, by default all of them; they belong to the method again afterwards. */
  succeed(message: Uint8Array, length?: number): void;
  fail(status: GrpcErrorStatus, text: string): void;
}

export interface PendingAnswer {
  /** Called when the caller has disconnected. The method may still answer, which is ignored. */
  cancel(): void;
}

/** One request, one answer. */
export interface UnaryMethod {
  readonly kind: 'unary';
  /**
   * Answers the call once, possibly before it returns, and never throws. The request is in bytes[start, end), which
   * belong to the transport again afterwards. Returns a handler to be notified when the caller disconnects, if needed.
   */
  answer(bytes: Buffer, start: number, end: number, call: UnaryCall): PendingAnswer | undefined;
}

/** A bidirectional stream. */
export interface StreamMethod {
  readonly kind: 'stream';
  open(caller: StreamCaller): StreamHandler;
}

/** A stream's caller, for the method; calls after the end are ignored. */
export interface StreamCaller {
  send(message: Buffer): void;
  /** Ends the stream, with OK when no error is given. */
  finish(error?: { readonly status: GrpcErrorStatus; readonly text: string }): void;
}

/** A stream's method, for the transport; its functions never throw. */
export interface StreamHandler {
  message(bytes: Buffer): void;
  /** Called when the caller sends no more, but still receives. */
  halfClose(): void;
  /** Called once when the stream has ended, for whatever reason. */
  closed(): void;
}

export type GrpcMethod = UnaryMethod | StreamMethod;

/** The methods by path, such as `/grpc.health.v1.Health/Check`. */
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
