// The application as a Fastify plugin: one route for everything below its prefix. The host's hooks run; the application
// does its own parsing, error handling and limits.
import { METHODS } from 'node:http';
import { type Duplex, Readable } from 'node:stream';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { toErrorResponse } from '../answer/problem.ts';
import { HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { ListedHeaders } from '../request/listed-headers.ts';
import { type Dispatch, isBuffered, type ResponseLike } from '../request/request.ts';
import { toOriginForm } from '../request/target.ts';
import { answerUnreadable, endUnread, trackAnswer } from './connection.ts';
import { toRequestLike } from './node-http.ts';

/** The part of an application that the plugin uses. */
interface Mounted {
  readonly dispatch: Dispatch;
  readonly limits: Limits;
  endLive?(): void;
}

/** These types replace Fastify's own, which an application need not have installed. */
export interface FastifyHost {
  /** The path that the plugin is registered under. */
  readonly prefix: string;
}

export interface FastifyHostOptions {
  readonly routerOptions: { readonly maxParamLength: number };
  readonly clientErrorHandler: (error: Error, socket: Duplex) => void;
  readonly frameworkErrors: (error: unknown, request: HostRequest, reply: HostReply) => void;
}

interface HostRequest {
  readonly id: string;
  readonly log: { error(error: unknown): void };
}

interface HostReply {
  readonly raw: { flushHeaders(): void };
  code(status: number): unknown;
  header(name: string, value: unknown): unknown;
  send(body?: unknown): unknown;
}

/** Methods for which Fastify ignores the Content-Type. */
const unparsedMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'TRACE']);

/** For `Fastify({ ...fastifyOptions(app) })`: options that a plugin cannot set, so that requests which do not reach it
 * are answered like those of the application. */
export function fastifyOptions({ limits }: Mounted): FastifyHostOptions {
  return {
    routerOptions: { maxParamLength: limits.targetBytes },
    clientErrorHandler: answerUnreadable,
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
  };
}

/** `app.register(fastifyPlugin(application), { prefix: '/admin' })`. */
export function fastifyPlugin({
  dispatch,
  endLive,
}: Mounted): (host: FastifyHost) => Promise<void> {
  return async (host) => {
    const instance = host as FastifyInstance;
    instance.server.on('request', trackAnswer);
    if (endLive !== undefined) instance.addHook('preClose', async () => endLive());
    const given = new WeakMap<FastifyRequest, FastifyRequest['headers']>();
    for (const method of METHODS) {
      if (method !== 'CONNECT' && !instance.supportedMethods.includes(method)) {
        instance.addHttpMethod(method, { hasBody: true });
      }
    }
    instance.removeAllContentTypeParsers();
    // Fastify refuses a Content-Type that it cannot read before any guard has run, even with an empty body: this
    // replaces the header until Fastify has chosen the parser.
    instance.addHook('preParsing', async (request) => {
      if (unparsedMethods.has(request.method)) return;
      given.set(request, request.headers);
      request.headers = { ...request.headers, 'content-type': 'application/octet-stream' };
    });
    instance.addContentTypeParser('*', (request, payload, done) => {
      request.headers = given.get(request) ?? request.headers;
      done(null, payload);
    });
    instance.setErrorHandler((error, request, reply) => sendError(error, request, reply));
    for (const url of instance.prefix === '' ? ['*'] : ['', '/*']) {
      instance.route({
        method: instance.supportedMethods,
        url,
        exposeHeadRoute: false,
        handler: (request, reply) => handle(instance, dispatch, request, reply),
      });
    }
  };
}

async function handle(
  instance: FastifyInstance,
  dispatch: Dispatch,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const given = toRequestLike(request.raw, reply.raw);
  const target = belowPrefix(given.target, instance.prefix);
  const answer =
    target === undefined
      ? toErrorResponse(new HttpError(404), request.id)
      : await dispatch({ ...given, target });
  if (!request.raw.complete) endUnread(request.raw, reply.raw);
  send(answer, reply);
  return reply;
}

/** Cut off after dot parts are resolved: `/admin/../ops` is not below `/admin`, although Fastify's
 * router finds it there. */
function belowPrefix(target: string, prefix: string): string | undefined {
  if (prefix === '') return target;
  const url = URL.parse(`http://host${toOriginForm(target)}`);
  const rest = url?.pathname.startsWith(prefix) ? url.pathname.slice(prefix.length) : undefined;
  if (url === null || rest === undefined || !/^(?:\/|$)/.test(rest)) return undefined;
  return `${rest || '/'}${url.search}`;
}

/** Errors of Fastify itself: raised before the plugin's route, or in a hook of the host. */
function sendError(error: unknown, request: HostRequest, reply: HostReply): void {
  const { statusCode: status = 500, message = '' } = Object(error) as Partial<FastifyError>;
  const isRefusal = status >= 400 && status < 500;
  if (!isRefusal) request.log.error(error);
  const known = isRefusal ? new HttpError(status, { detail: message }) : new HttpError(500);
  send(toErrorResponse(known, request.id), reply);
}

function send({ status, headers, body }: ResponseLike, reply: HostReply): void {
  reply.code(status);
  // Of a repeated name Fastify would send only the last value, except for cookies.
  for (const [name, value] of new ListedHeaders(headers)) reply.header(name, value);
  if (body === undefined) reply.send();
  else if (typeof body === 'string') reply.send(Buffer.from(body));
  else reply.send(isBuffered(body) ? Buffer.from(body) : Readable.from(withHead(body, reply)));
}

/** By the time it is read, Fastify has set the head, which would otherwise wait for the first chunk. */
function withHead(body: AsyncIterable<Uint8Array>, { raw }: HostReply): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = body[Symbol.asyncIterator]();
      return {
        next() {
          raw.flushHeaders();
          return iterator.next();
        },
        return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
      };
    },
  };
}
