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
import { handshakeLimitMs, limitConnections } from '../../../shared/connection-limit.ts';
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
  type DropReason,
  OpenStreams,
  type XdsMetrics,
} from './discovery-stream.ts';
import { createEntrance } from './entrance.ts';
import { type CallDeps, refuseCall, StreamCall } from './grpc-call.ts';
import { type AdsLimits, defaultLimits, maxHeaderBytes, RetainedNames } from './limits.ts';
import {
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

export interface AdsServer {
  /** Resolves to the port; rejects with an AppError `cannot_start`. */
  start(): Promise<number>;
  /** Notifies every stream that some nodes get another snapshot, unless the server is stopping. */
  readonly refresh: () => void;
  /** Ends the streams with UNAVAILABLE, so that workers reconnect elsewhere, and after `graceMs` the remaining
   * connections. Idempotent. */
  stop(graceMs: number): Promise<void>;
  /** Applies to new connections: another certificate, other CAs. Throws on PEM texts that do not match, and then keeps
   * the previous material. */
  replaceTls(tls: AdsTls): void;
  readonly workers: ConnectedWorkers;
}

export function createAdsServer(deps: AdsServerDeps, options: AdsServerOptions): AdsServer {
  const { log, snapshots, authorize, metrics } = deps;
  const clock = createPatientClock(deps.clock);
  const limits: AdsLimits = { ...defaultLimits, ...options.limits };
  const workers = createWorkerRegistry(clock);
  const toEvents = (write: (text: string) => void) =>
    createRepeatedLog({ clock, write, intervalMs: eventIntervalMs, again: 'in-time' });
  const events = { info: toEvents(log.info), warning: toEvents(log.warning) };
  const protocols = createProtocols(deps.protos);
  const open = new OpenStreams();
  const connections = new Map<ServerHttp2Session, Connection>();
  const certificates = new WeakMap<Connection, ClientCertificate>();
  let caCertificates = toCaCertificates({ ca: options.tls?.clientCa });
  const retainedNames = new RetainedNames(limits.maxRetainedBytes);
  const streamDeps = { snapshots, workers, events, clock, metrics, limits, retainedNames, open };
  const unfinishedRequests = createUnfinishedRequests({
    clock,
    maxBytes: limits.maxUnfinishedBytes,
    timeoutMs: limits.requestMs,
  });
  const server = createHttp2Server(limits, options.tls);
  const listener = createListener({ pauseOnConnect: true });
  const maxConnections = options.tls ? limits.maxTlsConnections : limits.maxConnections;
  const connectionLimit = limitConnections(listener, {
    max: maxConnections,
    onClosed(which) {
      const text = `xDS: there are already ${maxConnections} connections: the ${which} one was closed`;
      events.warning.report(text, 'too_many_connections');
    },
    clock,
  });
  const entrance = createEntrance({
    clock,
    max: limits.maxOpening,
    openingMs: limits.openingMs,
    // Sends the settings; under TLS the client must send first.
    greet(socket) {
      if (options.tls === undefined) server.emit('connection', socket);
    },
    read(socket) {
      if (options.tls !== undefined) server.emit('connection', socket);
      socket.resume();
    },
  });
  let calls = 0;
  let stopping: Promise<void> | undefined;

  const { aggregated, rateLimitConfig } = deps.protos;
  const methods = new Map<string, OpenCall>([
    [aggregated.StreamAggregatedResources.path, openStream(protocols.aggregatedSotw)],
    [aggregated.DeltaAggregatedResources.path, openStream(protocols.aggregatedDelta)],
    [rateLimitConfig.StreamRlsConfigs.path, openStream(protocols.dedicatedSotw)],
    ...(deps.methods ?? []),
  ]);
  const rights = new OpenRights<StreamCall>({
    clock: deps.clock,
    onLost(call, reason) {
      metrics.dropped('unauthenticated');
      const text = `xDS: a call of ${call.peerAddress} was ended: ${reason}`;
      events.warning.report(text, 'unauthenticated');
      call.finish(grpcStatus.unauthenticated, reason);
      // A client that does not read is not waited for.
      clock.after(lostMs, () => call.abort());
    },
  });
  const callDeps: CallDeps = {
    maxMessageBytes: limits.maxRequestBytes,
    unfinishedRequests,
    clock,
    onClose(call) {
      calls--;
      rights.delete(call);
    },
  };
  const connectionDeps: ConnectionDeps = {
    clock,
    limits,
    onClose: (session) => void connections.delete(session),
  };

  function openStream<Request extends object>(protocol: DiscoveryProtocol<Request>): OpenCall {
    return (call) => new DiscoveryStream(streamDeps, protocol, call);
  }

  function onSession(session: ServerHttp2Session): void {
    const connection = new Connection(session, connectionDeps);
    connections.set(session, connection);
    if (caCertificates !== undefined) certificates.set(connection, new ClientCertificate(session));
    const { socket } = session;
    session.once('localSettings', () => {
      connectionLimit.use(socket, connection);
      entrance.opened(socket);
    });
  }

  function onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const connection = stream.session && connections.get(stream.session as ServerHttp2Session);
    const refuse = (status: GrpcStatus, text: string): void =>
      refuseCall(stream, { status, text, clock });
    const method = methods.get(headers[':path'] ?? '');
    if (connection === undefined || stopping !== undefined) {
      refuse(grpcStatus.unavailable, 'the control plane is stopping');
    } else if (headers[':method'] !== 'POST' || !isGrpc(headers['content-type'])) {
      refuse(grpcStatus.internal, 'this port speaks only gRPC');
    } else if (method === undefined) {
      refuse(grpcStatus.unimplemented, `unknown method ${headers[':path']?.slice(0, 200)}`);
    } else if (calls >= limits.maxStreams) {
      metrics.dropped('too_many_streams');
      const text = `there are ${calls} streams already`;
      warnRefused(connection, text, 'too_many_streams');
      refuse(grpcStatus.resourceExhausted, text);
    } else {
      const allowed: Authorization = authorize?.(headers) ?? { ok: true };
      const reason = allowed.ok ? reasonAgainst(connection) : allowed.reason;
      if (!allowed.ok || reason !== undefined) {
        const text = reason ?? '';
        metrics.dropped('unauthenticated');
        warnRefused(connection, text, 'unauthenticated');
        refuse(grpcStatus.unauthenticated, text);
        return;
      }
      calls++;
      const call = new StreamCall(stream, connection, callDeps, method);
      rights.add(call, () => allowed.reasonAgainst?.() ?? reasonAgainst(connection));
    }
  }

  /** Checks a client whose connection is older than the TLS material in force. */
  function reasonAgainst(connection: Connection): string | undefined {
    return (
      caCertificates && certificates.get(connection)?.reasonAgainst(caCertificates, clock.wallMs())
    );
  }

  function warnRefused({ peerAddress }: Connection, text: string, reason: DropReason): void {
    events.warning.report(`xDS: ${peerAddress} was refused: ${text}`, reason);
  }

  async function stopOnce(graceMs: number): Promise<void> {
    const closed = listener.listening ? once(listener, 'close') : undefined;
    listener.close();
    entrance.close();
    open.finish(grpcStatus.unavailable, 'the control plane is stopping');
    for (const connection of connections.values()) connection.goAway();
    const cancelTimer = clock.after(graceMs, () => {
      for (const connection of [...connections.values()]) connection.close();
    });
    await closed;
    cancelTimer();
    open.stop();
    rights.stop();
    events.info.flush();
    events.warning.flush();
  }

  listener.on('connection', entrance.come);
  server.on('session', onSession);
  server.on('stream', onStream);
  server.on('tlsClientError', (error: Error) => {
    events.warning.report(`xDS: a TLS handshake failed: ${errorText(error)}`, 'tls');
  });

  return {
    workers,
    async start() {
      const where = `${options.host}:${options.port}`;
      try {
        listener.listen({ host: options.host, port: options.port, backlog });
        await once(listener, 'listening');
      } catch (error) {
        const text = `the xDS server cannot listen on ${where}: ${errorText(error)}`;
        throw new AppError('cannot_start', text, { cause: error });
      }
      // A later error of the listener, such as a lack of file descriptors, does not affect open connections.
      listener.on('error', (error) => {
        events.warning.report(`xDS: the listener failed: ${errorText(error)}`, 'listener');
      });
      return (listener.address() as AddressInfo).port;
    },
    refresh: () => {
      if (stopping === undefined) open.refresh();
    },
    stop(graceMs) {
      stopping ??= stopOnce(graceMs);
      return stopping;
    },
    replaceTls(tls) {
      // Whether clients need a certificate cannot change after the server is created.
      const hadClientCa = options.tls?.clientCa !== undefined;
      if (!('setSecureContext' in server) || hadClientCa !== (tls.clientCa !== undefined)) {
        throw new AppError('internal', 'TLS and client certificates cannot be switched on or off');
      }
      server.setSecureContext(toTlsOptions(tls));
      caCertificates = toCaCertificates({ ca: tls.clientCa });
    },
  };
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
