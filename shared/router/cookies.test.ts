import test from 'ava';
import { Controller } from './controller.ts';
import { readCookie, setCookie } from './cookies.ts';
import { Redirect } from './errors.ts';
import { createTestClient } from './test-client.ts';

test('a cookie that a login sets before it redirects is sent back, whatever its value holds', async (t) => {
  class Login extends Controller {
    POST() {
      setCookie(this.response.headers, 'session', 'a b;ü"', { maxAge: 60 });
      throw new Redirect('/me', 303);
    }
    GET() {
      return readCookie(this.request.headers, 'session') ?? null;
    }
  }
  const { send } = await createTestClient({ '': { Login } });
  const set = (await send('POST', '/login')).headers.get('set-cookie') ?? '';
  t.is(set, 'session=a%20b%3B%C3%BC%22; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Lax');
  const cookie = `other=1; ${set.split(';')[0]}`;
  t.is((await send('GET', '/login', { headers: { cookie } })).json, 'a b;ü"');
  t.is((await send('GET', '/login', { headers: { cookie: 'session="a%20b"' } })).json, 'a b');
  for (const other of ['sessions=1', '\xa0session=1'])
    t.is((await send('GET', '/login', { headers: { cookie: other } })).status, 204);
});

test('a cookie with attributes in its name or path is a defect', (t) => {
  const headers = new Headers();
  t.throws(() => setCookie(headers, 'a b', ''), { instanceOf: TypeError });
  t.throws(() => setCookie(headers, 'a', '', { path: '/; Domain=evil' }), {
    instanceOf: TypeError,
  });
  t.is(headers.get('set-cookie'), null);
});
