import { setTimeout as pause } from 'node:timers/promises';
import test from 'ava';
import Type from 'typebox';
import { Controller } from '../controller.ts';
import { HttpError, Redirect, Stop } from '../errors.ts';
import { defineFolder } from '../folder.ts';
import { bearer } from '../guard.ts';
import { op } from '../op.ts';
import type { Around } from '../request/request.ts';
import { createTestClient } from '../test-client.ts';
import { type RequestLogEntry, requestLog } from './request-log.ts';

class Default extends Controller {
  static readonly GET = op({ query: Type.Object({ n: Type.Optional(Type.Integer()) }) });
  GET() {
    return 'tea';
  }
  static readonly PUT = op({ guard: bearer(() => false) });
  PUT() {}
  PATCH() {
    throw new RangeError('a defect');
  }
}

test('every request below a folder is surrounded, also one that no method answers', async (t) => {
  const entries: RequestLogEntry[] = [];
  const folder = defineFolder({ around: requestLog((entry) => entries.push(entry)) });
  const client = await createTestClient({
    '': { Default },
    'notes._folder': { folder },
    notes: { Default },
    'notes.deep.below': { Default },
  });
  const targets = [
    ['GET', '/notes', 200],
    ['HEAD', '/notes', 200],
    ['GET', '/notes?n=x', 400],
    ['PUT', '/notes', 401],
    ['PATCH', '/notes', 500],
    ['DELETE', '/notes', 405],
    ['OPTIONS', '/notes', 204],
    ['BREW', '/notes', 501],
    ['GET', '/notes/7', 404],
    ['GET', '/notes/deep', 404],
  ] as const;
  for (const [method, target, status] of targets) {
    t.is((await client.send(method, target)).status, status, `${method} ${target}`);
  }
  for (const target of ['/', '/other', '/%ff']) await client.send('GET', target);
  t.deepEqual(
    entries.map(({ method, path, status }) => [method, path, status]),
    targets.map(([method, target, status]) => [method, target.replace(/\?.*/, ''), status]),
  );
  t.true(entries.every(({ durationMs }) => durationMs >= 0 && durationMs < 60_000));
});

test('the around of an application surrounds targets that are not well-formed, too', async (t) => {
  const entries: RequestLogEntry[] = [];
  const around = requestLog((entry) => entries.push(entry));
  const client = await createTestClient({ '': { Default } }, { around });
  for (const target of ['/%ff\u0007?secret=1', '*', '/none', `/${'a'.repeat(9_000)}`]) {
    await client.send('GET', target);
  }
  t.deepEqual(
    entries.map(({ path, status }) => [path.slice(0, 10), status]),
    [
      ['/%25ff%07', 400],
      ['/', 400],
      ['/none', 404],
      ['/aaaaaaaaa', 414],
    ],
  );
});

test('an around answers instead: with a page for an error, which stays in the log, or without asking further', async (t) => {
  const around: Around = async (next, { path }) => {
    if (path === '/closed') return new Response('later', { status: 503 });
    if (path === '/moved') throw new Redirect('/');
    if (path === '/stopped') throw new Stop(202, { queued: true });
    if (path === '/refused') throw new HttpError(409, { detail: 'taken' });
    const answer = await next();
    if (answer.status === 404) return new Response('<p>nothing here</p>', answer);
    if (answer.error instanceof RangeError) return new Response('sorry', { status: 500 });
    return answer;
  };
  let calls = 0;
  class Closed extends Controller {
    GET() {
      calls += 1;
    }
  }
  const client = await createTestClient({ '': { Default, Closed } }, { around });
  const of = async (method: string, path: string) => {
    const { status, text } = await client.send(method, path);
    return [status, text];
  };
  t.deepEqual(await of('GET', '/closed'), [503, 'later']);
  t.is(calls, 0);
  t.is((await client.send('GET', '/moved')).headers.get('location'), '/');
  t.deepEqual(await of('GET', '/stopped'), [202, '{"queued":true}']);
  t.is((await client.send('GET', '/refused')).status, 409);
  t.deepEqual(await of('GET', '/none'), [404, '<p>nothing here</p>']);
  t.deepEqual(client.reports, []);
  t.deepEqual(await of('PATCH', '/'), [500, 'sorry']);
  t.deepEqual(
    client.reports.map(({ status, error }) => [status, String(error)]),
    [[500, 'RangeError: a defect']],
  );
});

test('the first around is outermost: of the application, of outer folders, of inner ones', async (t) => {
  const order: string[] = [];
  const named =
    (name: string): Around =>
    async (next) => {
      order.push(`> ${name}`);
      const answer = await next();
      order.push(`< ${name}`);
      return answer;
    };
  const outer = defineFolder({ around: [named('outer'), named('outer 2')] });
  const inner = defineFolder({ around: named('inner'), before: () => void order.push('before') });
  const modules = { _folder: { folder: outer }, 'a._folder': { folder: inner }, a: { Default } };
  const client = await createTestClient(modules, { around: named('application') });
  t.is((await client.send('GET', '/a')).status, 200);
  const names = ['application', 'outer', 'outer 2', 'inner'];
  t.deepEqual(order, [
    ...names.map((name) => `> ${name}`),
    'before',
    ...names.toReversed().map((name) => `< ${name}`),
  ]);
});

