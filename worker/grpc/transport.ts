// The interface of the gRPC transport; test/contract/grpc-transport.ts is its contract in tests.
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { LargeRequests } from './large-requests.ts';
import type { ListenAddress, ListenerNames, ListenTarget } from './listen-address.ts';
import type { GrpcMethods } from './method.ts';

/** Contents, not paths: PEM texts. */
export interface ServerCertificates {
  /** The chain, the server's own first. */
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Set: clients must show a certificate of this CA. */
  readonly clientCa?: string | Buffer | undefined;
}

export interface GrpcTls extends ServerCertificates {
  /** A DNS name that the client's certificate must be valid for; needs `clientCa`. */
  readonly clientSan?: string | undefined;
}

export interface GrpcListenerNames extends ListenerNames {
  /** The setting of how many connections there may be. */
  readonly maxConnections: string;
}

export interface GrpcTransportOptions {
  readonly names: GrpcListenerNames;
  readonly target: ListenTarget;
  readonly tls?: GrpcTls | undefined;
  /** The largest size of a message, also when it is unfolded. */
  readonly maxRequestBytes: number;
  /** After this, with jitter of 10 %, clients are asked to leave a connection; undefined: never. */
  readonly maxConnectionAgeMs?: number | undefined;
  /** After this it is cut, with its calls; undefined: never. */
  readonly maxConnectionAgeGraceMs?: number | undefined;
  /** Connections at once; at the limit the least used is closed for the next. Undefined: 10,000, with TLS
   * 3,000. */
  readonly maxConnections?: number | undefined;
}

export interface GrpcTransportDeps {
  readonly methods: GrpcMethods;
  readonly log: Log;
  readonly clock: Clock;
  /** Whether methods read headers of their calls; default true. Without it most are not decoded. */
  readonly keepsHeaders?: boolean;
  /** Shared turns of large requests; default: the transport's own. */
  readonly largeRequests?: LargeRequests | undefined;
  /** Called when a connection was closed at the limit: the least used, or the new one. */
  readonly onRefused?: () => void;
}

export interface GrpcTransport {
  /** Rejects with AppError `cannot_start`. */
  start(): Promise<ListenAddress>;
  /** Applies to new handshakes. Throws on a pair that does not fit, and keeps the old one. Whether clients
   * need a certificate cannot change. */
  replaceCertificates(certificates: ServerCertificates): void;
  /** Keeps serving, but each answer asks proxies to send further calls elsewhere. False: no caller is
   * connected. */
  turnAway(): boolean;
  /** Stops accepting, ends streams, lets calls in flight finish, and cuts the rest after `graceMs`.
   * Idempotent. */
  stop(graceMs: number): Promise<void>;
}
