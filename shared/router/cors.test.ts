import test from 'ava';
import { Controller } from './controller.ts';
import { bearer } from './guard.ts';
import { createTestClient } from './test-client.ts';

const origin = 'https://a.example';

class Listed extends Controller {
  static override readonly cors = { origins: [origin] };
  static override readonly guard = bearer(() => false);
  GET() {}
  OPTIONS() {
    return 'own';
  }
}

class Any extends Controller {
  static override readonly cors = true;
  GET() {
    this.response.headers.set('vary', 'accept, origin');
  }
}

class Closed extends Controller {
  GET() {}
}

const opening = createTestClient({ '': { Listed, Any, Closed } });

const headersOf = async (method: string, target: string, headers: Record<string, string>) => {
  const answer = await (await opening).send(method, target, { headers });
  const cors = [...answer.headers].filter(([name]) => name.startsWith('access-control-'));
  return { status: answer.status, vary: answer.headers.get('vary'), ...Object.fromEntries(cors) };
};

test('a preflight is answered without credentials, before guards and an own OPTIONS', async (t) => {
  const asked = { origin, 'access-control-request-method': 'GET' };
  t.deepEqual(await headersOf('OPTIONS', '/listed', asked), {
    status: 204,
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-allow-methods': 'GET',
    'access-control-max-age': '3600',
  });
});

test('refusals carry the headers too, so that a script may read them', async (t) => {
  t.deepEqual(await headersOf('GET', '/listed', { origin }), {
    status: 401,
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
  });
});

test('any origin never comes with credentials', async (t) => {
  t.deepEqual(await headersOf('GET', '/any', { origin: 'null' }), {
    status: 204,
    vary: 'accept, origin',
    'access-control-allow-origin': 'null',
  });
});

test('an OPTIONS request that is not a preflight returns 204 with Allow, for scripts of other origins too', async (t) => {
  for (const headers of [{}, { origin }]) {
    const { send } = await createTestClient({ '': { Closed } }, { cors: { origins: [origin] } });
    const answer = await send('OPTIONS', '/closed', { headers });
    t.is(answer.status, 204);
    t.regex(answer.headers.get('allow') ?? '', /^GET, HEAD, OPTIONS/);
    t.is(answer.headers.get('access-control-allow-origin'), 'origin' in headers ? origin : null);
  }
});

test('404, 405 and a refused origin are seen by the script that asked, as far as it is admitted', async (t) => {
  const { send } = await createTestClient({ '': { Closed } }, { cors: { origins: [origin] } });
  for (const [method, target, status] of [
    ['GET', '/none', 404],
    ['POST', '/closed', 405],
    ['GET', '/%ff', 400],
  ] as const) {
    const answer = await send(method, target, { headers: { origin } });
    t.is(answer.status, status);
    t.is(answer.headers.get('access-control-allow-origin'), origin);
  }
  const refused = await send('GET', '/none', { headers: { origin: 'https://b.example' } });
  t.deepEqual([refused.status, refused.headers.get('vary')], [403, 'Origin']);
  t.is(refused.headers.get('access-control-allow-origin'), null);
});

test('an expression describes a whole origin; headers are exposed, and preflights kept, as declared', async (t) => {
  const cors = { origins: [/https:\/\/\w+\.shop/g], expose: ['etag', 'x-a'], maxAge: 60 };
  const { send } = await createTestClient({ '': { Closed } }, { cors });
  const of = (from: string, more = {}, method = 'GET') =>
    send(method, '/closed', { headers: { origin: from, ...more } });
  for (let times = 0; times < 2; times += 1) {
    const { status, headers } = await of('https://a.shop');
    t.deepEqual([status, headers.get('access-control-expose-headers')], [204, 'etag, x-a']);
  }
  for (const other of ['https://a.shop.evil', 'http://https://a.shop', 'https://a-b.shop'])
    t.is((await of(other)).status, 403, other);
  const asked = { 'access-control-request-method': 'GET' };
  const preflight = await of('https://a.shop', asked, 'OPTIONS');
  t.is(preflight.headers.get('access-control-max-age'), '60');
});

test("the application's own pages pass, whatever is listed", async (t) => {
  const { send } = await createTestClient({ '': { Closed } }, { cors: { origins: [origin] } });
  const headers = { origin: 'https://own.example', host: 'own.example' };
  const { status, headers: answered } = await send('GET', '/closed', { headers });
  t.deepEqual([status, answered.get('access-control-allow-origin')], [204, null]);
});

test('a class without the declaration answers other origins without a header', async (t) => {
  t.deepEqual(await headersOf('GET', '/closed', { origin }), { status: 204, vary: null });
});

test('an application may declare it for all of its classes', async (t) => {
  const all = await createTestClient({ '': { Closed } }, { cors: { origins: [origin] } });
  t.is((await all.send('GET', '/closed', { headers: { origin: 'https://b' } })).status, 403);
  t.is((await all.send('GET', '/closed', { headers: { origin } })).status, 204);
});

test('an origin that is longer than an expression may read is refused', async (t) => {
  const { send } = await createTestClient(
    { '': { Closed } },
    { cors: { origins: [/https:\/\/[a-z]+(?:-[a-z]+)*\.example/] } },
  );
  const get = async (name: string) =>
    (await send('GET', '/closed', { headers: { origin: `https://${name}.example` } })).headers.get(
      'access-control-allow-origin',
    );
  t.is(await get('a-b'), 'https://a-b.example');
  t.is(await get('a'.repeat(300)), null);
});
