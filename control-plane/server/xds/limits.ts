// Limits on slow and hostile clients.

export interface AdsLimits {
  /** Connections at once, without TLS and with it; for one more the least used is closed. */
  readonly maxConnections: number;
  readonly maxTlsConnections: number;
  /** Connections that are opened at once: the TLS handshake is not finished, or the server's settings are not
   * accepted, until when a client may send 64 KiB of headers. Others wait for their turn, unread; while they do, those
   * that take longer than `openingMs` are closed. */
  readonly maxOpening: number;
  readonly openingMs: number;
  /** Streams at once, over all connections; more are refused with RESOURCE_EXHAUSTED. */
  readonly maxStreams: number;
  /** Streams of one connection, as HTTP/2 announces it; proxies carry many. */
  readonly maxStreamsPerConnection: number;
  /** Size of one request; larger ones end the stream with RESOURCE_EXHAUSTED. */
  readonly maxRequestBytes: number;
  /** Bytes of incomplete requests on all streams together. Beyond, the streams of the oldest end with
   * RESOURCE_EXHAUSTED. */
  readonly maxUnfinishedBytes: number;
  /** Bytes of requested names and of nodes, kept while streams are open, on all of them together. Beyond,
   * the streams that keep most are cut off. */
  readonly maxKeptBytes: number;
  /** Requests that answer no response, or that change what is wanted: this many at once, and so many each
   * second after that. More end the stream with RESOURCE_EXHAUSTED. */
  readonly requestBurst: number;
  readonly requestsPerSecond: number;
  /** Time for the first request of a stream, and for any request to complete; then the stream is ended. */
  readonly requestMs: number;
  /** Time for the client to read a response; then the stream is ended. */
  readonly drainTimeoutMs: number;
  /** How often a connection is pinged; it is closed when no answer comes in time. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
}

export const defaultLimits: AdsLimits = {
  // A served worker takes some 35 kB, with its link and what it reports some 70 kB, with TLS 50 kB more. Either number
  // fits into the chart's 1 GiB, beside all else.
  maxConnections: 10_000,
  maxTlsConnections: 3_000,
  maxOpening: 500,
  openingMs: 10_000,
  // A Ratelane worker has two on its connection: for its rules, and for its link.
  maxStreams: 20_000,
  maxStreamsPerConnection: 1_000,
  // gRPC's own default. A reconnecting delta client names all that it holds.
  maxRequestBytes: 4 * 1024 * 1024,
  maxUnfinishedBytes: 64 * 1024 * 1024,
  // Some 900,000 names.
  maxKeptBytes: 128 * 1024 * 1024,
  requestBurst: 100,
  requestsPerSecond: 10,
  requestMs: 30_000,
  drainTimeoutMs: 30_000,
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 20_000,
};

/** Size of a request's headers, with 32 bytes for each, as HTTP/2 counts. Enough for tokens and a proxy's
 * headers. */
export const maxHeaderBytes = 16 * 1024;

/** Names that one stream may ask for, and how long each of them, or a version, may be. */
export const maxNames = 10_000;
export const maxNameLength = 1_024;

/** Characters of a worker's instance, as it names itself in its node's metadata and in the hello of its link. */
export const maxInstanceLength = 1_024;

/** Characters of a node's id, cluster and metadata together, kept for each stream. */
export const maxNodeLength = 16 * 1024;
