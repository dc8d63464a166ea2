// The router's mount suite on node:http, on Fastify, and on a third-party fetch server.
import { once } from 'node:events';
import { request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import test from 'ava';
import Fastify from 'fastify';
import Type from 'typebox';
import { type App, createApp } from '../../shared/router/app.ts';
import { Controller } from '../../shared/router/controller.ts';
import { fastifyOptions, fastifyPlugin } from '../../shared/router/mounts/fastify.ts';
import { createNodeServer } from '../../shared/router/mounts/node-http.ts';
import { op } from '../../shared/router/op.ts';
import { type MountedServer, testRouterMount } from './router-mount.ts';

testRouterMount({ name: 'node:http', start: startNode, skip: {} });

testRouterMount({ name: 'fastify', start: startFastify, skip: {} });

testRouterMount({
  name: 'fetch',
  start: startFetch,
  skip: {
    'unknown-method': "the fetch server's parser refuses unknown methods itself",
    'unreadable-request': 'the fetch server answers unreadable requests itself',
    'peer-address': "a WHATWG Request does not know its peer's address",
    'get-body': 'a WHATWG Request has no body with GET',
  },
});

test('fastify: the plugin serves below its prefix, and the hooks and routes of the host stay', async (t) => {
  class Default extends Controller {
    GET() {
      return { path: this.request.path };
    }
  }
  const app = await createApp({ loadModules: () => new Map([['ops', { Default }]]) });
  const host = Fastify(fastifyOptions(app));
  host.addHook('onRequest', async (request, reply) => {
    if (request.headers['x-refuse'] !== undefined)
      return reply.code(403).send({ refused: 'by the host' });
    return undefined;
  });
  const types: unknown[] = [];
  host.addHook('preValidation', async ({ headers }) => {
    types.push(headers['content-type']);
  });
  host.get('/health', async () => ({ ok: true }));
  await host.register(fastifyPlugin(app), { prefix: '/admin' });
  const get = async (url: string, headers = {}) => {
    const response = await host.inject({ url, headers });
    return [response.statusCode, response.json()];
  };
  t.deepEqual(await get('/health'), [200, { ok: true }]);
  t.deepEqual(await get('/admin/ops'), [200, { path: '/ops' }]);
  t.deepEqual(await get('/admin/ops', { 'x-refuse': '1' }), [403, { refused: 'by the host' }]);
  for (const method of ['GET', 'POST'] as const) {
    const headers = { 'content-type': 'text/odd; charset' };
    await host.inject({ method, url: '/admin/ops', headers, payload: method === 'GET' ? '' : 'x' });
  }
  t.deepEqual(types, [undefined, undefined, 'text/odd; charset', 'text/odd; charset']);
  t.is((await get('/admin'))[0], 404);
  t.is((await get('/adminops'))[0], 404);
  await host.listen({ host: '127.0.0.1', port: 0 });
  const { port } = host.server.address() as AddressInfo;
  const statuses = ['/admin/ops', '/admin/../ops', '/%61dmin/ops', 'http://host/admin/ops?'].map(
    async (path) => {
      const [response] = await once(request({ port, path }).end(), 'response');
      response.resume();
      return response.statusCode;
    },
  );
  t.deepEqual(await Promise.all(statuses), [200, 404, 404, 200]);
  await host.close();
});

test('fetch: the fragment of a request is not part of its target', async (t) => {
  class Default extends Controller {
    static readonly GET = op({ rest: Type.String(), query: Type.Object({ q: Type.String() }) });
    GET({ q }: { q: string }, ...rest: string[]) {
      return { rest, q };
    }
  }
  const app = await createApp({ loadModules: () => new Map([['', { Default }]]) });
  const response = await app.fetch(new Request('http://host/a?q=b#c?d#e'));
  t.deepEqual(await response.json(), { rest: ['a'], q: 'b' });
});

test('node:http: CONNECT is answered', async (t) => {
  const app = await createApp({ loadModules: () => new Map() });
  const { port, stop } = await startNode(app);
  const sent = request({ port, method: 'CONNECT', path: 'a:80' }).end();
  const [response] = await once(sent, 'connect');
  t.is(response.statusCode, 400);
  sent.destroy();
  await stop();
});

async function startNode(app: App): Promise<MountedServer> {
  const server = createNodeServer(app);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return toMounted(server);
}

async function startFastify(app: App): Promise<MountedServer> {
  const fastify = Fastify(fastifyOptions(app));
  await fastify.register(fastifyPlugin(app));
  await fastify.listen({ host: '127.0.0.1', port: 0 });
  const { port } = fastify.server.address() as AddressInfo;
  return { port, stop: () => fastify.close() };
}

async function startFetch(app: App): Promise<MountedServer> {
  const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }) as Server;
  await once(server, 'listening');
  return toMounted(server);
}

function toMounted(server: Server): MountedServer {
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
