// A fastify server reduced to what our HTTP ports need: every method on every path, plain text errors in the
// reference's wording, bounded waits, and a clean stop.
import { METHODS } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import type { Clock } from '../../shared/clock.ts';
import { handshakeLimitMs, limitHttpConnections } from '../../shared/connection-limit.ts';
import { errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { noSchemas } from '../../shared/no-schemas.ts';
import { createRepeatedLog } from '../../shared/repeated-log.ts';
import type { TlsWatch } from '../../shared/tls.ts';
import { boundAddress, type ListenAddress, toListenError } from '../grpc/listen-address.ts';
import type { Metrics } from '../metrics.ts';
import { type ListenerName, listeners } from './listeners.ts';
import { readServerTls, type ServerTlsFiles } from './server-tls.ts';

export interface HttpListener {
  /** Rejects with AppError `cannot_start`. */
  start(): Promise<ListenAddress>;
  /** Accepts no more connections, lets requests in flight finish, and ends the others after `graceMs`. Idempotent. */
  stop(graceMs: number): Promise<void>;
}

export interface PlainHttpServer extends HttpListener {
  /** From now on each answer closes its connection, and asks Envoy to use other servers. */
  turnAway(): void;
}

export interface HttpTarget {
  readonly host: string;
  readonly port: number;
  /** Undefined for plain HTTP. */
  readonly tls?: (ServerTlsFiles & { readonly metrics: Metrics }) | undefined;
  /** Whether only this process listens on the port; other ports are shared by the worker's processes. */
  readonly exclusive?: boolean;
}

export interface PlainHttpDeps extends HttpTarget {
  readonly name: ListenerName;
  /** The name by which the address's setting was given, if not by its first name. */
  readonly setting?: string;
  /** How long a connection may be idle in the middle of a request or answer. */
  readonly stallLimitMs: number;
  /** Concurrent connections; at the limit the least used one is closed for the next. */
  readonly maxConnections: number;
  readonly log: Log;
  readonly clock: Clock;
}

/** Time limits for the headers and for the complete request, and how often they are checked. */
export const headersLimitMs = 10_000;
export const requestLimitMs = 30_000;
const limitCheckMs = 1000;
/** Longer than the usual idle time of a caller's pool, so that the caller closes first. */
const keepAliveMs = 72_000;

/** `routes` adds the caller's routes, with `method: METHODS`, and reads bodies itself. */
export function createPlainHttpServer(
  {
    name,
    setting,
    host,
    port,
    exclusive = false,
    stallLimitMs,
    maxConnections,
    tls,
    log,
    clock,
  }: PlainHttpDeps,
  routes: (server: FastifyInstance) => void,
): PlainHttpServer {
  const limits = { headersTimeout: headersLimitMs, connectionsCheckingInterval: limitCheckMs };
  const server = fastify({
    logger: false,
    exposeHeadRoutes: false,
    connectionTimeout: stallLimitMs,
    requestTimeout: requestLimitMs,
    // Requests that still arrive on a kept-alive connection are answered like the rest.
    return503OnClosing: false,
    keepAliveTimeout: keepAliveMs,
    // Certificates are set before the server listens.
    ...(tls === undefined
      ? { http: limits }
      : { https: { ...limits, handshakeTimeout: handshakeLimitMs } }),
    routerOptions: { maxParamLength: 1024 },
    schemaController: noSchemas,
    frameworkErrors: (_error, _request, reply) => sendError(reply, 400, 'Bad Request'),
    clientErrorHandler(error, socket) {
      // A client that failed the TLS handshake could not read an answer.
      const isAboutHttp = /^(HPE|ERR_HTTP)_/.test(error.code ?? '');
      if (socket.writable && isAboutHttp) {
        socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
      } else socket.destroy();
    },
  });
  // Without this, fastify would parse bodies by content type, and refuse unknown types.
  for (const method of METHODS) server.addHttpMethod(method, { overrideExisting: true });
  server.setErrorHandler((error, _request, reply) => {
    log.error(`defect in the ${name} port: ${errorText(error)}`);
    return sendError(reply, 500, 'Internal Server Error');
  });
  // A kept-alive connection would prevent the port from closing.
  server.addHook('onSend', async (_request, reply) => {
    if (isTurningAway) {
      reply.header('connection', 'close').header('x-envoy-immediate-health-check-fail', 'true');
    }
  });
  routes(server);

  const repeatedLog = createRepeatedLog({ clock, write: log.warning, again: 'in-time' });
  limitHttpConnections(server.server, {
    max: maxConnections,
    isTls: tls !== undefined,
    onClosed(which) {
      repeatedLog.report(
        `there are already ${maxConnections} connections to the ${name} port: the ${which} one was closed`,
        which,
      );
    },
    clock,
  });
  const sockets = new Set<Socket>();
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  let isTurningAway = false;
  let stopping: Promise<void> | undefined;
  let certificateWatch: TlsWatch | undefined;

  async function followCertificates({ metrics, ...files }: NonNullable<typeof tls>): Promise<void> {
    const secure = server.server as HttpsServer;
    secure.on('tlsClientError', (error) => {
      if (log.isDebug) log.debug(`TLS handshake failed: ${errorText(error)}`);
    });
    const { certificates, watch } = await readServerTls(files, name, { clock, log, metrics });
    secure.setSecureContext(certificates);
    certificateWatch = watch((renewed) => secure.setSecureContext(renewed));
  }

  function turnAway(): void {
    isTurningAway = true;
  }

  async function stopOnce(graceMs: number): Promise<void> {
    turnAway();
    certificateWatch?.close();
    const cancelTimer = clock.after(graceMs, () => {
      for (const socket of sockets) socket.destroy();
    });
    await server.close();
    cancelTimer();
    repeatedLog.flush();
  }

  return {
    async start() {
      if (tls !== undefined) await followCertificates(tls);
      try {
        await server.listen({ host, port, exclusive });
      } catch (error) {
        certificateWatch?.close();
        const names = listeners[name];
        const renamed = setting === undefined ? {} : { host: setting, port: setting };
        throw toListenError(error, { host, port }, { ...names, ...renamed });
      }
      const address = boundAddress(server.server);
      log.notice(`Listening for ${name} on '${address.text}'`);
      return address;
    },
    turnAway,
    stop(graceMs) {
      stopping ??= stopOnce(graceMs);
      return stopping;
    },
  };
}

export function sendText(reply: FastifyReply, status: number, body: string): FastifyReply {
  return reply.code(status).type('text/plain; charset=utf-8').send(body);
}

/** Sends one sentence and a line break, with a header against content sniffing. */
export function sendError(reply: FastifyReply, status: number, text: string): FastifyReply {
  return sendText(reply.header('x-content-type-options', 'nosniff'), status, `${text}\n`);
}
