// Events and WebSockets over real connections.
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import Fastify from 'fastify';
import Type from 'typebox';
import { WebSocket } from 'ws';
import { eventually } from '../../../test/support/eventually.ts';
import type { ErrorReport } from '../answer/error-report.ts';
import { type App, type AppOptions, createApp } from '../app.ts';
import { Controller } from '../controller.ts';
import { HttpError } from '../errors.ts';
import { bearer } from '../guard.ts';
import { fastifyPlugin } from '../mounts/fastify.ts';
import { createNodeServer } from '../mounts/node-http.ts';
import { type Fields, op } from '../op.ts';
import { createTestClient } from '../test-client.ts';
import { EventStream } from './event-stream.ts';
import { ServerEvent } from './server-event.ts';

let ended = Promise.withResolvers<string>();

class Ticks extends Controller {
  static readonly GET = op({
    produces: 'text/event-stream',
    query: Type.Object({ kind: Type.String({ default: 'some' }) }),
  });
  async *GET({ kind }: Fields<typeof Ticks.GET>) {
    if (kind === 'refused') throw new HttpError(409, { detail: 'not now' });
    try {
      if (kind === 'late') await once(this.request.signal, 'abort');
      yield { n: 1 };
      yield new ServerEvent('two\nlines', { id: '2', name: 'tick', retryMs: 500 });
      if (kind === 'broken') throw new Error('broken');
      if (kind === 'silent') await once(this.request.signal, 'abort');
      while (kind === 'endless') yield 'x'.repeat(10_000);
    } finally {
      ended.resolve(kind);
    }
  }
}

let bytesEnded = Promise.withResolvers<void>();

class Bytes extends Controller {
  static override readonly protocols = ['v2', 'v1'];
  static readonly MESSAGE = op({ raw: true }, (_fields, bytes) => bytes.toReversed());
  static readonly DISCONNECT = op({}, () => bytesEnded.resolve());
  static readonly POST = op({ raw: true }, (_fields, bytes) => bytes);
  CONNECT() {
    if (!['v2', ''].includes(this.socket.protocol)) throw new HttpError(409);
  }
}

class Rooms extends Controller {
  static readonly CONNECT = op({
    path: [Type.String()],
    query: Type.Object({ name: Type.String({ default: 'ann' }) }),
  });
  static readonly MESSAGE = op({ body: Type.Object({ text: Type.String({ maxLength: 1000 }) }) });
  #name = '';
  #count = 0;

