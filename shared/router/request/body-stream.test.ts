import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request as ask } from 'node:http';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import Type from 'typebox';
import { listenFor } from '../../../test/support/listen.ts';
import { createApp } from '../app.ts';
import { client } from '../client/client.ts';
import { Controller } from '../controller.ts';
import { createNodeServer } from '../mounts/node-http.ts';
import { op } from '../op.ts';
import { createTestClient } from '../test-client.ts';
import { BodyStream } from './body-stream.ts';
import type { BodyPart } from './multipart.ts';

const large = 64 * 1024 * 1024;

/** Receives the outcome of a method that reads to the end. */
const outcomes: unknown[] = [];

class Digests extends Controller {
  static readonly PUT = op(
    { path: [Type.String()], stream: true, limits: { bodyBytes: large } },
    async function (this: Digests, _fields, body, name) {
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of body) {
        hash.update(chunk);
        bytes += chunk.byteLength;
      }
      return { name, bytes, sha256: hash.digest('hex') };
    },
  );
}

class Forms extends Controller {
  static readonly POST = op({ stream: true }, async (_fields, body) => {
    const seen: unknown[] = [];
    for await (const part of body.parts()) seen.push(await describe(part));
    return seen;
  });
}

/** Report how far the method has come that its client disconnects. */
const reading = Promise.withResolvers<void>();
const left = Promise.withResolvers<{ readonly error: unknown; readonly isAborted: boolean }>();

class Firsts extends Controller {
  static readonly PUT = op({ stream: true }, async function (this: Firsts, _fields, body) {
    const { signal } = this.request;
    try {
      for await (const chunk of body) if (chunk.byteLength > 0) reading.resolve();
    } catch (error) {
      left.resolve({ error, isAborted: signal.aborted });
      throw error;
    }
  });
  static readonly POST = op({ stream: true }, async (_fields, body) => {
    for await (const { name } of body.parts()) return name;
    return 'nothing';
  });
  /** Leaves each file at its first chunk, and the form after a field. */
  static readonly PATCH = op(
    { stream: true, limits: { bodyBytes: large } },
    async (_fields, body) => {
      for await (const part of body.parts()) {
        for await (const _chunk of part) break;
        if (part.filename === undefined) return part.name;
      }
      return 'nothing';
    },
  );
}

class Shorts extends Controller {
  static readonly POST = op({ stream: true, limits: { bodyBytes: 10 } }, async (_fields, body) => {
    try {
      return (await Array.fromAsync(body)).length;
    } catch (error) {
      outcomes.push(error);
      throw error;
    }
  });
}

class Starts extends Controller {
  static readonly PUT = op(
    { stream: true, limits: { bodyBytes: large } },
    async (_fields, body) => {
      for await (const chunk of body) return chunk.byteLength > 0;
      return false;
    },
  );
}

class Slow extends Controller {
  static readonly POST = op(
    { stream: true, limits: { bodyTimeoutMs: 50 } },
    async (_fields, body) => (await Array.fromAsync(body)).length,
  );
}

async function describe(part: BodyPart): Promise<unknown> {
  const { name, filename, type } = part;
  if (filename === undefined) return { name, text: await part.text() };
  let bytes = 0;
  for await (const chunk of part) bytes += chunk.byteLength;
  return { name, filename, type, bytes };
}

const modules = { '': { Digests, Forms, Firsts, Shorts, Starts, Slow } };

function toStream(chunks: readonly Uint8Array[]): AsyncIterable<Uint8Array> {
  return (async function* () {
    yield* chunks;
  })();
}

async function listen(t: ExecutionContext) {
  const app = await createApp({ loadModules: () => new Map(Object.entries(modules)) });
  const port = await listenFor(t, createNodeServer(app));
  return { url: `http://127.0.0.1:${port}`, port };
}

