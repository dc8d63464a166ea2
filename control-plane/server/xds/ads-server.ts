// Serves configuration to workers: a gRPC server for the discovery services, built directly on node:http2.
//
// A message for a thousand streams is one buffer: gRPC's framing is a small separate buffer, and node:http2 sends both
// without copying. @grpc/grpc-js copies each message for each stream: with the same sessions, 1,000 clients and
// responses of 420 kB it took 600 MB and 1.7 s of CPU for the first load; this server takes 180 MB and 0.7 s. The
// engine of shared/grpc, changed to send such a message without copying, is as good without TLS and worse with it:
// 1,000 clients and three responses of 435 kB took 474 MB and 3.0 s of CPU; this server takes 309 MB and 2.3 s.
//
// The provider chooses the snapshot of a node, and `authorize` decides which callers are allowed.
import { once } from 'node:events';
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import { type AddressInfo, createServer as createListener } from 'node:net';
import type { Clock } from '../../../shared/clock.ts';
import {
  type ConnectionLimit,
  handshakeLimitMs,
  limitConnections,
} from '../../../shared/connection-limit.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import { type GrpcStatus, grpcStatus } from '../../../shared/grpc/status.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import type { DiscoveryProtos } from '../../../shared/wire/discovery.ts';
import type { OpenCall } from '../call-handler.ts';
import type { SnapshotProvider } from '../snapshot/snapshot.ts';
import { createUnfinishedRequests } from '../unfinished-requests.ts';
import { Connection, type ConnectionDeps } from './connection.ts';
import {
  DiscoveryStream,
  type DiscoveryStreamDeps,
  type DropReason,
  OpenStreams,
  type XdsMetrics,
} from './discovery-stream.ts';
import { createEntrance, type Entrance } from './entrance.ts';
import { type CallDeps, refuseCall, StreamCall } from './grpc-call.ts';
import { type AdsLimits, defaultLimits, maxHeaderBytes, RetainedNames } from './limits.ts';
import {
  type CaCertificates,
  ClientCertificate,
  OpenRights,
  type ReasonAgainst,
  toCaCertificates,
} from './open-rights.ts';
import { createPatientClock } from './patient-clock.ts';
import { createProtocols, type DiscoveryProtocol } from './protocol.ts';
import { type ConnectedWorkers, createWorkerRegistry } from './workers.ts';

/** How often simultaneous events of many streams are logged. */
const eventIntervalMs = 5_000;

/** How long a client may take to read why its call lost the right to be open. */
const lostMs = 5_000;

/** Connections that wait to be accepted; clients of further ones retry a second later. The kernel may allow fewer
 * (net.core.somaxconn). */
const backlog = 10_000;

export type Authorization =
  /** `reasonAgainst` is called again while the call is open. */
  | { readonly ok: true; readonly reasonAgainst?: ReasonAgainst }
  | { readonly ok: false; readonly reason: string };

export interface AdsServerDeps {
  readonly snapshots: SnapshotProvider;
  readonly log: Log;
  readonly clock: Clock;
  readonly protos: DiscoveryProtos;
  /** Called for each call with its request metadata (lower-case names). The reason goes to the client and the log,
   * without the secret. Without this function all callers are allowed. */
  readonly authorize?: (headers: IncomingHttpHeaders) => Authorization;
  readonly metrics: XdsMetrics;
  /** Methods of other services on this port, by path. Their owners end the calls before `stop`. */
  readonly methods?: ReadonlyMap<string, OpenCall>;
}

export interface AdsServerOptions {
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  readonly tls?: AdsTls;
  readonly limits?: Partial<AdsLimits>;
}

export class AdsServer {
  readonly workers: ConnectedWorkers;
  readonly #deps: AdsServerDeps;
  readonly #options: AdsServerOptions;
  /** What all discovery streams share. */
  readonly #shared: DiscoveryStreamDeps;
  readonly #methods: ReadonlyMap<string, OpenCall>;
  /** Accepts connections, which `#entrance` passes to `#server` a few at a time. */
  readonly #listener = createListener({ pauseOnConnect: true });
  readonly #server: Http2Server | Http2SecureServer;
  readonly #connectionLimit: ConnectionLimit;
  readonly #entrance: Entrance;
  readonly #connections = new Map<ServerHttp2Session, Connection>();
  readonly #connectionDeps: ConnectionDeps;
  readonly #callDeps: CallDeps;
  #calls = 0;
  readonly #rights: OpenRights<StreamCall>;
  /** Undefined if clients need no certificate. */
  #caCertificates: CaCertificates | undefined;
  readonly #certificates = new WeakMap<Connection, ClientCertificate>();
  #stopping: Promise<void> | undefined;