  CONNECT({ name }: Fields<typeof Rooms.CONNECT>, room: string) {
    if (room === 'full') throw new HttpError(409, { detail: 'the room is full' });
    if (room === 'private') return false;
    if (room === 'paid') return new HttpError(402);
    if (room === 'old') return new Response('', { status: 401 });
    if (room === 'left') this.socket.close(4001, 'moved');
    if (room === 'none') this.socket.close(1005);
    if (room === 'long') this.socket.close(1000, 'ü'.repeat(62));
    this.#name = name;
    this.response.headers.set('set-cookie', 'seat=1');
    this.socket.send({ welcome: name, room });
    return undefined;
  }
  async MESSAGE({ text }: Fields<typeof Rooms.MESSAGE>) {
    if (text === 'defect') throw new Error('secret');
    if (text === 'late') return new HttpError(409, { detail: 'not now' });
    if (text === 'flood') for (let at = 0; at < 100; at += 1) this.socket.send('x'.repeat(100_000));
    await Promise.resolve();
    this.#count += 1;
    return { from: this.#name, text, count: this.#count };
  }
  DISCONNECT({ code }: { code: number }) {
    ended.resolve(`${this.#name} ${code}`);
  }
}

/** Set by the around of each application. */
const store = new AsyncLocalStorage<string>();

class Closed extends Controller {
  static override readonly guard = bearer((token) => token === 'right');
  CONNECT() {
    this.socket.send('in');
  }
  MESSAGE() {
    return store.getStore() ?? 'outside';
  }
}

interface Mounted {
  readonly port: number;
  readonly app: App;
  readonly reports: readonly ErrorReport[];
}

type Mount = (app: App) => Promise<{ readonly port: number; stop(): Promise<unknown> }>;

const mounts: Readonly<Record<string, Mount>> = {
  async 'node:http'(app) {
    const server = createNodeServer(app).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return {
      port,
      async stop() {
        server.closeAllConnections();
        app.endLive();
        await once(server.close(), 'close');
      },
    };
  },
  async fastify(app) {
    const fastify = Fastify({ forceCloseConnections: true });
    await fastify.register(fastifyPlugin(app), { prefix: '/live' });
    await fastify.listen({ port: 0, host: '127.0.0.1' });
    return { port: (fastify.server.address() as AddressInfo).port, stop: () => fastify.close() };
  },
};

type Run = (
  t: ExecutionContext,
  mounted: Mounted & { readonly prefix: string },
) => Promise<unknown>;

/** On both servers; below `/live` on Fastify. */
function onEach(title: string, run: Run, limits?: AppOptions['limits']): void {
  on(Object.keys(mounts), title, run, limits);
}

/** For WebSockets, which Fastify's plugin does not open. */
function onNode(title: string, run: Run, limits?: AppOptions['limits']): void {
  on(['node:http'], title, run, limits);
}

function on(names: readonly string[], title: string, run: Run, limits: AppOptions['limits'] = {}) {
  for (const name of names) {
    const mount = mounts[name] as Mount;
    test.serial(`${name}: ${title}`, async (t) => {
      ended = Promise.withResolvers();
      const reports: ErrorReport[] = [];
      const app = await createApp({
        loadModules: () => new Map([['', { Ticks, Rooms, Bytes, Closed }]]),
        limits,
        around: async (next, { path }) => {
          if (path === '/rooms/page') return new Response('own page');
          const answer = await store.run('inside', next);
          if (path === '/rooms/later') answer.status = 503;
          for (const name of ['a', 'b']) answer.headers.append('vary', name);
          return answer;
        },
        warn: () => {},
        reportError: (report) => reports.push(report),
      });
      const { port, stop } = await mount(app);
      try {
        await run(t, { port, app, reports, prefix: name === 'fastify' ? '/live' : '' });
      } finally {
        await stop();
      }
    });
  }
}

function get(port: number, path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest({ port, path }).on('response', resolve).on('error', reject).end();
  });
}

async function readUntil(response: AsyncIterable<Buffer>, part: string): Promise<string> {
  let text = '';
  for await (const chunk of response) {
    text += chunk;
    if (text.includes(part)) return text;
  }
  return text;
}

/** The messages as they arrive, from the first on. */
function connect(port: number, path: string, headers = {}) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers });
  const messages: unknown[] = [];
  const waiting: ((message: unknown) => void)[] = [];
  socket.on('message', (data) => {
    const message: unknown = JSON.parse(String(data));
    const next = waiting.shift();
    if (next === undefined) messages.push(message);
    else next(message);
  });
  socket.on('error', () => {});
  const read = async () =>
    messages.length > 0 ? messages.shift() : new Promise((resolve) => waiting.push(resolve));
  return { socket, read, closed: once(socket, 'close').then(([code]) => code as number) };
}

async function refusalOf(port: number, path: string, headers = {}) {
  const { socket } = connect(port, path, headers);
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
  response.resume();
  return response.statusCode;
}

onEach('values of a generator are sent as events, until its end', async (t, server) => {
  const response = await get(server.port, `${server.prefix}/ticks`);
  t.is(response.headers['content-type'], 'text/event-stream');
  t.is(
    await readUntil(response, 'never'),
    'data:{"n":1}\n\nid:2\nevent:tick\nretry:500\ndata:"two\\nlines"\n\n',
  );
  t.is(await ended.promise, 'some');
});

onEach('an exception before the first event is answered with its status', async (t, server) => {
  t.is((await get(server.port, `${server.prefix}/ticks?kind=refused`)).statusCode, 409);
});

onEach('a later exception ends the events, and is reported', async (t, server) => {
  const response = await get(server.port, `${server.prefix}/ticks?kind=broken`);
  await t.throwsAsync(readUntil(response, 'never'));
  t.deepEqual(
    server.reports.map(({ error }) => (error as Error).message),
    ['broken'],
  );
});

