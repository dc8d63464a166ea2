import test from 'ava';
import fc from 'fast-check';
import Type from 'typebox';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { Controller } from './controller.ts';
import { HttpError, NotImplemented, Redirect, Stop } from './errors.ts';
import { op } from './op.ts';
import { named, optional, part } from './path-part.ts';
import { createTestClient, type TestClient } from './test-client.ts';

const open = Type.Object({}, { additionalProperties: true });

class Open extends Controller {
  static readonly GET = op({ query: open });
  static readonly POST = op({ body: open });

  GET(fields: object) {
    return { names: Object.keys(fields), hasPrototype: Object.getPrototypeOf(fields) !== null };
  }

  POST(fields: object) {
    return this.GET(fields);
  }
}

class Broken extends Controller {
  GET(): never {
    throw new Error('db-password-is-hunter2');
  }

  POST(): never {
    throw new HttpError(503, { detail: 'host host-7 is down', body: { host: 'host-7' } });
  }

  PUT(): never {
    throw new Redirect('/a\r\nSet-Cookie: a=b');
  }

  PATCH() {
    this.response.status = 99;
  }

  DELETE(): never {
    throw new HttpError(200);
  }

  OPTIONS(): never {
    throw new Stop(600);
  }
}

class Closed extends Controller {
  static readonly POST = op({ query: Type.Object({ a: Type.Optional(Type.String()) }) });
  static readonly PUT = op({ path: [optional(named('a'))] });
  static readonly DELETE = op({ rest: Type.String() });

  PATCH() {}
  POST() {}
  PUT() {}
  DELETE() {}
}

const opening = createTestClient({ '': { Open, Closed, Broken } });
const client = {
  send: async (...of: Parameters<TestClient['send']>) => (await opening).send(...of),
};

test('nothing but declared verbs is callable, whatever path or method is sent', async (t) => {
  for (const name of [
    'constructor',
    '__proto__',
    'toString',
    'describe',
    'request',
    'GET',
    'get',
  ]) {
    t.is((await client.send('GET', `/open/${name}`)).status, 404, name);
    t.is((await client.send(name, '/open')).status, name === 'GET' ? 200 : 501, name);
    t.is((await client.send('GET', `/${name}`)).status, 404, name);
  }
});

test('keyword objects have no prototype, and names of Object.prototype are data', async (t) => {
  const target = '/open?constructor=1&toString=2&hasOwnProperty=3';
  t.deepEqual((await client.send('GET', target)).json, {
    names: ['constructor', 'toString', 'hasOwnProperty'],
    hasPrototype: false,
  });
});

test('__proto__ is refused in a query, a form and a multipart field', async (t) => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const multipart = { 'content-type': 'multipart/form-data; boundary=b' };
  const part = '--b\r\nContent-Disposition: form-data; name="__proto__"\r\n\r\n1\r\n--b--\r\n';
  const statuses = [
    await client.send('GET', '/open?%5F_proto__=1'),
    await client.send('POST', '/open', { headers: form, body: '__proto__=1' }),
    await client.send('POST', '/open', { headers: multipart, body: part }),
  ].map(({ status }) => status);
  t.deepEqual(statuses, [400, 400, 400]);
  t.is(({} as Record<string, unknown>)['1'], undefined);
});

test.serial('a text longer than allowed is refused before a pattern reads it', async (t) => {
  const pattern = '^a*a*b$';
  class Named extends Controller {
    static readonly POST = op({
      body: Type.Object({ names: Type.Array(Type.String({ pattern, maxLength: 256 })) }),
    });
    POST() {}
  }
  const own = await createTestClient({ '': { Named } });
  const headers = { 'content-type': 'application/json' };
  const send = async (...names: string[]) => {
    const answer = await own.send('POST', '/named', { headers, body: JSON.stringify({ names }) });
    return (answer.json as { errors?: { reason: string }[] } | undefined)?.errors ?? [];
  };
  const before = cpuMs();
  t.deepEqual(
    (await send('a'.repeat(1_000_000))).map(({ reason }) => reason),
    ['must not have more than 256 characters'],
  );
  t.true(cpuMs() - before < 5_000);
  // Characters outside the basic plane have two code units each, and are read as well.
  const names = ['a'.repeat(256), '\u{1f600}'.repeat(200)];
  t.deepEqual(
    (await send(...names)).map(({ reason }) => reason),
    [`must match pattern "${pattern}"`, `must match pattern "${pattern}"`],
  );
  t.deepEqual(await send('aab'), []);
});