test('a body that is streamed is read by its method, and no other bound applies to its size', async (t) => {
  const { url } = await listen(t);
  const chunk = new Uint8Array(1024 * 1024).fill(7);
  const body = new Blob(Array.from({ length: 4 }, () => chunk));
  const answer = await client<typeof modules>(url).Digests.PUT({}, body, 'a');
  t.true(answer.ok);
  const hash = createHash('sha256');
  for (let at = 0; at < 4; at += 1) hash.update(chunk);
  t.deepEqual(answer.ok && answer.value, {
    name: 'a',
    bytes: 4 * chunk.length,
    sha256: hash.digest('hex'),
  });
});

test('a client is read from as fast as the method reads', async (t) => {
  let pulled = 0;
  const body = new BodyStream(
    (async function* () {
      for (; pulled < 100; ) {
        pulled += 1;
        yield new Uint8Array(1);
      }
    })(),
    { type: undefined, limits: { bodyBytes: 1000, bodyTimeoutMs: 1000 } as never },
  );
  const chunks = body[Symbol.asyncIterator]();
  await chunks.next();
  await chunks.next();
  t.is(pulled, 2);
});

test('fields and files of a form come one by one, in their order', async (t) => {
  const { send } = await createTestClient(modules);
  const form = new FormData();
  form.append('title', 'Größe');
  form.append('file', new File(['x'.repeat(300_000)], '../../a.txt', { type: 'text/csv' }));
  form.append('untouched', new File([], ''));
  form.append('note', 'last');
  const { status, json } = await send('POST', '/forms', { body: form });
  t.is(status, 200);
  t.deepEqual(json, [
    { name: 'title', text: 'Größe' },
    { name: 'file', filename: 'a.txt', type: 'text/csv', bytes: 300_000 },
    { name: 'note', text: 'last' },
  ]);
});

test('a part that is not read is dropped, and a method may leave the rest', async (t) => {
  const { send } = await createTestClient(modules);
  const form = new FormData();
  form.append('a', new File(['x'.repeat(300_000)], 'a'));
  form.append('b', 'b');
  t.is((await send('POST', '/firsts', { body: form })).json, 'a');
  const sent = new Response(form);
  const names: string[] = [];
  const body = new BodyStream(sent.body as AsyncIterable<Uint8Array>, {
    type: {
      essence: 'multipart/form-data',
      parameters: new Map([
        ['boundary', sent.headers.get('content-type')?.split('boundary=')[1] ?? ''],
      ]),
    },
    limits: { bodyBytes: 1e6, bodyTimeoutMs: 10_000, multipartParts: 20 } as never,
  });
  for await (const { name } of body.parts()) names.push(name);
  t.deepEqual(names, ['a', 'b']);
});

test('a part and a form that are left keep neither the next part nor the next request waiting', async (t) => {
  const { port } = await listen(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  for (const names of [['note', 'file'], ['file', 'note'], ['note']]) {
    const form = new FormData();
    const file = new File([new Uint8Array(3_000_000)], 'a');
    for (const name of names) form.append(name, name === 'file' ? file : name);
    const sent = new Response(form);
    const headers = { 'content-type': sent.headers.get('content-type') ?? '' };
    const asked = ask({ port, path: '/firsts', method: 'PATCH', agent, headers });
    asked.end(Buffer.from(await sent.arrayBuffer()));
    const [response] = await once(asked, 'response', { signal: AbortSignal.timeout(20_000) });
    t.is(await text(response), '"note"');
  }
});

test.serial('no timer remains when a form is abandoned early', async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  async function* stalling() {
    yield Buffer.from(
      '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n' +
        '--b\r\nContent-Disposition: form-data; name="c"\r\n\r\n',
    );
    await new Promise(() => {});
  }
  const before = timers();
  const body = new BodyStream(stalling(), {
    type: { essence: 'multipart/form-data', parameters: new Map([['boundary', 'b']]) },
    limits: { bodyBytes: 1e6, bodyTimeoutMs: 60_000, multipartParts: 20 } as never,
  });
  for await (const part of body.parts()) {
    t.is(await part.text(), '1');
    t.true(timers() > before, 'the next chunk is waited for');
    break;
  }
  // Lower if a timer of the process itself has ended meanwhile.
  t.true(timers() <= before);
});

