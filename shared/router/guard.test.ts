import test from 'ava';
import Type from 'typebox';
import { toErrorText } from './answer/error-report.ts';
import { Controller } from './controller.ts';
import { Redirect, Stop } from './errors.ts';
import { defineFolder } from './folder.ts';
import { basic, bearer, fromOrigins, type Guard, isSameSecret, limited, open } from './guard.ts';
import { type Op, op } from './op.ts';
import { createTestClient } from './test-client.ts';

async function statusBehind(
  guard: Guard,
  headers: Record<string, string> = {},
  method = 'GET',
  requireGuards = true,
) {
  class Vault extends Controller {
    static override readonly guard = guard;
    GET() {
      return 1;
    }
    POST() {
      return 1;
    }
  }
  const client = await createTestClient({ '': { Vault } }, { requireGuards });
  const answer = await client.send(method, '/vault', { headers });
  return [answer.status, answer.headers.get('www-authenticate'), client.reports.length];
}

const withToken = { authorization: 'BEARER t' };

test('a check that refuses returns 401 with the scheme', async (t) => {
  const realm = 'a "b"';
  t.deepEqual(
    await statusBehind(
      bearer(() => false, { realm }),
      withToken,
    ),
    [401, 'Bearer realm="a \\"b\\""', 0],
  );
  t.deepEqual(
    await statusBehind(
      bearer((token) => token === 't'),
      withToken,
    ),
    [200, null, 0],
  );
});

test('only nothing and true let a request pass: any other value of a check refuses it, and is reported', async (t) => {
  const withValue = (value: unknown, authenticates = true): Guard => ({
    authenticates,
    check: () => value as undefined,
  });
  const cookie = { cookie: 'session=x' };
  for (const value of [false, null, 0, 'no', new Response(null, { status: 401 })]) {
    for (const given of [value, Promise.resolve(value)]) {
      t.deepEqual(await statusBehind(withValue(given)), [401, 'Bearer', 1]);
      t.deepEqual(await statusBehind(withValue(given), cookie), [403, null, 1]);
      t.deepEqual(await statusBehind(withValue(given, false), {}, 'GET', false), [403, null, 1]);
    }
  }
  for (const value of [undefined, true, Promise.resolve(), Promise.resolve(true)])
    t.deepEqual(await statusBehind(withValue(value)), [200, null, 0]);
});

test('the report of a check that returned false shows how a guard refuses, for the application and folders too', async (t) => {
  class Default extends Controller {
    GET() {}
  }
  const guard: Guard = { authenticates: true, check: () => false as never };
  for (const client of [
    await createTestClient({ '': { Default } }, { guard }),
    await createTestClient({ '': { Default }, _folder: { folder: defineFolder({ guard }) } }),
  ]) {
    t.is((await client.send('GET', '/')).status, 401);
    t.regex(
      toErrorText(client.reports[0]?.error),
      /the check of a guard returned false; throw AccessDenied or an HttpError to refuse/,
    );
  }
});

test('a check that fails returns 503 without a challenge; its error is for the log alone', async (t) => {
  const failing = async (): Promise<boolean> => {
    throw new Error('no database at 10.0.0.7');
  };
  const pair = { authorization: `Basic ${btoa('ann:pw')}` };
  for (const [guard, headers] of [
    [bearer(failing), withToken],
    [basic(failing), pair],
    [limited(failing), {}],
  ] as const) {
    class Vault extends Controller {
      static override readonly guard = guard;
      GET() {}
    }
    const client = await createTestClient({ '': { Vault } });
    const answer = await client.send('GET', '/vault', { headers });
    t.is(answer.status, 503);
    t.is(answer.headers.get('www-authenticate'), null);
    t.notRegex(answer.text, /database/);
    const [report] = client.reports;
    if (report === undefined) throw new Error('nothing was reported');
    t.regex(toErrorText(report.error), /no database at 10\.0\.0\.7/);
  }
});

test('a check may answer with Stop or Redirect', async (t) => {
  const leading = bearer(() => {
    throw new Redirect('/login');
  });
  t.deepEqual(await statusBehind(leading, withToken), [302, null, 0]);
});

test('without a check no caller passes: 403', async (t) => {
  t.deepEqual(await statusBehind(bearer(), withToken), [403, null, 0]);
  t.deepEqual(await statusBehind(basic()), [403, null, 0]);
});

test('basic credentials may hold colons in the password', async (t) => {
  const guard = basic((user, password) => user === 'ann' && password === 'p:w');
  const authorization = `Basic ${Buffer.from('ann:p:w').toString('base64')}`;
  t.deepEqual(await statusBehind(guard, { authorization }), [200, null, 0]);
  t.deepEqual(await statusBehind(guard, { authorization: 'Basic !!' }), [401, 'Basic', 0]);
});

