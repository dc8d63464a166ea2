// The seam between gRPC transports and what they carry: methods take and give the bytes of
// messages; frames, headers, connections and deadlines are left to the transport.

export const grpcStatus = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  notFound: 5,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const;
export type GrpcErrorStatus = Exclude<(typeof grpcStatus)[keyof typeof grpcStatus], 0>;

/** The message's bytes are the method's again when `reply` returns. */
export type GrpcAnswer =
  | { readonly ok: true; readonly message: Buffer }
  | { readonly ok: false; readonly status: GrpcErrorStatus; readonly text: string };

/** What a call brings beside its message; to be read before `answer` returns. */
export interface UnaryCaller {
  /** `address:port` of the other end, or what the transport has in its place. */
  peer(): string;
  /** A header's first value, by its name in lower case. */
  header(name: string): string | undefined;
}

/** One request, one answer. */
export interface UnaryMethod {
  readonly kind: 'unary';
  /** True: `answer` is to be given the caller, which costs transports an object for each call. */
  readonly needsCaller?: boolean;
  /**
   * Calls `reply` once, possibly before it returns; never throws. `timeoutMs` is what the caller
   * still waits, undefined without grpc-timeout. The returned function says that the caller is gone.
   */
  answer(
    request: Buffer,
    timeoutMs: number | undefined,
    reply: (answer: GrpcAnswer) => void,
    caller?: UnaryCaller,
  ): () => void;
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

/** What callers of a path that is not there are told, with UNIMPLEMENTED (reference-behaviour 3.1). */
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
