// The limits of one request (behaviour: bounds). Servers have their own time limits of connections.

/** Each can be set per application; counts and bytes are inclusive. */
export interface Limits {
  /** Bytes of the request target without scheme and host; more is 414. */
  readonly targetBytes: number;
  readonly pathParts: number;
  /** Names in a query or a form; those of a JSON object are bounded by its bytes. */
  readonly keys: number;
  /** Values of one name, and items of any list whose schema has no `maxItems`. */
  readonly listItems: number;
  /** Nesting of objects and lists in JSON, and of elements in XML. */
  readonly jsonDepth: number;
  /** Elements and attributes of an XML body, with its comments and the like. */
  readonly xmlNodes: number;
  /** More is 413; no more of the body is held. A body that its method does not take has a smaller limit. */
  readonly bodyBytes: number;
  readonly multipartParts: number;
  /** Open at a time: events and WebSockets together; more are 503. */
  readonly liveConnections: number;
  /** Bytes of one message of a WebSocket; more closes it with 1009. */
  readonly messageBytes: number;
  /** That may wait for the reader of a WebSocket; one who is slower is cut off. */
  readonly queuedBytes: number;
  /** After this silence events send a comment, and WebSockets a ping; who does not answer until the next is cut off. */
  readonly heartbeatMs: number;
  /** From the first wait for the body to its end; more is 408. */
  readonly bodyTimeoutMs: number;
  /** From the call of a method to what it returns; then its `request.signal` is aborted, and the answer is 503.
   * Infinity: no bound. */
  readonly methodTimeoutMs: number;
}

export const defaultLimits: Limits = {
  targetBytes: 8 * 1024,
  pathParts: 32,
  keys: 100,
  listItems: 1000,
  jsonDepth: 32,
  xmlNodes: 10_000,
  bodyBytes: 1024 * 1024,
  multipartParts: 20,
  liveConnections: 1000,
  messageBytes: 64 * 1024,
  queuedBytes: 1024 * 1024,
  heartbeatMs: 15_000,
  bodyTimeoutMs: 30_000,
  methodTimeoutMs: Number.POSITIVE_INFINITY,
};