test('a mistake of an around returns 500 with its reason in the log', async (t) => {
  const arounds: Readonly<Record<string, Around>> = {
    'calls next\\(\\) once': async (next) => {
      await next();
      return next();
    },
    'returns the answer of next\\(\\), or a Response': (async (next: () => unknown) => {
      await next();
    }) as never,
    'body of an answer is a text, bytes, a stream': async (next) => {
      const answer = await next();
      answer.body = { tea: true } as never;
      return answer;
    },
    '99 is no status': async (next) => {
      const answer = await next();
      answer.status = 99;
      return answer;
    },
    'the stream of the answer has been read': async (next) => {
      const answer = await next();
      const { body } = new Response('tea');
      body?.getReader();
      answer.body = body as ReadableStream<Uint8Array>;
      return answer;
    },
    'header "a b" cannot be sent': async (next) => {
      const answer = await next();
      answer.headers.set('a b', '');
      return answer;
    },
  };
  for (const [reason, around] of Object.entries(arounds)) {
    const client = await createTestClient({ '': { Default } }, { around });
    t.is((await client.send('GET', '/')).status, 500, reason);
    t.is(client.reports.length, 1, reason);
    t.regex(String(client.reports[0]?.error), new RegExp(reason));
  }
});

test('a stream that an around reads and does not replace, or that fails while it reads, is a 500', async (t) => {
  const fails = async function* () {
    yield Buffer.from('tea');
    throw new Error('the disk is gone');
  };
  for (const [isStream, reason] of [
    [false, /the disk is gone/],
    [true, /has read the stream of an answer/],
  ] as const) {
    class Stream extends Controller {
      GET() {
        return isStream ? new Blob(['tea']).stream() : ReadableStream.from(fails());
      }
    }
    const around: Around = async (next) => {
      const answer = await next();
      const chunks = await Array.fromAsync(answer.body as AsyncIterable<Uint8Array>);
      if (!isStream) answer.body = Buffer.concat(chunks);
      return answer;
    };
    const client = await createTestClient({ '': { Stream } }, { around });
    t.is((await client.send('GET', '/stream')).status, 500);
    t.regex(String(client.reports[0]?.error), reason);
  }
});

test('a stream of which an around has read a part before it throws is ended', async (t) => {
  const cancelled = Promise.withResolvers<void>();
  const around: Around[] = [
    async (next) => {
      const { body } = await next();
      await (body as AsyncIterable<string>)[Symbol.asyncIterator]().next();
      throw new HttpError(409);
    },
    () => new Response(new ReadableStream({ pull, cancel: () => cancelled.resolve() })),
  ];
  const pull = (chunks: ReadableStreamDefaultController) => chunks.enqueue('tea');
  const client = await createTestClient({ '': { Default } }, { around });
  t.is((await client.send('GET', '/')).status, 409);
  await cancelled.promise;
});

test('a Response may read the stream of the answer that it replaces, which ends with it', async (t) => {
  let ended = 0;
  class Stream extends Controller {
    GET() {
      return ReadableStream.from(
        (async function* () {
          try {
            yield Buffer.from('green ');
            yield Buffer.from('tea');
          } finally {
            ended += 1;
          }
        })(),
      );
    }
  }
  const around: Around = async (next, { path }) => {
    const answer = await next();
    const { body } = answer;
    return new Response(path === '/stream' ? ReadableStream.from(body as never) : null);
  };
  const client = await createTestClient({ '': { Stream } }, { around });
  t.is((await client.send('GET', '/stream')).text, 'green tea');
  t.is((await client.send('GET', '/STREAM')).text, '');
  t.is(ended, 2);
  t.deepEqual(client.reports, []);
});

test('an around that does not wait for its answer aborts the request, and ends what comes late', async (t) => {
  const seen = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  class Slow extends Controller {
    async GET() {
      const { signal } = this.request;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      seen.resolve();
      return new ReadableStream({ cancel: () => ended.resolve() });
    }
  }
  const around: Around = (next) =>
    Promise.race([next(), pause(20).then(() => new Response('late', { status: 504 }))]);
  const client = await createTestClient({ '': { Slow } }, { around });
  t.is((await client.send('GET', '/slow')).status, 504);
  await seen.promise;
  await ended.promise;
  t.deepEqual(client.reports, []);
});

test('the AsyncLocalStorage of an around is available in the methods below', async (t) => {
  const { AsyncLocalStorage } = await import('node:async_hooks');
  const store = new AsyncLocalStorage<string>();
  class Who extends Controller {
    async GET() {
      await pause(1);
      return store.getStore();
    }
    static readonly POST = op({ produces: 'text/event-stream' }, async function* () {
      for (const _ of [1, 2]) yield store.getStore();
    });
    async *#names() {
      for (const wait of [1, 1, 1]) yield pause(wait).then(() => store.getStore());
    }
    PUT() {
      return ReadableStream.from(this.#names());
    }
  }
  const around: Around = (next, { id }) => store.run(id, next);
  const { send } = await createTestClient({ '': { Who } }, { around });
  const headers = { 'x-request-id': 'of-ann' };
  t.is((await send('GET', '/who', { headers })).json, 'of-ann');
  t.is((await send('POST', '/who', { headers })).text, 'data:"of-ann"\n\n'.repeat(2));
  t.is((await send('PUT', '/who', { headers })).text, 'of-ann'.repeat(3));
});