test('a limit returns 429 and authenticates no caller', async (t) => {
  const guards = [bearer(() => true), limited(() => ({ isAllowed: false }) as never)];
  class Vault extends Controller {
    static override readonly guard = guards;
    GET() {
      return 1;
    }
  }
  const client = await createTestClient({ '': { Vault } }, { requireGuards: true });
  t.is((await client.send('GET', '/vault', { headers: withToken })).status, 429);
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

test('unsafe methods from pages that are neither own nor of a listed origin return 403', async (t) => {
  class Form extends Controller {
    static override readonly guard = [open(), fromOrigins(['https://own.example'])];
    GET() {
      return 1;
    }
    POST() {
      return 1;
    }
  }
  const client = await createTestClient({ '': { Form } }, { requireGuards: true });
  const status = async (method: string, origin?: string) => {
    const host = 'notes.example:8000';
    const headers: Record<string, string> = origin === undefined ? { host } : { host, origin };
    return (await client.send(method, '/form', { headers })).status;
  };
  t.is(await status('POST', 'https://evil.example'), 403);
  t.is(await status('POST', 'https://own.example'), 200);
  t.is(await status('POST', 'http://notes.example:8000'), 200);
  t.is(await status('POST', 'http://notes.example'), 403);
  t.is(await status('POST', 'null'), 403);
  t.is(await status('POST'), 200);
  t.is(await status('GET', 'https://evil.example'), 200);
});

test('a public method drops inherited authentication and keeps inherited limits', async (t) => {
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

/** Records which guards ran, in order; admits every caller with a token. */
function asking(asked: string[], name: string): Guard {
  return bearer(() => {
    asked.push(name);
    return true;
  });
}

test('guards of enclosing classes, base classes and base methods are all asked, each once', async (t) => {
  const asked: string[] = [];
  const shared = asking(asked, 'shared');
  class BaseController extends Controller {
    static override readonly guard: Guard | readonly Guard[] = [asking(asked, 'base'), shared];
    static readonly GET: Op = op({ guard: asking(asked, 'base method') });
    GET() {
      return 1;
    }
  }
  class Inner extends BaseController {
    static override readonly guard = [shared, asking(asked, 'inner')];
    static override readonly GET = op({ guard: asking(asked, 'method') });
  }
  class Outer extends Controller {
    static override readonly guard = asking(asked, 'outer');
    static readonly Inner = Inner;
  }
  const guard = asking(asked, 'application');
  const client = await createTestClient({ '': { Outer } }, { guard });
  t.is((await client.send('GET', '/outer/inner')).status, 401);
  t.is((await client.send('GET', '/outer/inner', { headers: withToken })).status, 200);
  const all = ['application', 'outer', 'base', 'shared', 'inner', 'base method', 'method'];
  t.deepEqual(asked, all);
});

test('each guard along the way can refuse alone', async (t) => {
  const [yes, no] = [bearer(() => true), bearer(() => false)];
  for (const [base, outer, own] of [
    [no, yes, yes],
    [yes, no, yes],
    [yes, yes, no],
  ] as const) {
    class BaseController extends Controller {
      static override readonly guard = base;
    }
    class Inner extends BaseController {
      static override readonly guard = own;
      GET() {}
    }
    class Outer extends Controller {
      static override readonly guard = outer;
      static readonly Inner = Inner;
    }
    const client = await createTestClient({ '': { Outer } });
    t.is((await client.send('GET', '/outer/inner', { headers: withToken })).status, 401);
  }
});

class Guarded extends Controller {
  static override readonly guard: Guard = bearer(() => true);
  GET() {}
}

test("open() lifts the application's guard from its own class, not from subclasses and nested classes", async (t) => {
  class Health extends Controller {
    static override readonly guard = open();
    GET() {}
  }
  class Derived extends Health {}
  class Outer extends Health {
    static override readonly guard = open();
    static readonly Inner = class extends Controller {
      GET() {}
    };
  }
  class Below extends Guarded {
    static override readonly guard = open();
  }
  const options = { guard: bearer(() => true), requireGuards: true };
  const client = await createTestClient({ '': { Health, Derived, Outer, Below } }, options);
  const status = async (path: string) => (await client.send('GET', path)).status;
  t.is(await status('/health'), 204);
  t.is(await status('/outer'), 204);
  t.is(await status('/derived'), 401);
  t.is(await status('/outer/inner'), 401);
  t.is(await status('/below'), 401, 'the guard of a base class stays');
});

test('a subclass with a guard keeps it for a method that its base class declares public', async (t) => {
  class Base extends Controller {
    static readonly GET = op({ public: true });
    GET() {}
  }
  class Derived extends Base {
    static override readonly guard = bearer(() => true);
  }
  const client = await createTestClient({ '': { Base, Derived } });
  t.is((await client.send('GET', '/base')).status, 204);
  t.is((await client.send('GET', '/derived')).status, 401);
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
