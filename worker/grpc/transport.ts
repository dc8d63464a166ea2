// The interface of the gRPC transport; test/contract/grpc-transport-*.test.ts are its contract in tests.
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { LargeRequests } from './large-requests.ts';
import type { ListenAddress, ListenerNames, ListenTarget } from './listen-address.ts';
import type { GrpcMethods } from './method.ts';

/** Contents, not paths: PEM texts. */
export interface ServerCertificates {
  /** The chain, beginning with the server's own certificate. */
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** When set, clients must present a certificate of this CA. */
  readonly clientCa?: string | Buffer | undefined;
}

export interface GrpcTls extends ServerCertificates {
  /** A DNS name for which the client's certificate must be valid; needs `clientCa`. */
  readonly clientSan?: string | undefined;
}

export interface GrpcListenerNames extends ListenerNames {
  /** The setting that limits the number of connections. */
  readonly maxConnections: string;
}

export interface GrpcTransportOptions {
  readonly names: GrpcListenerNames;
  readonly target: ListenTarget;
  readonly tls?: GrpcTls | undefined;
  /** The largest size of a message, also after decompression. */
  readonly maxRequestBytes: number;
  /** The age, with jitter of 10 %, at which a connection's client is asked to leave it; undefined for never. */
  readonly maxConnectionAgeMs?: number | undefined;
  /** The time after that until the connection is closed, with its calls; undefined for never. */
  readonly maxConnectionAgeGraceMs?: number | undefined;
  /**
   * Concurrent connections; at the limit the least used one is closed for the next. Undefined: 10,000, with TLS 3,000.
   */
  readonly maxConnections?: number | undefined;
}

export interface GrpcTransportDeps {
  readonly methods: GrpcMethods;
  readonly log: Log;
  readonly clock: Clock;
  /** Whether methods read headers of their calls; default true. With false most headers are not decoded. */
  readonly storesHeaders?: boolean;
  /** Turns of large requests, shared with other ports; by default the transport has its own. */
  readonly largeRequests?: LargeRequests | undefined;
  /** Called when a connection was closed at the limit: the least used one, or the new one. */
  readonly onRefused?: () => void;
}

export interface GrpcTransport {
  /** Rejects with AppError `cannot_start`. */
  start(): Promise<ListenAddress>;
  /**
   * Applies to new handshakes. Throws on a pair that does not match, and retains the old one. Whether clients need a
   * certificate cannot change.
   */
  replaceCertificates(certificates: ServerCertificates): void;
  /**
   * Continues to serve, but each answer asks proxies to send further calls elsewhere. False if no caller is connected.
   */
  turnAway(): boolean;
  /** Stops accepting, ends streams, lets calls in flight finish, and ends the others after `graceMs`. Idempotent. */
  stop(graceMs: number): Promise<void>;
}
