import type { EventEmitter } from 'node:events';
import { createReadStream } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import Type from 'typebox';
import { eventually } from '../../../test/support/eventually.ts';
import { Controller } from '../controller.ts';
import { HttpError } from '../errors.ts';
import { ServerEvent } from '../live/server-event.ts';
import { op } from '../op.ts';
import { createTestClient } from '../test-client.ts';

/** The answer of a method that returns this value, or sets this on the response. */
async function answerOf(value: () => unknown, draft: { status?: number; mediaType?: string } = {}) {
  class Value extends Controller {
    GET() {
      Object.assign(this.response, draft);
      return value();
    }
  }
  const client = await createTestClient({ '': { Value } });
  const { status, headers, text } = await client.send('GET', '/value');
  return [status, headers.get('content-type'), text];
}

const events = { produces: 'text/event-stream' } as const;
const jsonType = 'application/json;charset=UTF-8';

test('values are JSON, and without a value the answer is 204', async (t) => {
  t.deepEqual(await answerOf(() => 7), [200, jsonType, '7']);
  t.deepEqual(await answerOf(() => 'a'), [200, jsonType, '"a"']);
  t.deepEqual(await answerOf(() => null), [204, null, '']);
  t.deepEqual(await answerOf(async () => undefined, { status: 201 }), [201, null, '']);
});

test('a stream that is not sent is ended, and no answer waits for its end', async (t) => {
  t.deepEqual(await answerOf(() => ({ a: 1 }), { status: 204 }), [204, null, '']);
  let end = () => {};
  const silent = () => new ReadableStream({ cancel: () => new Promise(() => end()) });
  const readable = (chunk: unknown) =>
    new Readable({
      objectMode: true,
      read() {
        this.push(chunk);
      },
      destroy: () => end(),
    });
  const opened = (file: unknown) => (file as EventEmitter).on('close', () => end());
  const own = { returns: { 200: Type.Object({}) }, filter: true } as const;
  for (const [status, value, { method = 'GET', spec = {}, draft = {} }] of [
    [304, silent, { draft: { status: 304 } }],
    [204, () => readable('a'), { draft: { status: 204 } }],
    [200, silent, { method: 'HEAD' }],
    [200, async () => opened(await open('/dev/zero')), { method: 'HEAD' }],
    [500, () => readable({ a: 1 }), {}],
    [500, () => ReadableStream.from(readable({ a: 1 })), {}],
    [500, () => new Response(silent()), { spec: own }],
    [500, () => new Response(silent(), { headers: { 'x-a': 'b\x01' } }), {}],
    [204, () => readable('a').iterator(), { spec: events, draft: { status: 204 } }],
  ] as const) {
    class Value extends Controller {
      static readonly GET = op(spec);
      GET() {
        Object.assign(this.response, draft);
        return value();
      }
    }
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const { send } = await createTestClient({ '': { Value } });
    t.is((await send(method, '/value')).status, status, `${method} ${value}`);
    await ended;
  }
});

test('generators of both kinds are collected', async (t) => {
  async function* later() {
    yield 1;
    yield 2;
  }
  t.deepEqual(await answerOf(later), [200, jsonType, '[1,2]']);
  const source = { [Symbol.asyncIterator]: later };
  t.deepEqual(await answerOf(() => source), [200, jsonType, '[1,2]']);
  t.deepEqual(await answerOf(() => [1].values()), [200, jsonType, '[1]']);
});

test('bytes have no charset, files go by their type or name', async (t) => {
  const octets = 'application/octet-stream';
  t.deepEqual(await answerOf(() => new Uint8Array([97])), [200, octets, 'a']);
  t.deepEqual(await answerOf(() => new Uint8Array([97]).buffer), [200, octets, 'a']);
  t.deepEqual(await answerOf(() => new Blob(['a'])), [200, octets, 'a']);
  t.deepEqual(await answerOf(() => new Blob(['a'], { type: 'image/png' })), [
    200,
    'image/png',
    'a',
  ]);
  t.deepEqual(await answerOf(() => new File(['a'], 'a.CSV')), [200, 'text/csv;charset=UTF-8', 'a']);
});

test('a Node stream is sent as it is, by the name of its file', async (t) => {
  const path = fileURLToPath(new URL('../sample/index.ts', import.meta.url));
  const [status, type, text] = await answerOf(() => createReadStream(path));
  t.deepEqual([status, type], [200, 'application/octet-stream']);
  t.regex(String(text), /class Status/);
});

test('an open file is sent from its current position, and closed afterwards', async (t) => {
  const path = fileURLToPath(new URL('../sample/index.ts', import.meta.url));
  const file = await open(path);
  class Value extends Controller {
    async GET() {
      await file.read({ length: 10 });
      return file;
    }
  }
  const client = await createTestClient({ '': { Value } });
  const { status, headers, text } = await client.send('GET', '/value');
  t.deepEqual([status, headers.get('content-type')], [200, 'application/octet-stream']);
  t.is(text, (await readFile(path, 'utf8')).slice(10));
  await eventually('it is closed', () => file?.fd === -1);
});

