import test from 'ava';
import Type from 'typebox';
import { Controller } from './controller.ts';
import { Redirect, StartError, Stop } from './errors.ts';
import { basic, bearer, fromOrigins, type Guard, isSameSecret, limited } from './guard.ts';
import { op } from './op.ts';
import { createTestClient } from './test-client.ts';

async function statusBehind(guard: Guard, headers: Record<string, string> = {}, method = 'GET') {
  class Vault extends Controller {
    static override readonly guard = guard;
    GET() {
      return 1;
    }
    POST() {
      return 1;
    }
  }
  const client = await createTestClient({ '': { Vault } }, { requireGuards: true });
  const answer = await client.send(method, '/vault', { headers });
  return [answer.status, answer.headers.get('www-authenticate'), client.reports.length];
}

const withToken = { authorization: 'BEARER t' };

test('a check that says no, or fails, is 401 with the scheme; its error goes to the log', async (t) => {
  const realm = 'a "b"';
  t.deepEqual(
    await statusBehind(
      bearer(() => false, { realm }),
      withToken,
    ),
    [401, 'Bearer realm="a \\"b\\""', 0],
  );
  const failing = bearer(async () => {
    throw new Error('no database');
  });
  t.deepEqual(await statusBehind(failing, withToken), [401, 'Bearer', 1]);
  t.deepEqual(
    await statusBehind(
      bearer((token) => token === 't'),
      withToken,
    ),
    [200, null, 0],
  );
});

test('without a check nobody passes: 403', async (t) => {
  t.deepEqual(await statusBehind(bearer(), withToken), [403, null, 0]);
  t.deepEqual(await statusBehind(basic()), [403, null, 0]);
});

test('basic credentials may hold colons in the password', async (t) => {
  const guard = basic((user, password) => user === 'ann' && password === 'p:w');
  const authorization = `Basic ${Buffer.from('ann:p:w').toString('base64')}`;
  t.deepEqual(await statusBehind(guard, { authorization }), [200, null, 0]);
  t.deepEqual(await statusBehind(guard, { authorization: 'Basic !!' }), [401, 'Basic', 0]);
});

test('a limit is 429 and authenticates nobody', async (t) => {
  const guards = [bearer(() => true), limited(() => false)];
  class Vault extends Controller {
    static override readonly guard = guards;
    GET() {
      return 1;
    }
  }
  const client = await createTestClient({ '': { Vault } }, { requireGuards: true });
  t.is((await client.send('GET', '/vault', { headers: withToken })).status, 429);
  await t.throwsAsync(statusBehind(limited(() => true)), { message: /GET has no guard/ });
});

test('a guard may answer with Stop or Redirect, and the method is not called', async (t) => {
  const throwing = (error: Error): Guard => ({
    authenticates: true,
    check() {
      throw error;
    },
  });
  t.deepEqual(await statusBehind(throwing(new Stop(202, 'later'))), [202, null, 0]);
  t.deepEqual(await statusBehind(throwing(new Redirect('/login'))), [302, null, 0]);
});

test('unsafe methods from an origin that is not listed are 403', async (t) => {
  class Form extends Controller {
    static override readonly public = true;
    static override readonly guard = fromOrigins(['https://own.example']);
    GET() {
      return 1;
    }
    POST() {
      return 1;
    }
  }
  const client = await createTestClient({ '': { Form } }, { requireGuards: true });
  const status = async (method: string, origin?: string) => {
    const headers: Record<string, string> = origin === undefined ? {} : { origin };
    return (await client.send(method, '/form', { headers })).status;
  };
  t.is(await status('POST', 'https://evil.example'), 403);
  t.is(await status('POST', 'https://own.example'), 200);
  t.is(await status('POST'), 200);
  t.is(await status('GET', 'https://evil.example'), 200);
});

test('an application with an unguarded method does not start, and says which', async (t) => {
  class Bare extends Controller {
    static readonly PUT = op({ public: true });
    static readonly DELETE = op({ guard: bearer(() => true) });
    GET() {}
    PUT() {}
    DELETE() {}
    POST_reset() {}
  }
  const error = await t.throwsAsync(createTestClient({ ops: { Bare } }, { requireGuards: true }), {
    instanceOf: StartError,
  });
  t.is(
    error?.message,
    'ops:Bare.GET has no guard; give it one, or declare public: true\n' +
      'ops:Bare.POST_reset has no guard; give it one, or declare public: true',
  );
});

test('what is public drops inherited authentication and keeps inherited limits', async (t) => {
  let asked = 0;
  const count = limited(() => {
    asked += 1;
    return true;
  });
  class Mixed extends Controller {
    static override readonly guard = bearer(() => false);
    static readonly GET = op({ public: true });
    GET() {
      return 1;
    }
    POST() {
      return 1;
    }
  }
  const client = await createTestClient({ '': { Mixed } }, { requireGuards: true, guard: count });
  t.is((await client.send('GET', '/mixed')).status, 200);
  t.is((await client.send('POST', '/mixed')).status, 401);
  t.is(asked, 2);
});

test('guards run before the body is read', async (t) => {
  class Vault extends Controller {
    static override readonly guard = bearer(() => false);
    static readonly POST = op({ body: Type.Object({}) });
    POST() {}
  }
  const client = await createTestClient({ '': { Vault } }, { requireGuards: true });
  let isRead = false;
  const body = {
    async *[Symbol.asyncIterator]() {
      isRead = true;
      yield Buffer.from('{}');
    },
  };
  const headers = new Headers();
  const request = { method: 'POST', target: '/vault', headers, body, remoteAddress: undefined };
  t.is((await client.app.dispatch(request)).status, 401);
  t.false(isRead);
});

test('secrets are compared whatever their lengths', (t) => {
  t.true(isSameSecret('abc', 'abc'));
  t.false(isSameSecret('ab', 'abc'));
  t.false(isSameSecret('', 'abc'));
});