// The rest may take a second, during which this process is idle.
test.serial(
  'the rest of a body that a method has begun to read is dropped, and its client not cut',
  async (t) => {
    const { port } = await listen(t);
    const sending = ask({ port, method: 'PUT', path: '/starts' });
    sending.end(Buffer.alloc(10_000_000));
    const [[answer]] = await Promise.all([once(sending, 'response'), once(sending, 'finish')]);
    t.is(answer.statusCode, 200);
    t.is(await new Response(answer).text(), 'true');
  },
);

test('an incomplete or invalid form is refused', async (t) => {
  const { send } = await createTestClient(modules);
  const headers = { 'content-type': 'multipart/form-data; boundary=b' };
  const head = '--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n';
  for (const body of [`${head}abc`, `${head}${'x'.repeat(200_000)}`, '--b', 'nothing']) {
    const { status } = await send('POST', '/forms', { headers, body });
    t.is(status, 400, body.slice(0, 90));
  }
  t.is((await send('POST', '/forms', { body: { a: 1 } })).status, 415);
  const many = new FormData();
  for (let at = 0; at < 21; at += 1) many.append('a', 'b');
  const { status, text } = await send('POST', '/forms', { body: many });
  t.is(status, 400);
  t.regex(text, /more than 20 parts/);
  const long = new FormData();
  long.append('a', 'x'.repeat(64 * 1024 + 1));
  t.is((await send('POST', '/forms', { body: long })).status, 413);
});

test('a streamed body above its limit returns 413: at once where its length is announced, else when too much has come', async (t) => {
  const { app } = await createTestClient(modules);
  const given = { method: 'POST', target: '/shorts', remoteAddress: undefined };
  outcomes.length = 0;
  const answer = await app.dispatch({
    ...given,
    headers: new Headers({ 'content-length': '11' }),
    body: toStream([new Uint8Array(11)]),
  });
  t.is(answer.status, 413);
  t.deepEqual(outcomes, []);
  const chunks = [new Uint8Array(6), new Uint8Array(6)];
  const found = await app.dispatch({ ...given, headers: new Headers(), body: toStream(chunks) });
  t.is(found.status, 413);
  t.is(outcomes.length, 1);
});

test('a client that lets its method wait for too long returns 408', async (t) => {
  const { app } = await createTestClient(modules);
  const { status } = await app.dispatch({
    method: 'POST',
    target: '/slow',
    headers: new Headers(),
    remoteAddress: undefined,
    body: (async function* () {
      yield new Uint8Array(1);
      await new Promise(() => {});
    })(),
  });
  t.is(status, 408);
});

test('a method is notified when its client disconnects in the middle', async (t) => {
  const { port } = await listen(t);
  const sending = ask({ port, method: 'PUT', path: '/firsts' });
  sending.on('error', () => {});
  sending.write('abc');
  await reading.promise;
  sending.destroy();
  const { error, isAborted } = await left.promise;
  t.like(error, { status: 400, message: 'the body broke off' });
  t.true(isAborted);
});

test('an empty body is an empty stream, which is read once', async (t) => {
  const { send } = await createTestClient(modules);
  t.like((await send('PUT', '/digests/a')).json, { bytes: 0 });
  const body = new BodyStream(undefined, { type: undefined, limits: {} as never });
  t.deepEqual(await Array.fromAsync(body), []);
  await t.throwsAsync(Array.fromAsync(body), { message: /read once/ });
});

test('a server lets a request take as long as the slowest body of its methods may', async (t) => {
  class Films extends Controller {
    static readonly PUT = op({ stream: true, limits: { bodyTimeoutMs: 600_000 } }, () => 'seen');
  }
  class Endless extends Controller {
    static readonly PUT = op({ stream: true, limits: { bodyTimeoutMs: Infinity } }, () => 'seen');
  }
  for (const [controllers, expected] of [
    [{ Forms }, 60_000],
    [{ Forms, Films }, 600_000],
    [{ Films, Endless }, 0],
  ] as const) {
    const app = await createApp({ loadModules: () => new Map([['', controllers]]) });
    t.is(createNodeServer(app).requestTimeout, expected);
  }
});
