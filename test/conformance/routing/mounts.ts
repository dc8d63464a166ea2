// The four ways to call an application, each as a sender of wire requests; and which cases each of them cannot express,
// with the reason.
import { once } from 'node:events';
import { request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import type { App } from '../../../shared/router/app.ts';
import { fastifyOptions, fastifyPlugin } from '../../../shared/router/mounts/fastify.ts';
import { createNodeServer } from '../../../shared/router/mounts/node-http.ts';
import { toHeaders } from '../../../shared/router/request/request.ts';
import type { RoutingCase } from './case-file.ts';
import type { WireRequest } from './wire-request.ts';

export type MountName = 'core' | 'node' | 'fastify' | 'fetch';

export const mountNames: readonly MountName[] = ['core', 'node', 'fastify', 'fetch'];

export interface WireResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

export interface Mount {
  send(request: WireRequest): Promise<WireResponse>;
  stop(): Promise<void>;
}

/** Why a case is not sent through a mount; undefined if it is. */
export function reasonToSkip(
  mount: MountName,
  { mounts, request }: RoutingCase,
): string | undefined {
  const { method } = request;
  if (mounts !== undefined && !mounts.includes(mount)) return 'the case names its mounts';
  if (mount === 'fetch') {
    const hasBody = ['json', 'form', 'raw', 'multipart'].some((kind) => kind in request);
    if (hasBody && /^(?:get|head)$/i.test(method))
      return 'a WHATWG Request has no body with GET and HEAD';
    if (/^(?:trace|connect|track)$/i.test(method)) return `a WHATWG Request cannot be ${method}`;
    if (/^(?:get|head|post|put|delete|options)$/.test(method))
      return 'a WHATWG Request writes the method in upper case';
  }
  if ((mount === 'node' || mount === 'fastify') && method !== method.toUpperCase())
    return 'the HTTP client writes the method in upper case';
  if (mount === 'fastify' && method === 'CONNECT') return 'Fastify has no route for CONNECT';
  return undefined;
}

export async function startMount(name: MountName, app: App): Promise<Mount> {
  if (name === 'core') return coreMount(app);
  if (name === 'fetch') return fetchMount(app);
  if (name === 'node') {
    const server = createNodeServer(app);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return serverMount(server, async () => {
      server.close();
      server.closeAllConnections();
    });
  }
  const fastify = Fastify(fastifyOptions(app));
  await fastify.register(fastifyPlugin(app));
  await fastify.listen({ host: '127.0.0.1', port: 0 });
  return serverMount(fastify.server, () => fastify.close());
}

function coreMount(app: App): Mount {
  return {
    async send({ method, target, headers, body }) {
      const response = await app.dispatch({
        method,
        target,
        headers: new Headers({ host: 'localhost', ...headers }),
        body: body && chunks(body),
        remoteAddress: '127.0.0.1',
      });
      const pieces: Uint8Array[] = [];
      if (typeof response.body === 'string') pieces.push(Buffer.from(response.body));
      else if (response.body instanceof Uint8Array) pieces.push(response.body);
      else for await (const piece of response.body ?? []) pieces.push(piece);

      return { ...response, headers: toHeaders(response.headers), body: Buffer.concat(pieces) };
    },
    async stop() {},
  };
}

async function* chunks(body: Buffer): AsyncIterable<Uint8Array> {
  if (body.length > 0) yield body;
}

function fetchMount(app: App): Mount {
  return {
    async send({ method, target, headers, body }) {
      const request = new Request(`http://localhost${target}`, {
        method,
        headers,
        body: body === undefined ? null : new Uint8Array(body),
      });
      const response = await app.fetch(request);
      const { status } = response;
      return { status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) };
    },
    async stop() {},
  };
}

function serverMount(server: Server, stop: () => Promise<unknown>): Mount {
  const { port } = server.address() as AddressInfo;
  return {
    async send({ method, target, headers, body }) {
      const isChunked = 'transfer-encoding' in headers;
      const length = body === undefined || isChunked ? {} : { 'content-length': body.length };
      const sent = httpRequest({
        host: '127.0.0.1',
        port,
        method,
        path: target,
        headers: { ...headers, ...length },
        agent: false,
        timeout: 10_000,
      });
      sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
      sent.end(body);
      const [response] = await once(sent, 'response');
      const pieces: Buffer[] = [];
      for await (const piece of response) pieces.push(piece);
      const answered = new Headers();
      for (const [name, values] of Object.entries<string[]>(response.headersDistinct))
        for (const value of values) answered.append(name, value);
      return { status: response.statusCode, headers: answered, body: Buffer.concat(pieces) };
    },
    async stop() {
      await stop();
    },
  };
}