test('a Response passes, with the common headers', async (t) => {
  const response = () => new Response('hi', { status: 202, headers: { 'x-a': 'b' } });
  t.deepEqual(await answerOf(response), [202, 'text/plain;charset=UTF-8', 'hi']);
});

test('a named media type sends the plain text of the value unless it is JSON', async (t) => {
  const xml = { mediaType: 'application/xml' };
  t.deepEqual(await answerOf(() => '<a/>', xml), [200, 'application/xml;charset=UTF-8', '<a/>']);
  t.like(await answerOf(() => 7, { mediaType: '' }), [500]);
  t.deepEqual(await answerOf(() => 7, { mediaType: 'text/plain' }), [
    200,
    'text/plain;charset=UTF-8',
    '7',
  ]);
  t.deepEqual(await answerOf(() => 'a', { mediaType: 'application/hal+json' }), [
    200,
    'application/hal+json;charset=UTF-8',
    '"a"',
  ]);
});

test('a value without a JSON text, or whose content would be lost, is a defect: 500', async (t) => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  const collections = [new Map([[1, 2]]), new Set([1]), new URLSearchParams('a=b')];
  const inside = [{ of: [new Map([[1, 2]])] }, { late: Promise.resolve(1) }];
  for (const value of [
    1n,
    cycle,
    () => 1,
    Symbol('a'),
    new Error('a'),
    ...collections,
    ...inside,
  ]) {
    const [status] = await answerOf(() => value);
    t.is(status, 500);
  }
  t.is(
    (await answerOf(() => ({ none: {}, own: new (class Own {})() })))[2],
    '{"none":{},"own":{}}',
  );
});

test('an error that is returned is answered as if it were thrown', async (t) => {
  t.is((await answerOf(() => new HttpError(404)))[0], 404);
  t.is((await answerOf(() => Object.assign(new Error('a'), { path: '/etc' })))[0], 500);
});

test('a stream that has been read or has ended before it is sent is a defect: 500', async (t) => {
  const read = new Response('a');
  await read.text();
  const locked = new Response('a');
  locked.body?.getReader();
  const ended = Readable.from(['a']);
  ended.destroy();
  const failed = Readable.from(['a']);
  failed.destroy(new Error('the disk is gone'));
  for (const value of [read, locked, locked.body, ended, failed]) {
    const [status] = await answerOf(() => value);
    t.is(status, 500);
  }
});

test('a chunk that is neither bytes nor a text fails its stream', async (t) => {
  const texts = new ReadableStream({
    start(controller) {
      controller.enqueue('a');
      controller.close();
    },
  });
  t.like(await answerOf(() => texts), { 2: 'a' });
  await t.throwsAsync(
    answerOf(() => Readable.from(['a', { a: 1 }])),
    { message: /neither bytes/ },
  );
});

test('a value under a type that is not its own is a defect whose message names what to return', async (t) => {
  class Value extends Controller {
    static readonly GET = op({ produces: 'text/csv' }, function* () {
      yield 'a,b';
    });
    static readonly POST = op({}, async function* () {
      yield new ServerEvent(1);
    });
    static readonly PUT = op({}, () => ({ user: Promise.resolve() }));
    static readonly PATCH = op({}, () => {
      throw new HttpError(200);
    });
    static readonly DELETE = op({}, function (this: Value) {
      this.response.status = 201;
      return new Response();
    });
  }
  const { send, reports } = await createTestClient({ '': { Value } });
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
    t.is((await send(method, '/value')).status, 500);
  t.deepEqual(
    reports.map(({ error }) => String(error)),
    [
      'TypeError: a list is sent as JSON, not as text/csv; return a text, bytes, or a stream such as Readable.from(texts)',
      "TypeError: a ServerEvent is sent by op({ produces: 'text/event-stream' })",
      'TypeError: user (Promise) has no JSON text',
      'RangeError: HttpError: 200 is no status of an error; Stop answers with others',
      'TypeError: the method has set 201, and returned a Response with 200',
    ],
  );
});

test('the type is what the method produces, unless it sets another', async (t) => {
  class Value extends Controller {
    static readonly GET = op({ produces: 'text/csv' }, () => Readable.from(['a,', 'b']));
    static readonly PUT = op({ produces: 'image/png' }, function (this: Value) {
      this.response.headers.set('content-type', 'image/gif');
      return new Uint8Array([97]);
    });
  }
  const { send } = await createTestClient({ '': { Value } });
  const typeOf = async (method: string) => {
    const { headers, text } = await send(method, '/value');
    return [headers.get('content-type'), text];
  };
  t.deepEqual(await typeOf('GET'), ['text/csv;charset=UTF-8', 'a,b']);
  t.deepEqual(await typeOf('PUT'), ['image/gif', 'a']);
});
