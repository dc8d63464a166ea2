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
  GET() {}
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
    vary: 'Origin',
    'access-control-allow-origin': 'null',
  });
});

test('a preflight that is not well-formed is 400', async (t) => {
  const asked = { origin, 'access-control-request-method': 'a b' };
  t.is((await headersOf('OPTIONS', '/any', asked)).status, 400);
});

test('a class without the declaration answers other origins without a header', async (t) => {
  t.deepEqual(await headersOf('GET', '/closed', { origin }), { status: 204, vary: null });
});

test('an application may declare it for all of its classes', async (t) => {
  const all = await createTestClient({ '': { Closed } }, { cors: { origins: [origin] } });
  t.is((await all.send('GET', '/closed', { headers: { origin: 'https://b' } })).status, 403);
  t.is((await all.send('GET', '/closed', { headers: { origin } })).status, 204);
});
