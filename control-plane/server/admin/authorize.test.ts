import type { IncomingMessage } from 'node:http';
import test from 'ava';
import type { RoutedRequest } from '../../../shared/router/index.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import type { AuditedChange } from '../history/activity/audit.ts';
import { createAuthorizer } from './authorize.ts';
import { parsePeerToken, parseTokens } from './tokens.ts';

const [reader, writer, worker] = [
  'token-of-a-reader-01',
  'token-of-a-writer-01',
  'token-of-a-worker-01',
];
const parsed = parseTokens(`ann read ${reader}\nbob write ${writer}\nfleet xds ${worker}\n`, 'f');
const tokens = parsed.ok ? parsed.tokens : undefined;
const none = { tokens: undefined, peerToken: undefined, isLoopback: true, audit: () => {} };
const guarded = createAuthorizer({ ...none, tokens, isLoopback: false });
const local = createAuthorizer(none);

function request(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): RoutedRequest {
  const { signal } = new AbortController();
  return {
    id: 'r',
    method,
    path,
    target: path,
    origin: 'http://localhost',
    headers: new Headers(headers),
    remoteAddress: '10.0.0.1',
    state: {},
    signal,
  };
}

async function statusOf(given: RoutedRequest, authorizer = guarded): Promise<number> {
  try {
    await authorizer.guard.check(given);
    return 200;
  } catch (error) {
    return (error as { status: number }).status;
  }
}

const bearerOf = (token: string) => ({ authorization: `Bearer ${token}` });
const namedTokens: Readonly<Record<string, string>> = { reader, writer, worker, none: '' };

/** `METHOD PATH by TOKEN` where tokens are asked for, or `NAME=VALUE ...` of headers where none are. */
// Proof of SECURITY.md: asks nothing of the admin API
// Proof of SECURITY.md: cannot ask an admin API on loopback
testLines(test, new URL('authorize.txt', import.meta.url), async (given) => {
  const [, method = '', path = '', name = ''] = /^(\S+) (\S+) by (\S+)$/.exec(given) ?? [];
  const headers = Object.fromEntries(given.split(' ').map((each) => each.split(/=(.*)/)));
  const status = await (method === ''
    ? statusOf(request('PUT', '/domains/a', given === 'nothing' ? {} : headers), local)
    : statusOf(request(method, path, bearerOf(namedTokens[name] ?? name))));
  return String(status);
});

test('the caller is identified by the name of the token', async (t) => {
  const given = request('GET', '/domains', bearerOf(reader));
  await guarded.guard.check(given);
  t.is(guarded.callerOf(given), 'ann');
  t.is(local.callerOf(given), 'local');
});

test('a change that a token is not allowed to make is in the audit log, a query is not', async (t) => {
  const audited: AuditedChange[] = [];
  const audit = (change: AuditedChange) => void audited.push(change);
  const authorizer = createAuthorizer({ ...none, tokens, audit });
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
      outcome: '403: the token ann can only read',
    },
  ]);
});

const shared = 'token-of-the-peers-01';
const peerToken = toSet(parsePeerToken(shared, 'f'));

function toSet(result: ReturnType<typeof parseTokens>) {
  return result.ok ? result.tokens : undefined;
}

// Proof of SECURITY.md: reads rules, revisions, workers, limited values and what peers ask; changes nothing
test('the token of the peers allows the queries of peers in a rollout, and no changes', async (t) => {
  const addresses = [
    { ...none, peerToken, isLoopback: false },
    { ...none, peerToken, isLoopback: true },
    { ...none, peerToken, tokens, isLoopback: false },
    { ...none, peerToken, tokens, isLoopback: true },
  ];
  for (const deps of addresses) {
    const authorizer = createAuthorizer(deps);
    // Behind a proxy, a peer sends a host name even if the address is a loopback one.
    const headers = { ...bearerOf(shared), host: 'control-planes:18001' };
    const asked = request('GET', '/rollouts/workers', headers);
    t.is(await statusOf(asked, authorizer), 200);
    t.is(authorizer.callerOf(asked), 'peer');
    t.is(authorizer.scopeOf(asked), 'read');
    t.is(await statusOf(request('POST', '/rollouts', headers), authorizer), 403);
    t.is(await statusOf(request('PUT', '/domains/a', headers), authorizer), 403);
  }
});

// Proof of SECURITY.md: `/healthcheck`, the console's files, a signed webhook
test('where others can reach the address, no caller has access without a token', async (t) => {
  const local = { host: 'localhost:18001' };
  for (const deps of [none, { ...none, peerToken }]) {
    const authorizer = createAuthorizer({ ...deps, isLoopback: false });
    for (const headers of [local, { ...local, ...bearerOf('an-unknown-token-0001') }]) {
      t.is(await statusOf(request('GET', '/status', headers), authorizer), 401);
    }
    t.false(authorizer.isAuthenticated?.({ headers: local } as IncomingMessage));
  }
});

test('on a loopback address without a token file, the token of the peers is accepted but not required', async (t) => {
  const authorizer = createAuthorizer({ ...none, peerToken });
  for (const headers of [{}, bearerOf('an-unknown-token-0001')]) {
    const here = request('PUT', '/domains/a', { host: 'localhost:18001', ...headers });
    t.is(await statusOf(here, authorizer), 200);
    t.is(authorizer.callerOf(here), 'local');
    t.is(authorizer.scopeOf(here), 'write');
    const elsewhere = request('GET', '/status', { host: 'evil.example:18001', ...headers });
    t.is(await statusOf(elsewhere, authorizer), 403);
  }
  t.is(authorizer.isAuthenticated, undefined);
});

test('a token in both files has the scope of the tokens file, unless that is the scope of workers', async (t) => {
  const statusWith = (line: string) => {
    const tokens = toSet(parseTokens(`${line} ${shared}\n`, 'f'));
    const authorizer = createAuthorizer({ ...none, tokens, peerToken, isLoopback: false });
    return statusOf(request('PUT', '/domains/a', bearerOf(shared)), authorizer);
  };
  t.is(await statusWith('ann write'), 200);
  t.is(await statusWith('fleet xds'), 403);
});

test('an open stream ends when its token is revoked', (t) => {
  let known = tokens;
  const changing = { find: (token: string) => known?.find(token) };
  const authorizer = createAuthorizer({ ...none, tokens: changing, isLoopback: false });
  const listening = request('GET', '/events', bearerOf(reader));
  t.true(authorizer.mayGoOn(listening));
  known = undefined;
  t.false(authorizer.mayGoOn(listening));
  t.true(local.mayGoOn(request('GET', '/events', {})));
});
