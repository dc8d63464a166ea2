// The bounds that keep slow and hostile clients from taking more than their share.
import { maxUnfinishedHandshakes } from '../../shared/connection-limit.ts';

export interface AdsLimits {
  /** Connections at once, without TLS and with it; for one more the one that is used least is closed. */
  readonly maxConnections: number;
  readonly maxTlsConnections: number;
  /** TLS handshakes at once that are not finished; for one more the oldest is closed. */
  readonly maxHandshakes: number;
  /** Without TLS: connections at once that have not accepted our settings; for one more the oldest is
   * closed. Until then 64 KiB of a request's headers may come, whatever the settings say. */
  readonly maxUnsettled: number;
  /** Streams at once, over all connections; more are refused with RESOURCE_EXHAUSTED. */
  readonly maxStreams: number;
  /** On one connection, as HTTP/2 announces it; proxies carry many. */
  readonly maxStreamsPerConnection: number;
  /** Size of one request; larger ones end the stream with RESOURCE_EXHAUSTED. */
  readonly maxRequestBytes: number;
  /** Of requests that are begun and not complete, on all streams together. Beyond, those that were begun
   * first end their streams with RESOURCE_EXHAUSTED. */
  readonly maxUnfinishedBytes: number;
  /** Of names that streams ask for and of their nodes, which are kept as long as a stream is open, on all of
   * them together. Beyond, those that keep the most are cut off. */
  readonly maxKeptBytes: number;
  /** Requests that answer no response, or that change what is wanted: this many at once, and so many
   * each second after that. What passes ends the stream with RESOURCE_EXHAUSTED. */
  readonly requestBurst: number;
  readonly requestsPerSecond: number;
  /** A stream whose first request has not come by then is ended, and so is one on which a request is
   * begun and not complete by then. */
  readonly requestMs: number;
  /** A response that the client has not read by then ends its stream. */
  readonly drainTimeoutMs: number;
  /** A connection is asked for a sign of life this often, and closed when none comes in time. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
}

export const defaultLimits: AdsLimits = {
  // A worker that is served takes some 31 kB, and some 83 with TLS. Either fits into the 512 MiB that the
  // chart gives, beside all else.
  maxConnections: 10_000,
  maxTlsConnections: 3_000,
  maxHandshakes: maxUnfinishedHandshakes,
  maxUnsettled: 2_000,
  maxStreams: 10_000,
  maxStreamsPerConnection: 1_000,
  // gRPC's own default. A delta client that reconnects names all that it holds.
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

/** Of a request, with 32 bytes for each header, as HTTP/2 counts. Tokens and a proxy's headers have room. */
export const maxHeaderBytes = 16 * 1024;

/** Names that one stream may ask for, and how long each of them, or a version, may be. */
export const maxNames = 10_000;
export const maxNameLength = 1_024;

/** Characters of a node's id, cluster and metadata together: they are kept for each stream. */
export const maxNodeLength = 16 * 1024;

/** A request costs one more for each of these: large ones take longer to read. */
export const bytesPerToken = 64 * 1024;
