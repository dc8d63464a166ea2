// What the gRPC transport can do; test/contract/grpc-transport.ts is its contract in tests.
import type { Clock } from '../clock.ts';
import type { ListenAddress, ListenerNames, ListenTarget } from '../listen-address.ts';
import type { Log } from '../log.ts';
import type { LargeRequests } from './large-requests.ts';
import type { GrpcMethods } from './method.ts';

/** Contents, not paths: PEM texts. */
export interface ServerCertificates {
  /** The chain, the server's own first. */
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Set: clients must show a certificate of this authority. */
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
  /** Of a message, also when it is unfolded. */
  readonly maxRequestBytes: number;
  /** After this, give or take 10 %, a connection is told to go away; undefined: never. */
  readonly maxConnectionAgeMs?: number | undefined;
  /** And after this it is cut, calls and all; undefined: never. */
  readonly maxConnectionAgeGraceMs?: number | undefined;
  /** At once; at the bound the one that is used least makes room. Undefined: 10,000, with TLS 3,000. */
  readonly maxConnections?: number | undefined;
}

export interface GrpcTransportDeps {
  readonly methods: GrpcMethods;
  readonly log: Log;
  readonly clock: Clock;
  /** Whether methods ask for headers of their calls; default true. Without it most are not even read. */
  readonly keepsHeaders?: boolean;
  /** Whose turns large requests take; without this, the transport's own. */
  readonly largeRequests?: LargeRequests | undefined;
  /** A connection was closed because there were as many as there may be: the least used, or this one. */
  readonly onRefused?: () => void;
}

export interface GrpcTransport {
  /** Rejects with AppError `cannot_start`. */
  start(): Promise<ListenAddress>;
  /** For handshakes from now on; connections stay. Throws on a pair that does not fit, and keeps the
   * old one. Whether clients need a certificate cannot change. */
  replaceCertificates(certificates: ServerCertificates): void;
  /** Goes on, but each answer asks proxies to take further calls elsewhere. False: nobody is connected. */
  turnAway(): boolean;
  /** Accepts no more, ends streams, lets calls in flight finish, and cuts what is left after
   * `graceMs`. Idempotent. */
  stop(graceMs: number): Promise<void>;
}
