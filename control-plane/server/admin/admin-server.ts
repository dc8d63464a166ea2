// The admin API's HTTP server: Fastify around the application of admin-app.ts, together with the webhook.
import type { TLSSocket } from 'node:tls';
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify';
import { systemClock } from '../../../shared/clock.ts';
import { handshakeLimitMs, limitHttpConnections } from '../../../shared/connection-limit.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { HostPort } from '../../../shared/host-port.ts';
import type { Log } from '../../../shared/log.ts';
import { noSchemas } from '../../../shared/no-schemas.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import {
  fastifyOptions,
  fastifyPlugin,
  type Guard,
  toErrorText,
} from '../../../shared/router/index.ts';
import { withSourcePositions } from '../../../shared/source-positions.ts';
import type { TlsMaterial } from '../../../shared/tls.ts';
import { createUnfinishedRequests } from '../unfinished-requests.ts';
import { ClientCertificate, OpenRights, toCaCertificates } from '../xds/open-rights.ts';
import type { AdminApi } from './admin-api.ts';
import { createAdminApp, maxBodyBytes, versionPrefix } from './admin-app.ts';
import type { Authorizer } from './authorize.ts';
import { countBody } from './held-bodies.ts';
import { addWebhookRoute, type WebhookDeps } from './webhook-route.ts';
import { toJsonRequest } from './yaml-body.ts';

export interface AdminServerDeps {
  readonly api: AdminApi;
  readonly guard: Guard;
  readonly isAuthenticated: Authorizer['isAuthenticated'];
  readonly webhook: WebhookDeps;
  /** Adds the routes of the console, which require no token. */
  readonly addConsole: (server: FastifyInstance, onError: (text: string) => void) => void;
  readonly log: Log;
  /** Called for each answer; `route` is the first segment of its path. */
  readonly onAnswer: (route: string, method: string, status: number) => void;
}

export interface AdminServerOptions {
  readonly address: HostPort;
  readonly tls: TlsMaterial | undefined;
}

export interface AdminServer {
  /** Resolves to the port; rejects with an AppError `cannot_start`. */
  start(): Promise<number>;
  /** Lets requests in progress finish for `graceMs`. Idempotent. */
  stop(graceMs: number): Promise<void>;
  /** Uses the material for new connections. */
  replaceTls(material: TlsMaterial): void;
}

/** JSON may encode many characters of a text as two. */
const maxYamlBytes = maxBodyBytes / 4;

/** Authenticated connections: `maxBodyBytes` limits each, and users and pipelines are few. */
export const maxConnections = 256;
/** How often refused connections are logged. */
const refusalIntervalMs = 60_000;

/** Unauthenticated connections, from probes and webhooks: each lasts for one request. */
export const maxUnauthenticated = 3000;
/** TLS connections: each takes four times the memory. */
export const maxUnauthenticatedTls = 1024;
export const unauthenticatedLimitMs = 15_000;
/** At most the number of allowed connections, so that every connection is checked before it can be closed. */
const backlog = 1024;
/** Bytes of all bodies being read: enough for two bodies of the largest size. */
export const maxBufferedBytes = 2 * maxBodyBytes;
export const bodyTimeoutMs = 30_000;

/** A write to a slow Git host takes a while, with no data on the connection. */
const timeouts = { connectionTimeout: 180_000, requestTimeout: 60_000, keepAliveTimeout: 72_000 };
/** Time limits before the caller has authenticated. */
export const headTimeouts = { headersTimeout: 10_000, connectionsCheckingInterval: 1000 };

