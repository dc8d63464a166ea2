// The request and the response as the application sees them, whatever carried them.

/** A request as a mount hands it over. */
export interface RequestLike {
  readonly method: string;
  /** As it came, still percent-encoded: `/a/b?c=d`, an absolute URL, or `*`. */
  readonly target: string;
  readonly headers: Headers;
  /** Read at most once; undefined where the request has none. What is not read when the answer
   * is there is the mount's to drain or to cut; returning the iterator cuts nothing. */
  readonly body: AsyncIterable<Uint8Array> | undefined;
  /** The socket's peer; a forwarding header is never believed. */
  readonly remoteAddress: string | undefined;
}

/** A response for a mount to send. */
export interface ResponseLike {
  readonly status: number;
  readonly headers: Headers;
  /** A stream is owned by who sends it: read to its end, or its iterator returned. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
}

/** What a controller and a guard see of the request: no body, no unparsed arguments. */
export interface RoutedRequest {
  /** In the answer's `X-Request-Id` and in the log; the client's own where it is well-formed. */
  readonly id: string;
  readonly method: string;
  /** The path after resolution, each part encoded once more: safe to log. */
  readonly path: string;
  readonly headers: Headers;
  readonly remoteAddress: string | undefined;
}

/** What a method may set before it returns. */
export interface ResponseDraft {
  /** Unset: 200, or 204 without a value. */
  status: number | undefined;
  readonly headers: Headers;
  /** A type without `json` in it sends the value's plain text. Unset: by the kind of value. */
  mediaType: string | undefined;
}
