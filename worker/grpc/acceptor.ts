// Accepts the connections of a gRPC listener: TCP or unix socket, plain or TLS, with a check of the client's name. The
// transport implements the protocol.
import { X509Certificate } from 'node:crypto';
import { lstatSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createSecureContext, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { Clock } from '../../shared/clock.ts';
import {
  type ConnectionUse,
  handshakeLimitMs,
  limitConnections,
  maxUnfinishedHandshakes,
} from '../../shared/connection-limit.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { createRepeatedLog } from '../../shared/repeated-log.ts';
import { type ListenAddress, type ListenTarget, listen, toListenError } from './listen-address.ts';
import type { GrpcListenerNames, GrpcTls, ServerCertificates } from './transport.ts';

/** Time limit for the first byte, after the TLS handshake if any. */
const silenceLimitMs = 10_000;
/**
 * Default limits: with TLS a connection takes some 67 kB, else some 22 kB. Both limits fit into the chart's 512 MiB,
 * beside everything else.
 */
export const maxPlainConnections = 10_000;
export const maxTlsConnections = 3000;
/** The reference's interval of TCP keep-alive probes. */
const keepAliveMs = 15_000;

export interface Acceptor {
  start(): Promise<ListenAddress>;
  replaceCertificates(certificates: ServerCertificates): void;
  /** Stops accepting; open connections stay open. */
  stopAccepting(): void;
  hasConnections(): boolean;
  /** Destroys every connection. */
  destroyConnections(): void;
  /** Resolves when no listener and no connection is left. */
  closed(): Promise<void>;
}

export interface AcceptorDeps {
  readonly names: GrpcListenerNames;
  readonly target: ListenTarget;
  readonly tls: GrpcTls | undefined;
  readonly log: Log;
  readonly clock: Clock;
  readonly maxConnections: number | undefined;
  readonly onRefused: (() => void) | undefined;
  /** Takes over an accepted connection, and returns its use. */
  readonly onConnection: (socket: Socket) => ConnectionUse;
}

export function createAcceptor(deps: AcceptorDeps): Acceptor {
  const { names, target, tls, log, clock, onConnection } = deps;
  const max = deps.maxConnections ?? (tls === undefined ? maxPlainConnections : maxTlsConnections);
  const repeatedLog = createRepeatedLog({ clock, write: log.warning, again: 'in-time' });
  const sockets = new Set<Socket>();
  const tlsServer = tls && createTls(tls);
  const server: Server = tlsServer ?? createServer((socket) => serve(socket));
  const closed = new Promise<void>((resolve) => {
    server.once('close', () => {
      repeatedLog.flush();
      resolve();
    });
  });
  let isListening = false;

  function createTls({ cert, key, clientCa, clientSan }: GrpcTls) {
    const secure = createTlsServer(
      {
        ...toContextOptions({ cert, key, clientCa }),
        requestCert: clientCa !== undefined,
        ALPNProtocols: ['h2'],
        handshakeTimeout: handshakeLimitMs,
      },
      (socket: TLSSocket) => {
        const problem = clientSan === undefined ? undefined : checkClient(socket, clientSan);
        if (problem === undefined) serve(socket);
        else {
          repeatedLog.report(`error validating client: ${problem}`, problem);
          socket.on('error', () => {});
          socket.destroy();
        }
      },
    );
    secure.on('tlsClientError', (error) => {
      if (log.isDebug) log.debug(`TLS handshake failed: ${errorText(error)}`);
    });
    return secure;
  }

  function serve(socket: Socket): void {
    socket.on('error', () => {});
    const cancel = clock.after(silenceLimitMs, () => {
      if (socket.bytesRead === 0) socket.destroy();
    });
    socket.once('close', cancel);
    limit.use(socket, onConnection(socket));
  }

  const limit = limitConnections(server, {
    max,
    ...(tls === undefined ? {} : { maxHandshakes: maxUnfinishedHandshakes }),
    onClosed(which) {
      deps.onRefused?.();
      repeatedLog.report(
        `there are already ${max} ${names.listener} connections: the ${which} one was closed; ${names.maxConnections} sets the maximum`,
        which,
      );
    },
    clock,
  });
  server.on('connection', (socket: Socket) => {
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepAliveMs);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });

  return {
    async start() {
      if ('path' in target && !target.isShared) await removeStaleSocket(target.path, target, names);
      const address = await listen(server, target, names);
      isListening = true;
      return address;
    },
    replaceCertificates(certificates) {
      if (tlsServer === undefined) throw new Error('the listener has no certificates to replace');
      tlsServer.setSecureContext(toContextOptions(certificates));
    },
    stopAccepting() {
      if (isListening) server.close();
    },
    hasConnections: () => sockets.size > 0,
    destroyConnections() {
      for (const socket of sockets) socket.destroy();
    },
    closed: () => (isListening ? closed : Promise.resolve()),
  };
}

/** Throws when certificate and key do not match, before anything uses them. */
function toContextOptions({ cert, key, clientCa }: ServerCertificates) {
  const options = { cert, key, ...(clientCa === undefined ? {} : { ca: clientCa }) };
  createSecureContext(options);
  return options;
}

/** Checks the name only: the handshake has verified the chain. */
function checkClient(socket: TLSSocket, san: string): string | undefined {
  const raw = socket.getPeerCertificate().raw as Buffer | undefined;
  if (raw === undefined) return 'it presented no certificate';
  const certificate = new X509Certificate(raw);
  // A common name does not replace a missing alternative name.
  if (certificate.checkHost(san, { subject: 'never' }) !== undefined) return undefined;
  const names = certificate.subjectAltName ?? 'no alternative names';
  return `its certificate is valid for ${names}, not ${san}`;
}

/** Removes the socket file of a killed process, which would prevent the next one from listening. */
async function removeStaleSocket(
  path: string,
  target: ListenTarget,
  names: GrpcListenerNames,
): Promise<void> {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined) return;
  if (!status.isSocket()) {
    throw new AppError(
      'cannot_start',
      `cannot listen for ${names.listener} on the unix socket ${path}: it is a file and not a socket; ` +
        `remove it, or set ${names.path} to another path`,
    );
  }
  if (await isAnswered(path)) {
    throw toListenError(Object.assign(new Error('in use'), { code: 'EADDRINUSE' }), target, names);
  }
  try {
    unlinkSync(path);
  } catch (error) {
    throw toListenError(error, target, names);
  }
}

/** Only a refusal proves that no process listens. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path });
    const settle = (answered: boolean) => {
      probe.destroy();
      resolve(answered);
    };
    probe.setTimeout(1000, () => settle(true));
    probe.once('connect', () => settle(true));
    probe.once('error', (error: NodeJS.ErrnoException) => settle(error.code !== 'ECONNREFUSED'));
  });
}
