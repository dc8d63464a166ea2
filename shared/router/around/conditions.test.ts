import test from 'ava';
import Type from 'typebox';
import { Controller } from '../controller.ts';
import { HttpError, Stop } from '../errors.ts';
import { op } from '../op.ts';
import { createTestClient } from '../test-client.ts';

let text = 'tea';

class Plain extends Controller {
  static readonly GET = op({ etag: true }, () => ({ text }));
  static readonly POST = op({}, () => ({ text }));
}

class Notes extends Controller {
  static readonly GET = op({ etag: true });
  GET() {
    this.response.headers.set('cache-control', 'no-cache');
    return { text };
  }
  PUT() {
    return { text };
  }
}

test('a browser may keep what has a tag, if it asks again each time; nothing else is kept', async (t) => {
  const { send } = await createTestClient({ '': { Plain } });
  t.is((await send('GET', '/plain')).headers.get('cache-control'), 'private, no-cache');
  t.is((await send('POST', '/plain')).headers.get('cache-control'), 'no-store');
  t.is((await send('GET', '/plain/no')).headers.get('cache-control'), 'no-store');
});

test('a caller that has an answer already gets 304 without it, until it changes', async (t) => {
  const { send } = await createTestClient({ '': { Notes } });
  const first = await send('GET', '/notes');
  const tag = first.headers.get('etag') ?? '';
  t.regex(tag, /^"[\w-]{27}"$/);
  for (const list of [tag, `"other", ${tag}`, `W/${tag}`, '*']) {
    const again = await send('GET', '/notes', { headers: { 'if-none-match': list } });
    t.like(again, { status: 304, text: '' });
    t.is(again.headers.get('etag'), tag);
    t.is(again.headers.get('cache-control'), 'no-cache');
    t.is(again.headers.get('content-length'), null);
  }
  text = 'coffee';
  const changed = await send('GET', '/notes', { headers: { 'if-none-match': tag } });
  t.is(changed.status, 200);
  t.not(changed.headers.get('etag'), tag);
  t.is((await send('PUT', '/notes')).headers.get('etag'), null);
});

class Doc extends Controller {
  static text = 'v1';
  static calls = 0;
  static readonly GET = op({ etag: true, path: [Type.String()] }, (_fields, id) => {
    if (id === 'none') throw new HttpError(404);
    if (id === 'early') throw new Stop(200, { id });
    return { id, text: Doc.text };
  });
  static readonly PUT = op(
    { etag: true, path: [Type.String()], body: Type.Object({ text: Type.String() }) },
    ({ text }) => {
      Doc.calls += 1;
      return text;
    },
  );
  static readonly DELETE = op({ etag: true, path: [Type.String()] }, () => {
    Doc.calls += 1;
  });
}

test('an unsafe method is not run where the conditions of its request do not hold: 412', async (t) => {
  const { send } = await createTestClient({ '': { Doc } });
  const tag = (await send('GET', '/doc/a')).headers.get('etag') ?? '';
  const body = { text: 'new' };
  Doc.calls = 0;
  for (const [path, headers] of [
    ['/doc/a', { 'if-match': '"other"' }],
    ['/doc/a', { 'if-match': `W/${tag}` }],
    ['/doc/a', { 'if-none-match': '*' }],
    ['/doc/a', { 'if-none-match': `"b", W/${tag}` }],
    ['/doc/early', { 'if-match': '"other"' }],
    ['/doc/none', { 'if-match': '*' }],
    ['/doc/none', { 'if-match': tag }],
  ] as const) {
    for (const method of ['PUT', 'DELETE']) {
      const sent = method === 'PUT' ? { headers, body } : { headers };
      const answer = await send(method, path, sent);
      t.is(answer.status, 412, JSON.stringify([method, path, headers]));
    }
  }
  t.is(Doc.calls, 0);
  for (const [path, headers] of [
    ['/doc/a', { 'if-match': `"b,c", ${tag}` }],
    ['/doc/a', { 'if-match': '*' }],
    ['/doc/a', { 'if-none-match': '"other"' }],
    ['/doc/none', { 'if-none-match': '*' }],
    ['/doc/a', {}],
  ] as const) {
    t.is((await send('PUT', path, { headers, body })).status, 200, JSON.stringify([path, headers]));
  }
  t.is(Doc.calls, 5);
});

test('only GET and HEAD return 304, and If-Match holds for them as well', async (t) => {
  const { send } = await createTestClient({ '': { Doc } });
  const tag = (await send('GET', '/doc/a')).headers.get('etag') ?? '';
  for (const method of ['GET', 'HEAD']) {
    t.is((await send(method, '/doc/a', { headers: { 'if-none-match': tag } })).status, 304);
    t.is((await send(method, '/doc/a', { headers: { 'if-match': '"other"' } })).status, 412);
    t.is((await send(method, '/doc/none', { headers: { 'if-none-match': '*' } })).status, 404);
  }
});

test('dates are compared where there are no tags, and an invalid date is ignored', async (t) => {
  class Dated extends Controller {
    static readonly GET = op({ etag: true });
    GET() {
      this.response.headers.set('last-modified', 'Sat, 01 Aug 2026 10:00:00 GMT');
      return new Blob(['tea']).stream();
    }
    static readonly PUT = op({ etag: true });
    PUT() {}
  }
  const { send } = await createTestClient({ '': { Dated } });
  const [before, at] = ['Sat, 01 Aug 2026 09:59:59 GMT', 'Sat, 01 Aug 2026 10:00:00 GMT'];
  const statusOf = async (method: string, headers: Record<string, string>) =>
    (await send(method, '/dated', { headers })).status;
  t.is(await statusOf('GET', { 'if-modified-since': at }), 304);
  t.is(await statusOf('GET', { 'if-modified-since': before }), 200);
  for (const invalid of ['yesterday', '2027', '2027-01-01', 'Sat, 01 Aug 2026 10:00:00'])
    t.is(await statusOf('GET', { 'if-modified-since': invalid }), 200, invalid);
  for (const old of ['Saturday, 01-Aug-26 10:00:00 GMT', 'Sat Aug  1 10:00:00 2026'])
    t.is(await statusOf('GET', { 'if-modified-since': old }), 304, old);
  t.is(await statusOf('PUT', { 'if-unmodified-since': '0' }), 204);
  t.is(await statusOf('GET', { 'if-modified-since': at, 'if-none-match': '"a"' }), 200);
  t.is(await statusOf('PUT', { 'if-unmodified-since': before }), 412);
  t.is(await statusOf('PUT', { 'if-unmodified-since': at }), 204);
  t.is(await statusOf('PUT', { 'if-modified-since': at }), 204);
});
