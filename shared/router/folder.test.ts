import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import test from 'ava';
import Type from 'typebox';
import { eventually } from '../../test/support/eventually.ts';
import { createApp } from './app.ts';
import { Controller } from './controller.ts';
import { HttpError } from './errors.ts';
import { defineFolder, type StateOf } from './folder.ts';
import { bearer } from './guard.ts';
import { op } from './op.ts';
import { createTestClient } from './test-client.ts';

const ann = { authorization: 'Bearer ann' };

test('a folder guards everything below it, and passes its controllers the caller', async (t) => {
  const folder = defineFolder({
    guard: bearer((token, request) => {
      request.state['user'] = token;
      return token === 'ann';
    }),
    before: ({ state }) => ({ name: String(state['user']).toUpperCase() }),
  });
  class Default extends Controller<StateOf<typeof folder>> {
    GET() {
      return this.state.name;
    }
  }
  const modules = { '': { Open: class extends Default {} }, 'notes._folder': { folder } };
  const client = await createTestClient({
    ...modules,
    notes: { Default },
    'notes.old': { Default },
  });
  for (const path of ['/notes', '/notes/old']) {
    t.is((await client.send('GET', path)).status, 401);
    t.is((await client.send('GET', path, { headers: ann })).json, 'ANN');
  }
  t.is((await client.send('GET', '/open')).status, 204);
});

test('folders run from the outside in before a method, and from the inside out after it', async (t) => {
  const order: string[] = [];
  const named = (name: string) =>
    defineFolder({
      before: () => void order.push(`before ${name}`),
      after: ({ headers }) => {
        order.push(`after ${name}`);
        headers.append('x-after', name);
      },
    });
  class Default extends Controller {
    GET() {
      order.push('GET');
    }
  }
  const client = await createTestClient({
    _folder: { folder: named('outer') },
    'a._folder': { folder: named('inner') },
    a: { Default },
  });
  const { status, headers } = await client.send('GET', '/a');
  t.is(status, 204);
  t.is(headers.get('x-after'), 'inner, outer');
  t.deepEqual(order, ['before outer', 'before inner', 'GET', 'after inner', 'after outer']);
});

test('a folder turns what is thrown into another error, and sees the answer to it', async (t) => {
  const seen: number[] = [];
  const folder = defineFolder({
    onError: (error) =>
      error instanceof RangeError ? new HttpError(409, { detail: 'taken' }) : undefined,
    after: ({ status }) => void seen.push(status),
  });
  class Default extends Controller {
    GET() {
      throw new RangeError('a name is taken');
    }
    PUT() {
      throw new TypeError('a defect');
    }
  }
  const client = await createTestClient({ _folder: { folder }, '': { Default } });
  t.like((await client.send('GET', '/')).json, { status: 409, detail: 'taken' });
  t.is((await client.send('PUT', '/')).status, 500);
  t.deepEqual(seen, [409, 500]);
  t.is(client.reports.length, 1);
});

test('a folder replaces a body, and its length with it', async (t) => {
  const folder = defineFolder({
    after: (answer) => {
      answer.body = `${answer.body}!`;
      if (answer.body === '"none"!') answer.status = 204;
    },
  });
  class Default extends Controller {
    static readonly GET = op({}, () => 'tea');
    static readonly PUT = op({}, () => 'none');
  }
  const client = await createTestClient({ _folder: { folder }, '': { Default } });
  const { text, headers } = await client.send('GET', '/');
  t.is(text, '"tea"!');
  t.is(headers.get('content-length'), '6');
  t.is((await client.send('PUT', '/')).headers.get('content-type'), null, 'of a 204');
});

test('limits of a method go before those of its folder, and those before the application', async (t) => {
  const body = Type.Object({ text: Type.String() });
  class Default extends Controller {
    static readonly POST = op({ body });
    POST() {}
    static readonly PUT = op({ body, limits: { bodyBytes: 100 } });
    PUT() {}
  }
  const folder = defineFolder({ limits: { bodyBytes: 50 } });
  const client = await createTestClient({
    'a._folder': { folder },
    a: { Default },
    b: { Default },
  });
  const statusOf = async (method: string, path: string, length: number) =>
    (await client.send(method, path, { body: { text: 'a'.repeat(length) } })).status;
  t.is(await statusOf('POST', '/a', 60), 413);
  t.is(await statusOf('PUT', '/a', 60), 204);
  t.is(await statusOf('PUT', '/a', 110), 413);
  t.is(await statusOf('POST', '/b', 110), 204);
});

test('a method that takes too long is aborted, and its caller is answered 503', async (t) => {
  const aborted = Promise.withResolvers<void>();
  class Default extends Controller {
    static readonly GET = op({ limits: { methodTimeoutMs: 20 } });
    async GET() {
      this.request.signal.addEventListener('abort', () => aborted.resolve());
      await pause(60_000, undefined, { ref: false, signal: this.request.signal });
    }
    static readonly POST = Default.GET;
    async POST() {
      await once(this.request.signal, 'abort');
      return late;
    }
    static readonly PUT = Default.GET;
    async *PUT() {
      yield await once(this.request.signal, 'abort');
    }
    static readonly DELETE = op({
      limits: { methodTimeoutMs: 20 },
      guard: { authenticates: true, check: () => new Promise(() => {}) },
    });
    DELETE() {}
    static readonly PATCH = Default.GET;
    PATCH() {}
  }
  const late = Readable.from(['tea']);
  const folder = defineFolder({
    before: async ({ method, signal }) =>
      void (method === 'PATCH' && (await once(signal, 'abort'))),
  });
  const client = await createTestClient({ _folder: { folder }, '': { Default } });
  for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'])
    t.is((await client.send(method, '/')).status, 503);
  await aborted.promise;
  await eventually('what comes late is ended', () => late.destroyed);
  const [report] = client.reports;
  t.true(report?.error instanceof HttpError);
  t.regex(String((report?.error as HttpError | undefined)?.cause), /no answer within 20 ms/);
});

test('a before that returns false lets no caller pass: what it finds out is an object or nothing', async (t) => {
  class Default extends Controller {
    GET() {
      return 'secret';
    }
  }
  for (const value of [false, true, null, 'no', Promise.resolve(false), new Response('no')]) {
    const folder = defineFolder({ before: () => value as unknown as object });
    const client = await createTestClient({ _folder: { folder }, '': { Default } });
    t.is((await client.send('GET', '/')).status, 500);
    t.regex(String(client.reports[0]?.error), /the before of a folder returned .*; it returns/);
  }
});

test('_folder.ts of a folder on disk is found, and one without a folder keeps the application from starting', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'folder-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'notes'));
  const file = join(root, 'notes', '_folder.mjs');
  await writeFile(file, 'export const folder = {};');
  const error = await t.throwsAsync(createApp({ controllerPrefix: root }));
  const position = relative('', file);
  t.is(error.message, `${position}: notes._folder must export one folder, made by defineFolder()`);
});