test('the text of an unexpected error reaches the log alone, with the id of the answer', async (t) => {
  const own = await createTestClient({ '': { Broken } });
  const answer = await own.send('GET', '/broken');
  t.is(answer.status, 500);
  t.notRegex(answer.text, /hunter2|stack/);
  const id = answer.headers.get('x-request-id') ?? '';
  t.like(answer.json, { requestId: id });
  const [report] = own.reports;
  t.like(report, { request: { id, path: '/broken' }, status: 500 });
  t.like(report?.error, { message: 'db-password-is-hunter2' });
});

test('the text and body of a thrown 5xx stay inside too', async (t) => {
  const { status, text } = await client.send('POST', '/broken');
  t.is(status, 503);
  t.notRegex(text, /host-7/);
});

test('501 states that the method is not implemented, and the log has no line about it', async (t) => {
  class Later extends Controller {
    GET(): never {
      throw new NotImplemented('waits for host-7');
    }
  }
  const own = await createTestClient({ '': { Later } });
  for (const method of ['GET', 'BREW']) {
    const { json: problem, text } = await own.send(method, '/later');
    t.like(problem, { status: 501, detail: 'this method is not implemented' });
    t.notRegex(text, /host-7/);
  }
  t.deepEqual(own.reports, []);
});

test('headers and statuses that cannot be sent become 500, not a broken connection', async (t) => {
  for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS'])
    t.is((await client.send(method, '/broken')).status, 500, method);
});

test("the client's request id is kept if it is well-formed", async (t) => {
  const id = async (sent: string) => {
    const headers = { 'x-request-id': sent };
    return (await client.send('GET', '/open', { headers })).headers.get('x-request-id');
  };
  t.is(await id('abc-1'), 'abc-1');
  t.not(await id('a b'), 'a b');
  t.not(await id('a'.repeat(65)), 'a'.repeat(65));
});

test('names, lists, parts and depth are bounded', async (t) => {
  const names = (count: number) =>
    Array.from({ length: count }, (_, index) => `a${index}=1`).join('&');
  const status = async (target: string) => (await client.send('GET', target)).status;
  t.is(await status(`/open?${names(100)}`), 200);
  t.is(await status(`/open?${names(101)}`), 400);
  t.is(await status(`/open?${'a=1&'.repeat(1000)}`), 200);
  t.is(await status(`/open?${'a=1&'.repeat(1001)}`), 400);
  t.is(await status(`/open?${'a'.repeat(9000)}`), 414);
  const deep = `${'['.repeat(40)}${']'.repeat(40)}`;
  t.is((await client.send('POST', '/open', { body: `{"a":${deep}}`, headers: json })).status, 400);
  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, 1]));
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const refused = await client.send('POST', '/open', { headers: form, body: names(101) });
  t.like(refused.json, { status: 400, detail: 'the body has more than 100 names' });
  t.is((await client.send('POST', '/open', { body: fields(5000) })).status, 200);
});

test('an answer names 20 problems at most', async (t) => {
  const names = Array.from({ length: 100 }, (_, index) => `a${index}=1`).join('&');
  const answer = await client.send('PATCH', `/closed?${names}`);
  const { errors } = answer.json as { errors: unknown[] };
  t.deepEqual([answer.status, errors.length], [400, 20]);
});

test('of a body that a method cannot take only as much is read as shows that', async (t) => {
  const send = async (method: string, body: string) =>
    (await client.send(method, '/closed', { body, headers: json })).status;
  t.is(await send('PATCH', '{}'), 204);
  t.is(await send('PATCH', '{"a":1}'), 400);
  const long = JSON.stringify({ a: 'x'.repeat(10_000) });
  t.is(await send('PATCH', long), 413);
  t.is(await send('POST', long), 204);
  t.is(await send('PUT', long), 204);
  t.is(await send('DELETE', '["x"]'), 204);
  let read = 0;
  async function* endless() {
    for (; ; read += 1) yield Buffer.alloc(1024, ' ');
  }
  const answer = await (await opening).app.dispatch({
    method: 'PATCH',
    target: '/closed',
    headers: new Headers(json),
    body: endless(),
    remoteAddress: undefined,
  });
  t.deepEqual([answer.status, read], [413, 8]);
});

const json = { 'content-type': 'application/json' };

test('a body that is not an object returns 400 where fields are declared, and names no path', async (t) => {
  for (const body of ['[1]', '7', '"tea"', 'null']) {
    const answer = await client.send('POST', '/open', { body, headers: json });
    t.like(answer.json, { status: 400, detail: 'the body is not an object of fields' }, body);
  }
  const text = { 'content-type': 'text/plain' };
  t.is((await client.send('POST', '/open', { body: 'tea', headers: text })).status, 400);
});

