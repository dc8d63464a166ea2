// Limits on slow and hostile clients: the numbers, and the bytes that open streams keep.

export interface AdsLimits {
  /** Simultaneous connections, without TLS and with it; beyond that, the least used one is closed. */
  readonly maxConnections: number;
  readonly maxTlsConnections: number;
  /** Connections being set up: the TLS handshake is not finished or the server's settings are not accepted, and until
   * then a client can send 64 KiB of headers. Others wait for their turn, unread; while any wait, those that take
   * longer than `openingMs` are closed. */
  readonly maxOpening: number;
  readonly openingMs: number;
  /** Simultaneous streams, over all connections; further ones are refused with RESOURCE_EXHAUSTED. */
  readonly maxStreams: number;
  /** Streams of one connection, as announced in HTTP/2; proxies multiplex many. */
  readonly maxStreamsPerConnection: number;
  /** Size of one request; larger ones end the stream with RESOURCE_EXHAUSTED. */
  readonly maxRequestBytes: number;
  /** Bytes of incomplete requests on all streams together. Beyond that, the streams with the oldest requests end with
   * RESOURCE_EXHAUSTED. */
  readonly maxUnfinishedBytes: number;
  /** Bytes of requested names and of nodes, kept for all open streams together. Beyond that, the streams that keep the
   * most are cut off. */
  readonly maxRetainedBytes: number;
  /** Requests that answer no response, or that change what is wanted: the number allowed at once, and the number per
   * second after that. Further ones end the stream with RESOURCE_EXHAUSTED. */
  readonly requestBurst: number;
  readonly requestsPerSecond: number;
  /** Time limit for the first request of a stream, and for each request to complete; after that the stream is ended. */
  readonly requestMs: number;
  /** Time limit for the client to read a response; after that the stream is ended. */
  readonly drainTimeoutMs: number;
  /** How often a connection is pinged; it is closed when no answer arrives in time. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
}

export const defaultLimits: AdsLimits = {
  // A served worker takes about 35 kB, about 70 kB with its link and reports, and 50 kB more with TLS. Either limit
  // fits into the chart's 1 GiB, together with everything else.
  maxConnections: 10_000,
  maxTlsConnections: 3_000,
  maxOpening: 500,
  openingMs: 10_000,
  // A Ratelane worker opens two on its connection: one for its rules, and one for its link.
  maxStreams: 20_000,
  maxStreamsPerConnection: 1_000,
  // gRPC's own default. A reconnecting delta client lists all names that it holds.
  maxRequestBytes: 4 * 1024 * 1024,
  maxUnfinishedBytes: 64 * 1024 * 1024,
  // About 900,000 names.
  maxRetainedBytes: 128 * 1024 * 1024,
  requestBurst: 100,
  requestsPerSecond: 10,
  requestMs: 30_000,
  drainTimeoutMs: 30_000,
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 20_000,
};

/** Size of a request's headers, counted as in HTTP/2 with 32 bytes added for each. Enough for tokens and a proxy's
 * headers. */
export const maxHeaderBytes = 16 * 1024;

/** The most names that one stream may request, and the length limit of a name or version. */
export const maxNames = 10_000;
export const maxNameLength = 1_024;

/** Length limit of a worker's instance, which it sends in its node's metadata and in the hello of its link. */
export const maxInstanceLength = 1_024;

/** Total length limit of a node's id, cluster and metadata, which are kept for each stream. */
export const maxNodeLength = 16 * 1024;

/** A stream. */
export interface NameHolder {
  /** The stream must close and free what it keeps. */
  closeAsLargest(): void;
}

/** Overhead of a string and its entries in sets and maps. */
const bytesPerName = 128;

/** Limits the memory kept for open streams: the names that they request or hold, and their nodes, all together in bytes.
 * A stream that wants everything keeps next to nothing. */
export class RetainedNames {
  readonly #maxBytes: number;
  readonly #holders = new Map<NameHolder, number>();
  #totalBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Sets the bytes that a stream keeps. Beyond the limit, the streams that keep the most are closed, so that greedy
   * streams never displace a modest one. */
  retain(holder: NameHolder, bytes: number): void {
    this.#set(holder, bytes);
    while (this.#totalBytes > this.#maxBytes) {
      const largest = this.#findLargest();
      if (largest === undefined) return;
      this.#set(largest, 0);
      largest.closeAsLargest();
    }
  }

  #set(holder: NameHolder, bytes: number): void {
    this.#totalBytes += bytes - (this.#holders.get(holder) ?? 0);
    if (bytes > 0) this.#holders.set(holder, bytes);
    else this.#holders.delete(holder);
  }

  #findLargest(): NameHolder | undefined {
    let largest: NameHolder | undefined;
    let most = 0;
    for (const [holder, bytes] of this.#holders) {
      if (bytes > most) [largest, most] = [holder, bytes];
    }
    return largest;
  }
}

/** Approximate bytes of these texts. */
export function toRetainedBytes(texts: Iterable<string>): number {
  let bytes = 0;
  for (const text of texts) bytes += bytesPerName + text.length;
  return bytes;
}