onEach(
  'a reader who disconnects ends a generator that has begun, waits or sends',
  async (t, server) => {
    for (const kind of ['late', 'silent', 'endless']) {
      ended = Promise.withResolvers();
      const response = await get(server.port, `${server.prefix}/ticks?kind=${kind}`);
      if (kind !== 'late') await once(response, 'readable');
      response.destroy();
      t.is(await ended.promise, kind);
    }
    t.deepEqual(server.reports, []);
  },
);

test('an invalid event is not sent to a reader of events', async (t) => {
  class News extends Controller {
    static readonly GET = op({ produces: 'text/event-stream' });
    static readonly POST = op({ produces: 'text/event-stream' });
    GET(): unknown {
      return 5;
    }
    static readonly PATCH = op({ produces: 'text/event-stream' });
    PATCH() {
      return new Blob(['data:1\n\n']);
    }
    // Ends events for which a browser would otherwise reconnect.
    POST() {}
    static readonly PUT = op({ produces: 'text/event-stream' });
    async *PUT() {
      yield 1n;
    }
    static readonly DELETE = op({ produces: 'text/event-stream' });
    async *DELETE() {
      yield new HttpError(409);
    }
  }
  const { send, reports } = await createTestClient({ '': { News } });
  t.is((await send('GET', '/news')).status, 500);
  t.regex(String(reports[0]?.error), /a method that produces text\/event-stream is an async/);
  t.is((await send('POST', '/news')).status, 204);
  t.is((await send('PATCH', '/news')).text, 'data:1\n\n', 'events already');
  t.is((await send('PUT', '/news')).status, 500);
  t.is((await send('DELETE', '/news')).status, 409);
  t.regex(String(reports[1]?.error), /serialize a BigInt/);
});

test('a generator makes no event before there is room for it', async (t) => {
  let made = 0;
  async function* count() {
    for (;;) {
      made += 1;
      yield made;
    }
  }
  const stream = new EventStream(count(), 1000, () => {});
  const reader = stream[Symbol.asyncIterator]();
  for (const _ of [1, 2, 3]) await reader.next();
  t.is(made, 3);
  await reader.return?.();
});

onEach(
  'silence is filled with comments',
  async (t, server) => {
    const response = await get(server.port, `${server.prefix}/ticks?kind=silent`);
    t.regex(await readUntil(response, '\n\n:\n\n'), /two/);
  },
  { heartbeatMs: 20 },
);

onNode('a class with CONNECT is a WebSocket with one instance', async (t, { port, prefix }) => {
  const { socket, read, closed } = connect(port, `${prefix}/rooms/blue?name=bob`);
  const [upgrade] = (await once(socket, 'upgrade')) as [IncomingMessage];
  t.deepEqual(upgrade.headers['set-cookie'], ['seat=1']);
  t.deepEqual(await read(), { welcome: 'bob', room: 'blue' });
  for (const text of ['one', 'two']) socket.send(JSON.stringify({ text }));
  t.deepEqual(await read(), { from: 'bob', text: 'one', count: 1 });
  t.deepEqual(await read(), { from: 'bob', text: 'two', count: 2 });
  socket.close(4000);
  t.is(await closed, 4000);
  t.is(await ended.promise, 'bob 4000');
});

onNode('an exception in CONNECT refuses the handshake', async (t, { port, prefix }) => {
  t.is(await refusalOf(port, `${prefix}/rooms/later`), 503, 'changed by an around');
  t.is(await ended.promise, 'ann 1006');
  t.is(await refusalOf(port, `${prefix}/rooms/full`), 409);
  t.is(await refusalOf(port, `${prefix}/rooms/private`), 403, 'false lets no caller in');
  t.is(await refusalOf(port, `${prefix}/rooms/old`), 403);
  t.is(await refusalOf(port, `${prefix}/rooms/paid`), 402);
  t.is(await connect(port, `${prefix}/rooms/left`).closed, 4001, 'closed by CONNECT');
  t.is(await refusalOf(port, `${prefix}/rooms/none`), 500, 'a code that no frame can have');
  t.is(await refusalOf(port, `${prefix}/rooms/long`), 500, 'a reason that no frame can have');
  t.is(await refusalOf(port, `${prefix}/rooms`), 404);
  t.is(await refusalOf(port, `${prefix}/rooms/a?nme=b`), 400);
  t.is(await refusalOf(port, '/elsewhere'), 404);
});