test('a charset other than UTF-8 and a compressed body return 415, a transfer coding other than chunked 501, bytes that are not UTF-8 400', async (t) => {
  const status = async (headers: Record<string, string>, body: string) =>
    (await client.send('POST', '/open', { headers, body })).status;
  t.is(await status({ 'content-type': 'application/json; charset=utf-16' }, '{}'), 415);
  t.is(await status({ ...json, 'content-encoding': 'gzip' }, '{}'), 415);
  t.is(await status({ ...json, 'content-encoding': 'Identity' }, '{}'), 200);
  t.is(await status({ 'content-type': 'application/json; charset="UTF-8"' }, '{}'), 200);
  const { app } = await opening;
  const send = async (headers: Record<string, string>, bytes: readonly number[]) =>
    app.dispatch({
      method: 'POST',
      target: '/open',
      headers: new Headers({ ...json, ...headers }),
      body: ReadableStream.from([Uint8Array.from(bytes)]),
      remoteAddress: undefined,
    });
  t.like(await send({}, [0x22, 0xff, 0x22]), { status: 400 });
  t.like(await send({ 'transfer-encoding': 'gzip, chunked' }, [0x7b, 0x7d]), { status: 501 });
  t.like(await send({ 'transfer-encoding': 'Chunked' }, [0x7b, 0x7d]), { status: 200 });
});

test('an application may refuse the kinds of body that forms can send', async (t) => {
  const jsonOnly = await createTestClient({ '': { Open } }, { bodyKinds: ['json'] });
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  t.is((await jsonOnly.send('POST', '/open', { headers: form, body: 'a=1' })).status, 415);
  t.is((await jsonOnly.send('POST', '/open', { body: { a: 1 } })).status, 200);
  const unnamed = await client.send('POST', '/open', { headers: form, body: ' {"a": 1}' });
  t.regex(unnamed.text, /needs content-type: application\/json/);
});

test('strict names serve the canonical spelling only', async (t) => {
  class BurstPolicy extends Controller {
    GET() {
      return 1;
    }
  }
  class Default extends Controller {
    static readonly GET = op({ rest: Type.String() });
    GET() {
      return 2;
    }
  }
  const strict = await createTestClient({ '': { BurstPolicy, Default } }, { strictNames: true });
  t.is((await strict.send('GET', '/burst-policy')).json, 1);
  t.is((await strict.send('GET', '/burst_policy')).status, 404);
  t.is((await strict.send('GET', '/BURST-POLICY')).status, 404);
  t.is((await strict.send('GET', '/anything')).json, 2);
});

test('problems with several keywords are named at once', async (t) => {
  class Rules extends Controller {
    static readonly POST = op({
      path: [part('id', Type.Integer())],
      query: Type.Object({ n: Type.Integer({ minimum: 2 }) }),
      body: Type.Object({
        name: Type.String(),
        tags: Type.Array(Type.Object({ a: Type.Integer() })),
      }),
    });
    POST() {}
  }
  const rules = await createTestClient({ '': { Rules } });
  const answer = await rules.send('POST', '/rules/1?n=1&zz=1', { body: { tags: [{ a: 'x' }] } });
  t.is(answer.status, 400);
  t.is(answer.headers.get('content-type'), 'application/problem+json');
  t.like(answer.json, { type: 'about:blank', title: 'Bad Request', status: 400 });
  t.deepEqual((answer.json as { errors: unknown }).errors, [
    { in: 'query', name: 'n', reason: 'must be >= 2' },
    { in: 'body', name: 'name', reason: 'is missing' },
    { in: 'body', name: 'tags/0/a', reason: 'must be integer' },
    { in: 'query', name: 'zz', reason: 'is unknown' },
  ]);
});

test('a problem within a value is named by its place, whether it is converted or checked', async (t) => {
  class Lists extends Controller {
    static readonly POST = op({
      body: Type.Object({
        ids: Type.Array(Type.Integer({ minimum: 1 })),
        owner: Type.Object({ name: Type.String() }),
      }),
    });
    POST() {}
  }
  const { send } = await createTestClient({ '': { Lists } });
  const problems = async (body: object) =>
    ((await send('POST', '/lists', { body })).json as { errors: object[] }).errors;
  t.deepEqual(await problems({ ids: [1, 'x'], owner: { name: 7 } }), [
    { in: 'body', name: 'ids/1', reason: 'must be an integer' },
    { in: 'body', name: 'owner/name', reason: 'must be string' },
  ]);
  t.deepEqual(await problems({ ids: [1, 0], owner: { name: 'a', admin: true } }), [
    { in: 'body', name: 'ids/1', reason: 'must be >= 1' },
    { in: 'body', name: 'owner/admin', reason: 'is unknown' },
  ]);
});

