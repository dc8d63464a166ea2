import test from 'ava';
import { Controller } from '../controller.ts';
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
  t.regex(tag, /^W\/"[\w-]{27}"$/);
  for (const list of [tag, `"other", ${tag}`, tag.slice(2), '*']) {
    const again = await send('GET', '/notes', { headers: { 'if-none-match': list } });
    t.is(again.status, 304);
    t.is(again.text, '');
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