export async function createAdminServer(
  deps: AdminServerDeps,
  options: AdminServerOptions,
): Promise<AdminServer> {
  const { api, guard, isAuthenticated, webhook, addConsole, log, onAnswer } = deps;
  const app = await createAdminApp({
    api,
    guard,
    reportError({ request, status, error }) {
      log.error(
        `admin API: ${request.method} ${request.path} was answered with ${status} (request ${request.id}): ${withSourcePositions(toErrorText(error))}`,
      );
    },
  });
  const unfinished = createUnfinishedRequests({
    clock: systemClock,
    maxBytes: maxBufferedBytes,
    timeoutMs: bodyTimeoutMs,
  });
  const dispatch: typeof app.dispatch = (request) => {
    if (request.body === undefined) return app.dispatch(request);
    const body = countBody(request.body, unfinished);
    return app.dispatch(toJsonRequest({ ...request, body }, maxYamlBytes));
  };
  const serverOptions = { ...fastifyOptions(app), ...timeouts, rewriteUrl: withoutVersion };
  const fastify = createFastify(serverOptions, options.tls);
  fastify.addHook('onResponse', async (request, reply) => {
    const part = request.raw.url?.split(/[/?]/, 2)[1] ?? '';
    onAnswer(known.has(part) ? part : 'other', request.method, reply.statusCode);
  });
  fastify.addHook('onSend', async ({ originalUrl }, reply) => {
    const location = reply.getHeader('location');
    const isPath = typeof location === 'string' && location.startsWith('/');
    if (isPath && withoutVersion({ url: originalUrl }) !== originalUrl) {
      reply.header('location', `${versionPrefix}${location}`);
    }
  });
  const known = new Set([
    'webhooks',
    'console',
    ...app.routes.map(({ path }) => path.split('/')[1] ?? ''),
  ]);
  await addWebhookRoute(fastify, webhook, unfinished);
  addConsole(fastify, log.error);
  await fastify.register(fastifyPlugin({ ...app, dispatch }));
  let stopping: Promise<void> | undefined;
  const refusals = createRepeatedLog({
    clock: api.clock,
    intervalMs: refusalIntervalMs,
    write: log.warning,
  });
  limitHttpConnections(fastify.server, {
    max: maxConnections,
    unauthenticated: isAuthenticated && {
      max: options.tls === undefined ? maxUnauthenticated : maxUnauthenticatedTls,
      limitMs: unauthenticatedLimitMs,
      isAuthenticated,
    },
    isTls: options.tls !== undefined,
    clock: api.clock,
    onClosed(which, max) {
      refusals.report(
        `admin API: there are already ${max} connections: the ${which} one was closed`,
      );
    },
  });

  let caCertificates = toCaCertificates(options.tls);
  const rights = new OpenRights<TLSSocket>({
    clock: api.clock,
    onLost(socket, reason) {
      log.warning(`admin API: a connection of ${socket.remoteAddress} was closed: ${reason}`);
      socket.destroy();
    },
  });
  fastify.server.on('secureConnection', (socket: TLSSocket) => {
    const certificate = new ClientCertificate({ socket });
    const nowMs = api.clock.wallMs;
    rights.add(socket, () => caCertificates && certificate.reasonAgainst(caCertificates, nowMs()));
    socket.once('close', () => rights.delete(socket));
  });

  async function stopOnce(graceMs: number): Promise<void> {
    const { server } = fastify;
    const idle = setInterval(() => server.closeIdleConnections(), 50);
    const grace = setTimeout(() => server.closeAllConnections(), graceMs);
    try {
      await fastify.close();
    } finally {
      clearInterval(idle);
      clearTimeout(grace);
      rights.stop();
    }
  }

  return {
    async start() {
      const { host, port } = options.address;
      try {
        await fastify.listen({ host: host === '' ? '::' : host, port, backlog });
      } catch (error) {
        const text = `the admin API cannot listen on ${host}:${port}: ${errorText(error)}; --admin-address chooses another`;
        throw new AppError('cannot_start', text, { cause: error });
      }
      const address = fastify.server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    },
    stop(graceMs) {
      stopping ??= stopOnce(graceMs);
      return stopping;
    },
    replaceTls(material) {
      const { server } = fastify;
      if ('setSecureContext' in server) {
        (server as import('node:https').Server).setSecureContext(toTlsOptions(material));
        caCertificates = toCaCertificates(material);
      }
    },
  };
}

/** Every path is served with and without the version prefix. */
function withoutVersion({ url = '/' }: { readonly url?: string | undefined }): string {
  return url.startsWith(`${versionPrefix}/`) ? url.slice(versionPrefix.length) : url;
}

function createFastify(
  options: FastifyServerOptions,
  tls: TlsMaterial | undefined,
): FastifyInstance {
  const schemaController = noSchemas;
  if (tls === undefined) {
    return Fastify({ ...options, schemaController, http: headTimeouts } as FastifyServerOptions);
  }
  const https = {
    ...headTimeouts,
    ...toTlsOptions(tls),
    minVersion: 'TLSv1.2' as const,
    handshakeTimeout: handshakeLimitMs,
  };
  return Fastify({ ...options, schemaController, https } as FastifyServerOptions);
}

/** If CAs are given, clients must present a certificate signed by one of them. */
function toTlsOptions({ ca, cert, key }: TlsMaterial) {
  return {
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: true }),
  };
}