onNode('a guard is asked before the handshake', async (t, { port, prefix }) => {
  t.is(await refusalOf(port, `${prefix}/closed`), 401);
  const { read, socket } = connect(port, `${prefix}/closed`, { authorization: 'Bearer right' });
  t.is(await read(), 'in');
  socket.send('{}');
  t.is(await read(), 'inside', 'what an around has opened holds for messages');
});

onNode('a page of another site cannot open a WebSocket', async (t, { port, prefix }) => {
  t.is(await refusalOf(port, `${prefix}/rooms/a`, { origin: 'https://evil.example' }), 403);
  t.is(await refusalOf(port, `${prefix}/rooms/a`, { origin: 'null' }), 403);
  const { read } = connect(port, `${prefix}/rooms/a`, { origin: `http://127.0.0.1:${port}` });
  t.deepEqual(await read(), { welcome: 'ann', room: 'a' });
});

onNode(
  'a wrong message is answered with what is wrong, and the connection stays',
  async (t, { port, prefix }) => {
    const { socket, read } = connect(port, `${prefix}/rooms/a`);
    await read();
    for (const text of ['5,"more":1', '', '1,"__proto__":1', '"late"', '"fine"']) {
      socket.send(`{"text":${text}}`);
    }
    t.like(await read(), {
      error: { status: 400, errors: [{ name: 'more', reason: 'is unknown' }] },
    });
    for (const status of [400, 400, 409]) t.like(await read(), { error: { status } });
    t.like(await read(), { text: 'fine' });
  },
);

onNode('a defect ends the connection with 1011 and shows nothing', async (t, server) => {
  const { socket, read, closed } = connect(server.port, `${server.prefix}/rooms/a`);
  await read();
  socket.pause();
  socket.send('{"text":"defect"}');
  await eventually('it is closed', () => server.reports.length > 0);
  // What a client sends before it reads that is not handled.
  socket.send('{"text":"defect"}');
  socket.close();
  socket.resume();
  const failure = await read();
  t.like(failure, { error: { status: 500 } });
  t.notRegex(JSON.stringify(failure), /secret/);
  t.is(await closed, 1011);
  t.deepEqual(
    server.reports.map(({ error }) => (error as Error).message),
    ['secret'],
  );
});

onNode(
  'a class chooses a subprotocol, and takes bytes as they are',
  async (t, { port, prefix }) => {
    const open = (protocols: string[]) =>
      new WebSocket(`ws://127.0.0.1:${port}${prefix}/bytes`, protocols);
    bytesEnded = Promise.withResolvers();
    const socket = open(['other', 'v1', 'v2']);
    await once(socket, 'open');
    t.is(socket.protocol, 'v2');
    socket.send(Buffer.from([0, 255]));
    const [answer, isBinary] = await once(socket, 'message');
    t.deepEqual([[...answer], isBinary], [[255, 0], true]);
    socket.send('text');
    t.is(String((await once(socket, 'message'))[0]), 'txet');
    socket.close();
    await bytesEnded.promise;
    t.is(await refusalOf(port, `${prefix}/bytes`, { 'sec-websocket-protocol': 'other' }), 400);
    const plain = open([]);
    await once(plain, 'open');
    t.is(plain.protocol, '');
    plain.close();
    const unasked = new WebSocket(`ws://127.0.0.1:${port}${prefix}/rooms/a`, ['any']);
    const [error] = await once(unasked, 'error');
    t.regex(String(error), /no subprotocol/, 'a class that has none chooses none');
  },
);

onNode('a binary or too long message closes the connection', async (t, { port, prefix }) => {
  const binary = connect(port, `${prefix}/rooms/a`);
  await binary.read();
  binary.socket.send(Buffer.from('{"text":"a"}'));
  t.is(await binary.closed, 1003);
  const long = connect(port, `${prefix}/rooms/a`);
  await long.read();
  long.socket.send('x'.repeat(64 * 1024 + 1));
  t.is(await long.closed, 1009);
});

onNode('a client that does not read its messages is cut off', async (t, { port, prefix }) => {
  const { socket, read } = connect(port, `${prefix}/rooms/a`);
  await read();
  socket.pause();
  socket.send('{"text":"flood"}');
  t.is(await ended.promise, 'ann 1006');
});