test('of a list with many wrong items twenty are named, however many there are', async (t) => {
  class Files extends Controller {
    static readonly POST = op({
      body: Type.Object({ files: Type.Array(Type.Object({ path: Type.String() })) }),
    });
    POST() {}
  }
  const own = await createTestClient({ '': { Files } });
  const namedFor = async (count: number) => {
    const files = Array.from({ length: count }, () => ({}));
    const answer = await own.send('POST', '/files', { body: { files } });
    return (answer.json as { errors: readonly { name: string; reason: string }[] }).errors;
  };
  const reason = 'must have required properties path';
  t.deepEqual(await namedFor(2), [
    { in: 'body', name: 'files/0', reason },
    { in: 'body', name: 'files/1', reason },
  ] as never);
  t.is((await namedFor(1000)).length, 20);
});

test('there is one instance per request, and defaults are copies', async (t) => {
  class Count extends Controller {
    static readonly GET = op({
      body: Type.Object({
        list: Type.Array(Type.Object({ size: Type.Integer({ default: 1 }) }), { default: [{}] }),
      }),
    });
    seen = 0;
    GET({ list }: { list: object[] }) {
      this.seen += 1;
      list.push({});
      return [this.seen, list];
    }
  }
  const count = await createTestClient({ '': { Count } });
  await count.send('GET', '/count');
  t.deepEqual((await count.send('GET', '/count')).json, [1, [{ size: 1 }, {}]]);
});

test('Stop keeps the headers that the method has set; an error replaces them', async (t) => {
  class Halt extends Controller {
    GET(): never {
      this.response.headers.set('x-a', 'b');
      throw new Stop(202, { queued: true });
    }
    POST(): never {
      this.response.headers.set('x-a', 'b');
      throw new HttpError(409);
    }
  }
  const halt = await createTestClient({ '': { Halt } });
  t.is((await halt.send('GET', '/halt')).headers.get('x-a'), 'b');
  t.is((await halt.send('POST', '/halt')).headers.get('x-a'), null);
});

test('Redirect keeps the headers that the method has set, each cookie of them', async (t) => {
  class Login extends Controller {
    POST(): never {
      this.response.headers.append('set-cookie', 'session=1; HttpOnly');
      this.response.headers.append('set-cookie', 'theme=dark');
      throw new Redirect('/home', 303);
    }
  }
  const { status, headers } = await (await createTestClient({ '': { Login } })).send(
    'POST',
    '/login',
  );
  t.deepEqual([status, headers.get('location')], [303, '/home']);
  t.deepEqual(headers.getSetCookie(), ['session=1; HttpOnly', 'theme=dark']);
});

test('whatever is sent, there is an answer, and nothing of ours has failed', async (t) => {
  class Default extends Controller {
    static readonly ANY = op({ rest: Type.Unknown(), query: open });
    ANY(fields: object, ...rest: unknown[]) {
      return [fields, rest];
    }
  }
  class Typed extends Controller {
    static readonly POST = op({
      path: [part('id', Type.Integer())],
      body: Type.Object({ list: Type.Array(Type.Number()), flag: Type.Boolean() }),
    });
    POST(fields: object) {
      return fields;
    }
  }
  const own = await createTestClient({ '': { Default, Typed } });
  const type = fc.constantFrom(
    'application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=b',
    'text/plain',
    'a/b; c="',
  );
  const target = fc.oneof(
    fc.string({ maxLength: 40 }).map((text) => `/${text}`),
    fc.webUrl({ withQueryParameters: true }),
    fc.constantFrom('*', '/typed/5', '/typed/x?list=1&flag=on'),
  );
  const body = fc.oneof(fc.string(), fc.json(), fc.constant('--b\r\n\r\n--b'));
  const method = fc.constantFrom('GET', 'POST', 'HEAD', 'OPTIONS', 'TRACE', 'BREW', 'constructor');
  await fc.assert(
    fc.asyncProperty(method, target, type, body, async (verb, path, contentType, text) => {
      const headers = { 'content-type': contentType };
      const { status } = await own.send(verb, path, { headers, body: text });
      t.true((status >= 200 && status < 500) || status === 501, `${status}`);
    }),
    { numRuns: 500 },
  );
  t.deepEqual(own.reports, []);
});
