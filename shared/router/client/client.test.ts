import { once } from 'node:events';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import test from 'ava';
import Type from 'typebox';
import * as v from 'valibot';
import { z } from 'zod';
import { listenFor } from '../../../test/support/listen.ts';
import { Controller } from '../controller.ts';
import { HttpError, Stop } from '../errors.ts';
import { bearer } from '../guard.ts';
import { ServerEvent } from '../live/server-event.ts';
import { createNodeServer } from '../mounts/node-http.ts';
import { op } from '../op.ts';
import { optional, part } from '../path-part.ts';
import { createTestClient } from '../test-client.ts';
import { upload } from '../upload.ts';
import { client } from './client.ts';

const found = Type.Object({ since: Type.Integer() });

class Default extends Controller {
  static readonly GET = op({
    path: [optional(part('id', Type.Integer()))],
    query: Type.Object({
      limit: Type.With(Type.Integer(), { default: 20 }),
      tags: Type.Optional(Type.Array(Type.String())),
    }),
    failures: { 409: found },
  });
  GET(fields: { limit: number; tags?: string[] }, id?: number) {
    if (id === 409) throw new HttpError(409, { body: { since: 7 } });
    if (id === 404) throw new HttpError(404, { detail: 'there is no such note' });
    return { ...fields, id: id ?? null, at: new Date(0) };
  }

  static readonly POST = op({ body: Type.Object({ text: Type.String() }) });
  POST({ text }: { text: string }) {
    this.response.status = 201;
    return { text, by: this.request.headers.get('authorization') };
  }

  static readonly DELETE = op({ path: [Type.String()] });
  DELETE(_fields: object, id: string) {
    if (id === 'gone') throw new Stop(202);
  }

  POST_reset_all() {
    return 'reset';
  }
}

class BurstPolicy extends Controller {
  static readonly Inner = class extends Controller {
    ANY() {
      return this.request.method;
    }
  };
  GET() {
    return Buffer.from('bytes');
  }
}

class Robots_txt extends Controller {
  GET() {
    this.response.mediaType = 'text/plain';
    return 'User-agent: *';
  }
}

class Photo extends Controller {
  static readonly POST = op(
    {
      body: Type.Object({
        ...{ file: upload(), title: Type.String(), marks: Type.Array(Type.Integer()) },
      }),
    },
    async ({ file, ...others }) => ({ ...others, text: await file.text() }),
  );
}

class Closed extends Controller {
  static override readonly guard = bearer((token) => token === 'right');
  GET() {
    return 'in';
  }
}

class Hidden extends Controller {
  static override readonly private = true;
  GET() {
    return 1;
  }
}

class BaseController extends Controller {
  GET() {
    return 1;
  }
}

class Count extends Controller {
  static readonly GET = op({ produces: 'text/event-stream' });
  async *GET() {
    yield { n: 1 };
    yield new ServerEvent({ n: 2 }, { id: '2', name: 'count' });
  }
}

class Comments extends Controller {
  static readonly GET = op(
    { path: [Type.Integer(), optional(Type.Integer())] },
    (_fields, note, id) => ({ note, id }),
  );
}

class Scans extends Controller {
  static readonly PUT = op(
    {
      path: [Type.Integer(), Type.String()],
      query: Type.Object({ page: Type.Optional(Type.Integer()) }),
      raw: true,
    },
    function (this: Scans, { page }, bytes, note, name) {
      const type = this.request.headers.get('content-type');
      return { page, note, name, type, text: Buffer.from(bytes).toString() };
    },
  );
}

const modules = {
  'notes.[id].comments': { Default: Comments },
  'notes.[id].scans': { Default: Scans },
  '': { Robots_txt, Photo, Closed, Hidden, BaseController, Count },
  notes: { Default },
  'limits.zones': { BurstPolicy },
};
type Modules = typeof modules;

async function start() {
  const { app } = await createTestClient(modules);
  const requests: Request[] = [];
  const send = (request: Request) => {
    requests.push(request);
    return app.fetch(request);
  };
  return { requests, send, api: client<Modules>('http://host/', { fetch: send }) };
}