onNode(
  'a client that answers no ping is cut off',
  async (t, { port, prefix }) => {
    const silent = new WebSocket(`ws://127.0.0.1:${port}${prefix}/rooms/a`, { autoPong: false });
    await once(silent, 'close');
    t.is(await ended.promise, 'ann 1006');
  },
  { heartbeatMs: 50 },
);

onNode(
  'more connections than may be open are refused until one has ended',
  async (t, { port, prefix, reports }) => {
    const { socket, read, closed } = connect(port, `${prefix}/rooms/a`);
    await read();
    t.is(await refusalOf(port, `${prefix}/rooms/a`), 503);
    const refused = await get(port, `${prefix}/ticks`);
    t.is(refused.statusCode, 503);
    t.regex(await readUntil(refused, '}'), /too many connections are open; ask again/);
    t.deepEqual(reports, [], 'a bound is no failure');
    socket.close();
    await closed;
    await ended.promise;
    t.is((await get(port, `${prefix}/ticks`)).statusCode, 200);
  },
  { liveConnections: 1 },
);

onNode('the end of the application ends events and sockets', async (t, { port, prefix, app }) => {
  const { read, closed } = connect(port, `${prefix}/rooms/a`);
  await read();
  const response = await get(port, `${prefix}/ticks?kind=silent`);
  const all = readUntil(response, 'never');
  app.endLive();
  t.is(await closed, 1001);
  t.regex(await all, /two/);
});

onNode('a WebSocket is distinguished from the methods of its path', async (t, { port, prefix }) => {
  t.is((await get(port, `${prefix}/rooms/a`)).statusCode, 426);
  t.is(await refusalOf(port, `${prefix}/ticks`), 200, 'upgrading is ignored');
  const asked = httpRequest({ port, method: 'OPTIONS', path: `${prefix}/rooms/a` }).end();
  const [{ statusCode, headers }] = (await once(asked, 'response')) as [IncomingMessage];
  t.deepEqual([statusCode, headers.allow], [204, 'GET, OPTIONS']);
  const { socket } = connect(port, `${prefix}/rooms/page`);
  const [, page] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
  t.is(await readUntil(page, 'never'), 'own page');
});

onNode('a handshake that is not whole is answered as any request', async (t, { port, prefix }) => {
  for (const [method, key, version, status] of [
    ['POST', 'dGhlIHNhbXBsZSBub25jZQ==', '13', 405],
    ['GET', 'short', '13', 426],
    ['GET', 'dGhlIHNhbXBsZSBub25jZQ==', '7', 426],
  ] as const) {
    const own = { 'sec-websocket-key': key, 'sec-websocket-version': version };
    const headers = { connection: 'Upgrade', upgrade: 'websocket', ...own };
    const asked = httpRequest({ port, method, path: `${prefix}/rooms/a`, headers }).end();
    const [{ statusCode, headers: given }] = await once(asked, 'response');
    t.deepEqual([statusCode, given['content-type']], [status, 'application/problem+json'], key);
    t.is(given['sec-websocket-version'], status === 426 ? '13' : undefined);
  }
});

onNode(
  'a request for another protocol is answered like any other request',
  async (t, { port, prefix }) => {
    const headers = { connection: 'Upgrade', upgrade: 'h2c' };
    const asked = httpRequest({ port, path: `${prefix}/bytes`, method: 'POST', headers });
    const [response] = (await once(asked.end('tea'), 'response')) as [IncomingMessage];
    t.is(await readUntil(response, 'never'), 'tea');
    t.is(response.headers.vary, 'a, b', 'each header that stands twice is sent');
  },
);

test('an event whose name would end its line is refused', (t) => {
  t.throws(() => new ServerEvent(1, { name: 'a\ndata:2' }), { instanceOf: TypeError });
  t.throws(() => new ServerEvent(1, { id: 'a\rb' }), { instanceOf: TypeError });
  for (const retryMs of ['1\nevent:x' as never, Number.NaN, -1, 0.5])
    t.throws(() => new ServerEvent(1, { retryMs }), { message: /^retryMs/ });
});