  constructor(deps: AdsServerDeps, options: AdsServerOptions) {
    const { log, snapshots, metrics, protos } = deps;
    const { tls } = options;
    const clock = createPatientClock(deps.clock);
    const limits: AdsLimits = { ...defaultLimits, ...options.limits };
    const workers = createWorkerRegistry(clock);
    const toEvents = (write: (text: string) => void) =>
      createRepeatedLog({ clock, write, intervalMs: eventIntervalMs, again: 'in-time' });
    this.#deps = deps;
    this.#options = options;
    this.workers = workers;
    this.#shared = {
      ...{ snapshots, workers, clock, metrics, limits },
      events: { info: toEvents(log.info), warning: toEvents(log.warning) },
      retainedNames: new RetainedNames(limits.maxRetainedBytes),
      open: new OpenStreams(),
    };
    const { aggregatedSotw, aggregatedDelta, dedicatedSotw } = createProtocols(protos);
    this.#methods = new Map<string, OpenCall>([
      [protos.aggregated.StreamAggregatedResources.path, this.#openStream(aggregatedSotw)],
      [protos.aggregated.DeltaAggregatedResources.path, this.#openStream(aggregatedDelta)],
      [protos.rateLimitConfig.StreamRlsConfigs.path, this.#openStream(dedicatedSotw)],
      ...(deps.methods ?? []),
    ]);
    this.#caCertificates = toCaCertificates({ ca: tls?.clientCa });
    const unfinishedRequests = createUnfinishedRequests({
      clock,
      maxBytes: limits.maxUnfinishedBytes,
      timeoutMs: limits.requestMs,
    });
    const server = createHttp2Server(limits, tls);
    this.#server = server;
    const maxConnections = tls ? limits.maxTlsConnections : limits.maxConnections;
    this.#connectionLimit = limitConnections(this.#listener, {
      max: maxConnections,
      onClosed: (which) => {
        const text = `xDS: there are already ${maxConnections} connections: the ${which} one was closed`;
        this.#warn(text, 'too_many_connections');
      },
      clock,
    });
    this.#entrance = createEntrance({
      clock,
      max: limits.maxOpening,
      openingMs: limits.openingMs,
      // Sends the settings; under TLS the client must send first.
      greet(socket) {
        if (tls === undefined) server.emit('connection', socket);
      },
      read(socket) {
        if (tls !== undefined) server.emit('connection', socket);
        socket.resume();
      },
    });
    this.#rights = new OpenRights({
      clock: deps.clock,
      onLost: (call, reason) => this.#endCall(call, reason),
    });
    this.#callDeps = {
      maxMessageBytes: limits.maxRequestBytes,
      unfinishedRequests,
      clock,
      onClose: (call) => {
        this.#calls--;
        this.#rights.delete(call);
      },
    };
    const onClose = (session: ServerHttp2Session) => void this.#connections.delete(session);
    this.#connectionDeps = { clock, limits, onClose };
    this.#listener.on('connection', this.#entrance.come);
    server.on('session', (session) => this.#onSession(session));
    server.on('stream', (stream, headers) => this.#onStream(stream, headers));
    server.on('tlsClientError', (error: Error) => {
      this.#warn(`xDS: a TLS handshake failed: ${errorText(error)}`, 'tls');
    });
  }

  /** Resolves to the port; rejects with an AppError `cannot_start`. */
  async start(): Promise<number> {
    const { host, port } = this.#options;
    const listener = this.#listener;
    try {
      listener.listen({ host, port, backlog });
      await once(listener, 'listening');
    } catch (error) {
      const text = `the xDS server cannot listen on ${host}:${port}: ${errorText(error)}`;
      throw new AppError('cannot_start', text, { cause: error });
    }
    // A later error of the listener, such as a lack of file descriptors, does not affect open connections.
    listener.on('error', (error) => {
      this.#warn(`xDS: the listener failed: ${errorText(error)}`, 'listener');
    });
    return (listener.address() as AddressInfo).port;
  }

  /** Notifies every stream that some nodes get another snapshot, unless the server is stopping. */
  refresh(): void {
    if (this.#stopping === undefined) this.#shared.open.refresh();
  }

  /** Ends the streams with UNAVAILABLE, so that workers reconnect elsewhere, and after `graceMs` the remaining
   * connections. Idempotent. */
  stop(graceMs: number): Promise<void> {
    this.#stopping ??= this.#stopOnce(graceMs);
    return this.#stopping;
  }

  /** Applies to new connections: another certificate, other CAs. Throws on PEM texts that do not match, and then keeps
   * the previous material. */
  replaceTls(tls: AdsTls): void {
    const server = this.#server;
    // Whether clients need a certificate cannot change after the server is created.
    const hadClientCa = this.#options.tls?.clientCa !== undefined;
    if (!('setSecureContext' in server) || hadClientCa !== (tls.clientCa !== undefined)) {
      throw new AppError('internal', 'TLS and client certificates cannot be switched on or off');
    }
    server.setSecureContext(toTlsOptions(tls));
    this.#caCertificates = toCaCertificates({ ca: tls.clientCa });
  }

  #openStream<Request extends object>(protocol: DiscoveryProtocol<Request>): OpenCall {
    return (call) => new DiscoveryStream(this.#shared, protocol, call);
  }

  #onSession(session: ServerHttp2Session): void {
    const connection = new Connection(session, this.#connectionDeps);
    this.#connections.set(session, connection);
    if (this.#caCertificates !== undefined) {
      this.#certificates.set(connection, new ClientCertificate(session));
    }
    const { socket } = session;
    session.once('localSettings', () => {
      this.#connectionLimit.use(socket, connection);
      this.#entrance.opened(socket);
    });
  }

  #onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { clock, limits } = this.#shared;
    const connection =
      stream.session && this.#connections.get(stream.session as ServerHttp2Session);
    const refuse = (status: GrpcStatus, text: string): void =>
      refuseCall(stream, { status, text, clock });
    const method = this.#methods.get(headers[':path'] ?? '');
    if (connection === undefined || this.#stopping !== undefined) {
      refuse(grpcStatus.unavailable, 'the control plane is stopping');
    } else if (headers[':method'] !== 'POST' || !isGrpc(headers['content-type'])) {
      refuse(grpcStatus.internal, 'this port speaks only gRPC');
    } else if (method === undefined) {
      refuse(grpcStatus.unimplemented, `unknown method ${headers[':path']?.slice(0, 200)}`);
    } else if (this.#calls >= limits.maxStreams) {
      const text = `there are ${this.#calls} streams already`;
      this.#noteRefused(connection, text, 'too_many_streams');
      refuse(grpcStatus.resourceExhausted, text);
    } else {
      const allowed: Authorization = this.#deps.authorize?.(headers) ?? { ok: true };
      const reason = allowed.ok ? this.#reasonAgainst(connection) : allowed.reason;
      if (!allowed.ok || reason !== undefined) {
        const text = reason ?? '';
        this.#noteRefused(connection, text, 'unauthenticated');
        refuse(grpcStatus.unauthenticated, text);
        return;
      }
      this.#calls++;
      const call = new StreamCall(stream, connection, this.#callDeps, method);
      this.#rights.add(call, () => allowed.reasonAgainst?.() ?? this.#reasonAgainst(connection));
    }
  }

  /** Checks a client whose connection is older than the TLS material in force. */
  #reasonAgainst(connection: Connection): string | undefined {
    const cas = this.#caCertificates;
    const wallMs = this.#shared.clock.wallMs();
    return cas && this.#certificates.get(connection)?.reasonAgainst(cas, wallMs);
  }

  /** Ends a call that lost the right to be open. */
  #endCall(call: StreamCall, reason: string): void {
    const { metrics, clock } = this.#shared;
    metrics.dropped('unauthenticated');
    this.#warn(`xDS: a call of ${call.peerAddress} was ended: ${reason}`, 'unauthenticated');
    call.finish(grpcStatus.unauthenticated, reason);
    // A client that does not read is not waited for.
    clock.after(lostMs, () => call.abort());
  }

  #noteRefused({ peerAddress }: Connection, text: string, reason: DropReason): void {
    this.#shared.metrics.dropped(reason);
    this.#warn(`xDS: ${peerAddress} was refused: ${text}`, reason);
  }

  #warn(text: string, key: string): void {
    this.#shared.events.warning.report(text, key);
  }

  async #stopOnce(graceMs: number): Promise<void> {
    const { clock, open, events } = this.#shared;
    const listener = this.#listener;
    const closed = listener.listening ? once(listener, 'close') : undefined;
    listener.close();
    this.#entrance.close();
    open.finish(grpcStatus.unavailable, 'the control plane is stopping');
    for (const connection of this.#connections.values()) connection.goAway();
    const cancelTimer = clock.after(graceMs, () => {
      for (const connection of [...this.#connections.values()]) connection.close();
    });
    await closed;
    cancelTimer();
    open.stop();
    this.#rights.stop();
    events.info.flush();
    events.warning.flush();
  }
}

function isGrpc(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc([+;]|$)/.test(contentType);
}

/** PEM texts. */
export interface AdsTls {
  readonly certificate: string;
  readonly key: string;
  /** If given, clients must present a certificate signed by one of these CAs; the names in it do not matter. */
  readonly clientCa?: string;
}

function createHttp2Server(
  limits: AdsLimits,
  tls: AdsTls | undefined,
): Http2Server | Http2SecureServer {
  const options: ServerOptions = {
    settings: {
      maxConcurrentStreams: limits.maxStreamsPerConnection,
      maxHeaderListSize: maxHeaderBytes,
      enablePush: false,
    },
    // In megabytes; waiting responses count in full although they are shared. The number of streams limits a
    // connection's memory, so this limit only must not take effect first.
    maxSessionMemory: 1_000_000,
  };
  if (tls === undefined) return createServer(options);
  return createSecureServer({
    ...options,
    ...toTlsOptions(tls),
    minVersion: 'TLSv1.2',
    handshakeTimeout: handshakeLimitMs,
  });
}

export function toTlsOptions({ certificate, key, clientCa }: AdsTls) {
  return {
    cert: certificate,
    key,
    ...(clientCa === undefined
      ? {}
      : { ca: clientCa, requestCert: true, rejectUnauthorized: true }),
  };
}