test('a method is called by its path with fields and positional arguments, and returns its value', async (t) => {
  const { api, requests } = await start();
  const listed = await api.notes.GET({ limit: 3, tags: ['a', 'b'] });
  t.deepEqual(listed.ok && listed.value, {
    ...{ limit: 3, tags: ['a', 'b'], id: null, at: '1970-01-01T00:00:00.000Z' },
  });
  const read = await api.notes.GET({}, 7);
  t.is(read.ok && read.value.id, 7);
  const made = await api.notes.POST({ text: 'hello' });
  t.deepEqual([made.status, made.ok && made.value.text], [201, 'hello']);
  t.is((await api.notes.DELETE({}, 'a/b ü')).status, 204);
  t.deepEqual(
    requests.map(({ method, url }) => `${method} ${url.replace('http://host', '')}`),
    [
      'GET /notes?limit=3&tags=a&tags=b',
      'GET /notes/7',
      'POST /notes',
      'DELETE /notes/a%2Fb%20%C3%BC',
    ],
  );
});

test('names become the path that the router serves: kebab-case, extensions, suffixes, nested classes', async (t) => {
  const { api } = await start();
  const robots = await api.Robots_txt.GET();
  t.is(robots.ok && robots.value, 'User-agent: *');
  const reset = await api.notes.POST_reset_all();
  t.is(reset.ok && reset.value, 'reset');
  const inner = await api.limits.zones.BurstPolicy.Inner.PATCH();
  t.is(inner.ok && inner.value, 'PATCH');
  const bytes = await api.limits.zones.BurstPolicy.GET();
  t.is(bytes.ok && bytes.value instanceof Blob && (await bytes.value.text()), 'bytes');
});

test('a folder [id] takes the first position', async (t) => {
  const { api, requests } = await start();
  const { comments } = api.notes['[id]'];
  const one = await comments.GET({}, 7, 3);
  t.deepEqual(one.ok && one.value, { note: 7, id: 3 });
  const all = await comments.GET({}, 7);
  t.is(all.ok && all.value.note, 7);
  t.deepEqual(
    requests.map(({ url }) => url),
    ['http://host/notes/7/comments/3', 'http://host/notes/7/comments'],
  );
});

test('a method that takes its body raw is given bytes before its positions, and its fields in the query', async (t) => {
  const { api } = await start();
  const scan = new Blob(['light'], { type: 'image/png' });
  const sent = await api.notes['[id]'].scans.PUT({ page: 2 }, scan, 7, 'a');
  t.deepEqual(sent.ok && sent.value, {
    ...{ page: 2, note: 7, name: 'a', type: 'image/png', text: 'light' },
  });
  const bytes = await api.notes['[id]'].scans.PUT({}, new TextEncoder().encode('dark'), 7, 'a');
  t.is(bytes.ok && bytes.value.text, 'dark');
});

test('of events their data arrives, one after another', async (t) => {
  const { api } = await start();
  const counted = await api.Count.GET();
  const numbers: number[] = [];
  if (counted.ok) for await (const { n } of counted.value) numbers.push(n);
  t.deepEqual(numbers, [1, 2]);
});

test('a file is sent as a form', async (t) => {
  const { api } = await start();
  const file = new File(['light'], 'a.png');
  const sent = await api.Photo.POST({ file, title: 'sun', marks: [7, 8] });
  t.deepEqual(sent.ok && sent.value, { title: 'sun', marks: [7, 8], text: 'light' });
});

test('a refusal of the server is a value, with the type that its status declares', async (t) => {
  const { api } = await start();
  const conflict = await api.notes.GET({}, 409);
  if (conflict.ok || conflict.status !== 409) return t.fail(`${conflict.status}, not 409`);
  const since: number = conflict.error.since;
  t.is(since, 7);
  const missing = await api.notes.GET({}, 404);
  if (missing.ok || missing.status !== 404) return t.fail(`${missing.status}, not 404`);
  t.is(missing.error.detail, 'there is no such note');
  t.like(await api.Closed.GET(), { status: 401 });
  return undefined;
});

test('a wrong argument that the types do not see is a problem that names it', async (t) => {
  const { api } = await start();
  const refused = await api.notes.GET({ limit: 1.5 });
  if (refused.ok || refused.status !== 400) return t.fail(`${refused.status}, not 400`);
  t.deepEqual(refused.error.errors, [{ in: 'query', name: 'limit', reason: 'must be an integer' }]);
  return undefined;
});

