import test from 'ava';
import type { RoutedRequest } from '../../shared/router/request.ts';
import type { AuditedChange } from './audit.ts';
import { createAuthorizer } from './authorize.ts';
import { parseTokens } from './tokens.ts';

const [reader, writer, worker] = [
  'token-of-a-reader-01',
  'token-of-a-writer-01',
  'token-of-a-worker-01',
];
const parsed = parseTokens(`ann read ${reader}\nbob write ${writer}\nfleet xds ${worker}\n`, 'f');
const guarded = createAuthorizer(parsed.ok ? parsed.tokens : undefined, () => {});
const local = createAuthorizer(undefined, () => {});

function request(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): RoutedRequest {
  return { id: 'r', method, path, headers: new Headers(headers), remoteAddress: '10.0.0.1' };
}

async function statusOf(given: RoutedRequest, authorizer = guarded): Promise<number> {
  try {
    await authorizer.guard.check(given);
    return 200;
  } catch (error) {
    return (error as { status: number }).status;
  }
}

const cases: [string, string, string, number][] = [
  ['GET', '/domains', reader, 200],
  ['HEAD', '/domains', reader, 200],
  ['POST', '/validations', reader, 200],
  ['POST', '/revisions/diff', reader, 200],
  ['POST', '/revisions/diff/x', reader, 403],
  ['POST', '/explanations', reader, 200],
  ['POST', '/domains', reader, 403],
  ['PUT', '/domains/validations', reader, 403],
  ['DELETE', '/domains/a', reader, 403],
  ['POST', '/rollbacks', reader, 403],
  ['PUT', '/domains/a', writer, 200],
  ['GET', '/domains', worker, 401],
  ['GET', '/domains', 'token-of-nobody-0001', 401],
  ['GET', '/domains', '', 401],
];
for (const [method, path, token, status] of cases) {
  test(`${method} ${path} with the token '${token}' is answered with ${status}`, async (t) => {
    t.is(await statusOf(request(method, path, { authorization: `Bearer ${token}` })), status);
  });
}

test('the caller is known by the name of the token', async (t) => {
  const given = request('GET', '/domains', { authorization: `Bearer ${reader}` });
  await guarded.guard.check(given);
  t.is(guarded.callerOf(given), 'ann');
  t.is(local.callerOf(given), 'local');
});

test('a change that a token may not make is in the audit log, a question is not', async (t) => {
  const audited: AuditedChange[] = [];
  const authorizer = createAuthorizer(parsed.ok ? parsed.tokens : undefined, (change) => {
    audited.push(change);
  });
  const authorization = `Bearer ${reader}`;
  for (const method of ['GET', 'OPTIONS', 'DELETE']) {
    await statusOf(request(method, '/domains/a', { authorization }), authorizer);
  }
  t.deepEqual(audited, [
    {
      who: 'ann',
      address: '10.0.0.1',
      what: 'DELETE /domains/a',
      requestId: 'r',
      before: undefined,
      after: undefined,
      outcome: '403: the token ann may only read',
    },
  ]);
});

const locals: [string, Readonly<Record<string, string>>, number][] = [
  ['a loopback address', { host: '127.0.0.1:18001' }, 200],
  ['an IPv6 loopback address', { host: '[::1]:18001' }, 200],
  ['localhost', { host: 'localhost' }, 200],
  ['a page of the API itself', { host: 'localhost:1', origin: 'http://localhost:1' }, 200],
  ['a name that leads here', { host: 'evil.example:18001' }, 403],
  ['a name that looks local', { host: 'localhost.evil.example' }, 403],
  ['no name', {}, 403],
  ['a page of another site', { host: 'localhost:1', origin: 'https://evil.example' }, 403],
  ['a page of another port', { host: 'localhost:1', origin: 'http://localhost:2' }, 403],
  ['a page without an origin', { host: 'localhost:1', origin: 'null' }, 403],
];
for (const [title, headers, status] of locals) {
  test(`without tokens a request for ${title} is answered with ${status}`, async (t) => {
    t.is(await statusOf(request('PUT', '/domains/a', headers), local), status);
  });
}
