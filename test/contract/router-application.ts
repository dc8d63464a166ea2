// The example application of the router from its users' point of view: the suite is called once for the server alone
// and once for the server behind a proxy.
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import { WebSocket } from 'ws';
import { client } from '../../shared/router/client/client.ts';
import { type Serving, startServing } from '../../shared/router/command/serve.ts';
import { createBoardApp } from '../../shared/router/example/app.ts';
import { board } from '../../shared/router/example/board.ts';
import { eventually } from '../support/eventually.ts';

type Modules = {
  session: typeof import('../../shared/router/example/controllers/session.ts');
  notes: typeof import('../../shared/router/example/controllers/notes/index.ts');
  'notes.[id].picture': typeof import('../../shared/router/example/controllers/notes/[id]/picture.ts');
  news: typeof import('../../shared/router/example/controllers/news.ts');
};

export interface BoardUnderTest {
  readonly name: string;
  /** The address for callers of a server that listens at `url`. */
  readonly inFront: (url: string) => Promise<string>;
}

export function testBoard({ name, inFront }: BoardUnderTest): void {
  const logged: string[] = [];
  const reported: string[] = [];
  let serving: Serving;
  let url = '';
  let cookie = '';
  const api = () => client<Modules>(url, { headers: () => ({ cookie }) });
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(url + path, { headers: { cookie, ...headers } });

  test.before(`${name}: the application starts, and a member logs in`, async (t) => {
    const app = await createBoardApp({
      trustedProxies: ['127.0.0.1', '::1'],
      log: ({ method, path, status, remoteAddress }) =>
        logged.push(`${method} ${path} ${status} ${remoteAddress}`),
      reportError: ({ error }) => reported.push(String(error)),
    });
    serving = await startServing(app, { host: '127.0.0.1', port: 0 });
    url = await inFront(serving.url);
    const answer = await api().session.POST({ user: 'ann', password: 'board' });
    t.true(answer.ok);
    cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    t.regex(answer.headers.getSetCookie()[0] ?? '', /HttpOnly; SameSite=Lax$/);
  });

  test.after.always(`${name}: the application ends`, () => serving?.stop());

  test.serial(`${name}: only members have access; cross-site forms are refused`, async (t) => {
    t.is((await fetch(`${url}/notes`)).status, 401);
    t.is(
      (
        await fetch(`${url}/session`, {
          method: 'POST',
          body: new URLSearchParams({ user: 'ann', password: 'x' }),
        })
      ).status,
      401,
    );
    const origin = 'https://evil.example';
    t.is(
      (await fetch(`${url}/notes`, { method: 'POST', headers: { cookie, origin } })).status,
      403,
    );
    t.is((await get('/')).headers.get('content-type'), 'text/html; charset=utf-8');
    t.is((await get('/openapi.json')).status, 200);
  });

  test.serial(`${name}: the client is as proxies report, each request is logged`, async (t) => {
    const answer = await get('/session', {
      'x-forwarded-for': '203.0.113.5',
      'x-forwarded-proto': 'https',
    });
    t.deepEqual(await answer.json(), { user: 'ann', address: '203.0.113.5' });
    const missing = await get('/nothing', {
      accept: 'text/html',
      'x-forwarded-for': '203.0.113.5',
    });
    t.regex(await missing.text(), /There is nothing here/);
    t.is(missing.status, 404);
    t.true(logged.includes('GET /nothing 404 203.0.113.5'));
  });

  test.serial(
    `${name}: a note is written, found by tag, and changed only by a client with its current state`,
    async (t) => {
      const { notes } = api();
      const written = await notes.POST({ text: 'first', tags: ['a', 'b-c'] });
      t.true(written.ok);
      t.is(written.status, 201);
      await notes.POST({ text: 'second' });
      const id = Number(written.headers.get('location')?.split('/')[2]);
      const found = await get('/notes?tag=a,b-c');
      t.deepEqual(await found.json(), [{ id, author: 'ann', text: 'first', tags: ['a', 'b-c'] }]);
      const one = await get(`/notes/${id}`);
      const etag = one.headers.get('etag') ?? '';
      t.is((await get(`/notes/${id}`, { 'if-none-match': etag })).status, 304);
      const put = (tag: string) =>
        fetch(`${url}/notes/${id}`, {
          method: 'PUT',
          headers: { cookie, 'content-type': 'application/json', 'if-match': tag },
          body: '{"text":"changed","tags":[]}',
        });
      t.is((await put('"other"')).status, 412);
      t.is((await put(etag)).status, 200);
      t.is((await put(etag)).status, 412, 'it has changed since');
      const wrong = await notes.POST({ text: '', tags: ['Not A Slug'] });
      t.deepEqual(!wrong.ok && wrong.status === 400 && wrong.error.errors?.map((one) => one.name), [
        'text',
        'tags/0',
      ]);
    },
  );

  test.serial(`${name}: a picture is stored while it arrives, and is sent by ranges`, async (t) => {
    const note = board.write({ author: 'ann', text: 'with a picture', tags: [] });
    const bytes = new Uint8Array(3_000_000).map((_, at) => at % 251);
    const picture = api().notes['[id]']?.picture ?? t.fail('no picture');
    const stored = await picture.PUT({}, new Blob([bytes], { type: 'image/png' }), note.id);
    t.is(stored.status, 204);
    const part = await get(`/notes/${note.id}/picture`, {
      range: 'bytes=1000-1999',
      'accept-encoding': 'gzip',
    });
    t.is(part.status, 206);
    t.is(part.headers.get('content-encoding'), null);
    t.deepEqual(new Uint8Array(await part.arrayBuffer()), bytes.slice(1000, 2000));
    t.is((await get(`/notes/${note.id}/picture`, { range: 'bytes=9000000-' })).status, 416);
    const leave = new AbortController();
    const upload = fetch(`${url}/notes/${note.id}/picture`, {
      method: 'PUT',
      headers: { cookie, 'content-type': 'image/png' },
      body: new ReadableStream({
        start: (controller) => controller.enqueue(new Uint8Array(1000)),
        async pull() {
          await eventually('it is being written', () => readdirSync(board.folder).length > 1);
          leave.abort();
        },
      }),
      signal: leave.signal,
      duplex: 'half',
    } as RequestInit);
    await t.throwsAsync(upload);
    await eventually('nothing is left of it', () => readdirSync(board.folder).length === 1);
  });

  test.serial(`${name}: answers are compressed, a failed one is cut and reported`, async (t) => {
    for (let count = 0; count < 300; count += 1)
      board.write({ author: 'ben', text: 'the same words again', tags: [] });
    const full = await get('/notes/export', { 'accept-encoding': 'gzip' });
    t.is(full.headers.get('content-encoding'), 'gzip');
    t.true((await full.text()).split('\n').length > 300);
    const note = board.write({ author: 'ben', text: 'broken', tags: [] });
    const broken = {
      ...note,
      toJSON: () => {
        throw new Error('this note breaks');
      },
    };
    board.write(broken, [...board.notes()].at(-5)?.id ?? note.id);
    for (const encoding of ['gzip', 'identity']) {
      // A proxy that has sent nothing yet can still answer with an error.
      const seen = await get('/notes/export', { 'accept-encoding': encoding })
        .then(async (answer) => (await answer.text()) && answer.status)
        .catch(() => 'cut');
      t.true(seen === 'cut' || Number(seen) >= 500, String(seen));
    }
    t.deepEqual(reported.splice(0), ['Error: this note breaks', 'Error: this note breaks']);
    t.is((await get('/session')).status, 200);
  });

  test.serial(
    `${name}: news arrive as written, and a reader who disconnects costs nothing`,
    async (t) => {
      const answer = await api().news.GET();
      if (!answer.ok) return t.fail(`${answer.status}, not a stream`);
      const news = answer.value[Symbol.asyncIterator]();
      t.deepEqual((await news.next()).value, { text: 'the news begin' });
      await eventually('it is listened', () => board.news.listenerCount('note') === 1);
      board.write({ author: 'ben', text: 'new', tags: [] });
      t.deepEqual((await news.next()).value, { text: 'new' });
      await news.return?.(undefined);
      await eventually('the generator has ended', () => board.news.listenerCount('note') === 0);
    },
  );

  test.serial(`${name}: members talk in a room, and pages of other sites cannot`, async (t) => {
    const open = (headers: Record<string, string>) =>
      new WebSocket(`${url.replace('http', 'ws')}/room`, ['board.v1'], { headers });
    const refused = once(open({ cookie, origin: 'https://evil.example' }), 'error');
    t.regex(String((await refused)[0]), /403/);
    t.regex(String((await once(open({}), 'error'))[0]), /401/);
    const [one, other] = [open({ cookie }), open({ cookie })];
    const received: unknown[] = [];
    other.on('message', (data) => received.push(JSON.parse(String(data))));
    await Promise.all([once(one, 'open'), once(other, 'open')]);
    one.send('{"text":"hello"}');
    await eventually('the message reaches all', () =>
      isDeepStrictEqual(received.at(-1), { user: 'ann', text: 'hello' }),
    );
    other.send('{"shout":1}');
    await eventually('it is refused', () =>
      JSON.stringify(received.at(-1)).includes('"status":400'),
    );
    for (const socket of [one, other]) socket.close();
  });
}