test('no answer is a value too: no connection, no time left, or the caller has stopped', async (t) => {
  const unreachable = client<Modules>('http://127.0.0.1:1');
  t.is((await unreachable.notes.GET()).status, 0);
  const never = ({ signal }: Request) =>
    new Promise<Response>((_resolve, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  t.is(
    (await client<Modules>('http://host', { fetch: never, timeoutMs: 1 }).notes.GET()).status,
    0,
  );
  const signal = AbortSignal.abort(new Error('enough'));
  const stopped = await client<Modules>('http://host', { fetch: never, signal }).notes.GET();
  t.is(!stopped.ok && stopped.status === 0 && stopped.error.detail, 'enough');
});

test('each request asks for its headers again', async (t) => {
  const { send } = await start();
  let token = 'wrong';
  const api = client<Modules>('http://host', {
    fetch: send,
    headers: () => ({ authorization: `Bearer ${token}` }),
  });
  t.is((await api.Closed.GET()).status, 401);
  token = 'right';
  t.is((await api.Closed.GET()).status, 200);
});

test('an argument that would name another path, or become another value, is refused before it is sent', async (t) => {
  const { api, requests } = await start();
  for (const part of ['', '.', '..', '\ud800'])
    await t.throwsAsync(() => api.notes.DELETE({}, part), { instanceOf: TypeError });
  await t.throwsAsync(() => api.notes.GET({ tags: [] }), { message: /leave an empty list out/ });
  for (const wrong of [null, '\ud800'] as unknown[] as string[]) {
    const form = { file: new File([], 'a'), title: wrong, marks: [7] };
    for (const send of [() => api.notes.GET({ tags: [wrong] }), () => api.Photo.POST(form)])
      await t.throwsAsync(send, { instanceOf: TypeError, message: /cannot be sent as a text/ });
  }
  t.deepEqual(requests, []);
});

test('a client is not a promise', async (t) => {
  const { api } = await start();
  t.is((await api) as unknown, api);
});

class Rooms extends Controller {
  static readonly CONNECT = op({
    path: [Type.String()],
    query: Type.Object({ as: Type.String() }),
  });
  CONNECT({ as }: { as: string }, room: string) {
    this.socket.send(`${as} in ${room}`);
  }
  MESSAGE({ text }: { text: string }) {
    return { received: text };
  }
}

test('CONNECT opens the WebSocket of a class, with its positions and fields', async (t) => {
  const { app } = await createTestClient({ live: { Rooms } });
  const port = await listenFor(t, createNodeServer(app));
  const api = client<{ live: { Rooms: typeof Rooms } }>(`http://127.0.0.1:${port}`);
  const socket = api.live.Rooms.CONNECT({ as: 'ann' }, 'blue room');
  const signal = AbortSignal.timeout(60_000);
  const [greeting] = await once(socket, 'message', { signal });
  t.is(JSON.parse(greeting.data), 'ann in blue room');
  socket.send(JSON.stringify({ text: 'hi' }));
  const [answer] = await once(socket, 'message', { signal });
  t.deepEqual(JSON.parse(answer.data), { received: 'hi' });
  socket.close();
  await once(socket, 'close', { signal });
});

class Standard extends Controller {
  static readonly GET = op(
    { query: z.object({ limit: z.int().min(1).default(5), tags: z.array(z.string()).optional() }) },
    ({ limit, tags }) => ({ next: limit + 1, tags: tags ?? [] }),
  );

  static readonly POST = op(
    {
      body: toStandardJsonSchema(v.object({ text: v.string(), stars: v.optional(v.number(), 1) })),
    },
    ({ text, stars }) => ({ text, stars }),
  );
}

test('fields of zod and valibot are those that their schemas take, and defaults may be left out', async (t) => {
  const { app } = await createTestClient({ '': { Standard } });
  const api = client<{ '': { Standard: typeof Standard } }>('http://host', { fetch: app.fetch });
  const read = await api.Standard.GET({ tags: ['a', 'b'] });
  t.deepEqual(read.ok && read.value, { next: 6, tags: ['a', 'b'] });
  const made = await api.Standard.POST({ text: 'hi' });
  t.deepEqual(made.ok && made.value, { text: 'hi', stars: 1 });
  // @ts-expect-error the schema of zod takes a number
  t.like(await api.Standard.GET({ limit: 'five' }), { status: 400 });
  // @ts-expect-error valibot's text is required
  t.is((await api.Standard.POST({ stars: 2 })).status, 400);
});
