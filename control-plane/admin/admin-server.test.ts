// The admin API over real sockets and a real directory, without workers.

import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { bearer } from '../../shared/router/index.ts';
import { startAdminApi } from '../../test/support/admin-api.ts';
import { runInProcess } from '../../test/support/command-run.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { RecordedLog } from '../../test/support/recorded-log.ts';
import { createRulesFolder, type RulesFolder, ruleText } from '../../test/support/rules-folder.ts';
import { createAdminApp, maxListeners } from './admin-app.ts';

interface Running {
  readonly port: number;
  readonly rules: RulesFolder;
  readonly log: RecordedLog;
  ask(method: string, path: string, options?: Asking): Promise<Reply>;
}

interface Asking {
  readonly yaml?: string;
  readonly json?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  readonly body: any;
}

async function run(
  t: ExecutionContext,
  files: Readonly<Record<string, string>>,
  tokens?: string,
): Promise<Running> {
  const { port, rules, log } = await startAdminApi(t, {
    ...{ files, ...(tokens !== undefined && { tokens }) },
  });
  return {
    port,
    rules,
    log,
    async ask(method, path, { yaml, json, headers } = {}) {
      const type = yaml === undefined ? 'application/json' : 'application/yaml';
      const body = yaml ?? (json === undefined ? undefined : JSON.stringify(json));
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        ...(body !== undefined && { body }),
        headers: { ...(body !== undefined && { 'content-type': type }), ...headers },
      });
      const text = await answer.text();
      const isJson = answer.headers.get('content-type')?.includes('json') === true;
      const { status } = answer;
      return { status, headers: answer.headers, body: isJson ? JSON.parse(text) : text };
    },
  };
}

function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.end(text));
    socket.setTimeout(60_000, () => socket.destroy(new Error('no answer')));
    socket.on('data', (chunk) => {
      answer += chunk.toString();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
  });
}

const wrongUnit = ruleText('shop', 1).replace('year', 'yaer');

test('a domain is created, read, replaced and deleted, each under its tag', async (t) => {
  const { ask } = await run(t, { 'book.yaml': ruleText('book', 1) });
  const put = await ask('PUT', '/domains/shop', { yaml: ruleText('shop', 1) });
  t.is(put.status, 201);
  t.is((await ask('POST', '/domains', { yaml: ruleText('shop', 2) })).status, 409);
  const create = { yaml: ruleText('shop', 2), headers: { 'if-none-match': '*' } };
  t.is((await ask('PUT', '/domains/shop', create)).status, 412);
  const read = await ask('GET', '/domains/shop');
  t.is(read.headers.get('etag'), put.headers.get('etag'));
  t.deepEqual(read.body.files, [{ path: 'shop.yaml', yaml: ruleText('shop', 1) }]);

  const ifMatch = (tag: string | null) => ({ headers: { 'if-match': tag ?? '' } });
  const tag = read.headers.get('etag');
  const replaced = await ask('PUT', '/domains/shop', {
    json: { yaml: `\ufeff${ruleText('shop', 3)}` },
    ...ifMatch(tag),
  });
  t.is(replaced.status, 200);
  const marked = await ask('GET', '/domains/shop');
  t.is(marked.headers.get('etag'), replaced.headers.get('etag'), 'a mark is no part of a text');
  t.is((await ask('DELETE', '/domains/shop')).status, 428);
  t.is((await ask('DELETE', '/domains/shop', ifMatch(tag))).status, 412);
  t.is((await ask('DELETE', '/domains/shop', ifMatch(replaced.headers.get('etag')))).status, 204);
  t.is((await ask('DELETE', '/domains/shop', ifMatch('*'))).status, 412);
  t.is((await ask('GET', '/domains/shop')).status, 404);
  const other = await ask('PUT', '/domains/mail', { yaml: ruleText('shop', 1) });
  t.like(other, { status: 400, body: { detail: 'the rules are for domain shop, not mail' } });
});

test('rules with errors are refused with every problem, and nothing is written', async (t) => {
  const { ask } = await run(t, {
    'shop.yaml': ruleText('shop', 1),
    'mail.yaml': ruleText('mail', 1),
  });
  const { revision } = (await ask('GET', '/domains')).body;
  const refused = await ask('PUT', '/domains/shop', {
    yaml: wrongUnit,
    headers: { 'if-match': '*' },
  });
  t.is(refused.status, 422);
  t.is(refused.headers.get('content-type'), 'application/problem+json');
  t.like(refused.body, { title: 'Unprocessable Content', problems: [{ line: 4, column: 25 }] });
  const twice = await ask('POST', '/revisions', {
    json: {
      files: [
        { path: 'a.yaml', text: ruleText('shop', 1) },
        { path: 'b.yaml', text: ruleText('shop', 1) },
      ],
    },
  });
  t.is(twice.status, 422);
  t.regex(twice.body.problems[0].message, /duplicate domain 'shop'/);
  for (const path of [
    '../evil.yaml',
    '/etc/evil.yaml',
    'a/../../evil.yaml',
    '.git/evil.yaml',
    'evil.sh',
  ]) {
    const files = [{ path, text: ruleText('shop', 1) }];
    const answer = await ask('POST', '/revisions', { json: { files } });
    t.deepEqual([path, answer.status], [path, 422]);
  }
  t.is((await ask('GET', '/domains')).body.revision, revision);
});

test('one of two broken files can be repaired, and the broken one is found by its name', async (t) => {
  const { ask } = await run(t, { 'shop.yaml': wrongUnit, 'mail.yaml': 'domain: [' });
  t.is((await ask('GET', '/status')).body.verdict, 'invalid');
  const repair = (domain: string) =>
    ask('PUT', `/domains/${domain}`, { yaml: ruleText(domain, 2), headers: { 'if-match': '*' } });
  t.is((await repair('shop')).status, 200);
  t.is((await ask('GET', '/status')).body.verdict, 'invalid');
  t.is((await repair('mail')).status, 200);
  t.is((await ask('GET', '/status')).body.verdict, 'no_workers');
});

test('two writers at once: one wins, the other is told', async (t) => {
  const { ask } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  const tag = (await ask('GET', '/domains/shop')).headers.get('etag') ?? '';
  const answers = await Promise.all(
    [2, 3, 4].map((requests) =>
      ask('PUT', '/domains/shop', {
        yaml: ruleText('shop', requests),
        headers: { 'if-match': tag },
      }),
    ),
  );
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, 412, 412]);
});

test('a change while the store cannot be reached is no conflict: the store is to blame', async (t) => {
  const { ask, port, rules } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  const elsewhere = createRulesFolder(t);
  elsewhere.write('shop.yaml', ruleText('shop', 2));
  rmSync(rules.path, { recursive: true });
  const detail =
    'the store cannot be reached, so nothing can be written: the directory does not exist: create it, or correct --config-dir';
  const answer = await ask('PUT', '/domains/shop', {
    yaml: ruleText('shop', 2),
    headers: { 'if-match': '*' },
  });
  t.like(answer, { status: 503, body: { detail } });
  const push = ['push', elsewhere.path, '--admin-url', `http://127.0.0.1:${port}`];
  const { code, err } = await runInProcess(push);
  t.is(code, 2);
  t.true(err.includes(detail), err);
});

test('rules are checked and requests explained without a change', async (t) => {
  const { ask } = await run(t, { 'shop.yaml': ruleText('shop', 7) });
  const checked = await ask('POST', '/validations', { yaml: wrongUnit });
  t.like(checked.body, { valid: false, problems: [{ file: 'body.yaml', line: 4 }] });
  const files = [{ path: 'a.yaml', text: ruleText('shop', 1) }];
  t.deepEqual((await ask('POST', '/validations', { json: { files } })).body, {
    valid: true,
    problems: [],
  });
  t.is((await ask('POST', '/validations', { json: {} })).status, 400);
  const question = { domain: 'shop', descriptors: [[{ key: 'k', value: 'v' }]] };
  const explained = await ask('POST', '/explanations', { json: question });
  t.like(explained.body.descriptors[0], {
    verdict: "the limit of 'k' applies",
    match: { limit: { requestsPerUnit: 7, unit: 'year' } },
  });
  const unknown = await ask('POST', '/explanations', { json: { ...question, domain: 'other' } });
  t.is(unknown.status, 404);
  const misspelt = "there are no rules for domain shopp; did you mean 'shop'?";
  for (const { status, body } of [
    await ask('POST', '/explanations', { json: { ...question, domain: 'shopp' } }),
    await ask('GET', '/rules/shopp'),
  ]) {
    t.is(status, 404);
    t.is(body.detail, misspelt);
  }
});

// Proof of SECURITY.md: changes rules for all workers, steers rollouts, approves; each by name in the audit log
test('every change that was asked for is in the audit log', async (t) => {
  const { ask, log } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  const { revision: before } = (await ask('GET', '/domains')).body;
  const yaml = ruleText('shop', 2);
  const done = await ask('PUT', '/domains/shop', { yaml, headers: { 'if-match': '*' } });
  await ask('PUT', '/domains/shop', { yaml, headers: { 'if-match': '"other"' } });
  const lines = log.lines.filter((line) => line.includes('audit: '));
  const [first, second] = log.fields;
  t.is(lines.length, 2);
  t.is(lines[0], 'info audit: put domain shop: done');
  t.like(first, {
    who: 'local',
    address: '127.0.0.1',
    what: 'put domain shop',
    before,
    after: done.body.revision,
    outcome: 'done',
    requestId: done.headers.get('x-request-id'),
  });
  t.is(second?.['after'], undefined);
  t.regex(`${second?.['outcome']}`, /^412: the domain shop has changed since/);
});

test('a change that is refused before it is planned is in the audit log', async (t) => {
  const { ask, log } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  await ask('POST', '/rollbacks', { json: { revision: 'abcdef012345abcdef' } });
  await ask('POST', '/domains', { yaml: 'domain: [' });
  await ask('PUT', '/domains/shop', { yaml: 'domain: [' });
  await ask('PUT', '/domains/mail', { yaml: ruleText('shop', 1) });
  const audited = log.fields;
  t.deepEqual(
    audited.map(({ who, what, outcome }) => [who, what, `${outcome}`.slice(0, 5)]),
    [
      ['local', 'roll back to abcdef012345', '404: '],
      ['local', 'create a domain', '422: '],
      ['local', 'put domain shop', '422: '],
      ['local', 'put domain mail', '400: '],
    ],
  );
  t.is(audited[1]?.['outcome'], '422: the rules have errors');
});

test('a change that takes most limits away is refused, unless it says that it is meant', async (t) => {
  const { ask, rules } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  const { headers } = await ask('GET', '/domains/shop');
  const tag = { headers: { 'if-match': headers.get('etag') ?? '' } };
  const refused = await ask('DELETE', '/domains/shop', tag);
  t.is(refused.status, 422);
  t.regex(refused.body.problems[0].message, /^held back: no domain would be left \(shop\.k\)$/);
  t.is((await ask('POST', '/revisions', { json: { files: [] } })).status, 422);
  t.true(existsSync(join(rules.path, 'shop.yaml')));
  t.is((await ask('DELETE', '/domains/shop?allowRemoval=true', tag)).status, 204);
  t.false(existsSync(join(rules.path, 'shop.yaml')));
});

test('a revision that is held back is approved by its id, with a reason, and that is audited', async (t) => {
  const { ask, rules, log } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  rmSync(join(rules.path, 'shop.yaml'));
  await eventually('it is held back', async () => {
    return (await ask('GET', '/status')).body.verdict === 'held_back';
  });
  const { text, newest } = (await ask('GET', '/status')).body;
  t.regex(
    text,
    /^revision \w+ is held back: no domain would be left .* stays in force until it is approved$/,
  );
  const approve = (json: object) => ask('POST', '/approvals', { json });
  t.is((await approve({ revision: newest.id })).status, 400, 'without a reason');
  t.is((await approve({ revision: 'abcdef012345', reason: 'x' })).status, 404);
  t.is((await approve({ revision: newest.id, reason: 'the shop is closed' })).status, 200);
  t.is((await ask('GET', '/status')).body.verdict, 'no_workers');
  const again = await approve({ revision: newest.id, reason: 'x' });
  t.is(again.status, 409);
  t.regex(again.body.detail, /is not held back$/);
  t.true(
    log.lines.some((line) => /audit: approve revision \w+: the shop is closed: done$/.test(line)),
    log.lines.join('\n'),
  );
});

// Crowds come before the other tests: beside them the first of a crowd have had their time before the last is there.
test.serial('connections that are too many are said once', async (t) => {
  const { port, log } = await run(t, {});
  const sockets = Array.from({ length: 266 }, () => connect(port, '127.0.0.1').resume());
  for (const socket of sockets) socket.on('error', () => {});
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  await eventually('ten were closed', () => sockets.filter(({ closed }) => closed).length >= 10);
  const said = log.lines.filter((line) => line.includes('connections already'));
  t.is(said.length, 1);
  t.regex(
    said[0] ?? '',
    /^warning admin API: there are 256 connections already: the one that was .* was closed$/,
  );
});

const local = 'host: localhost\r\nconnection: close\r\n';
const posting = (type: string, length: number) =>
  `POST /domains HTTP/1.1\r\n${local}content-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`;
const malformed: [string, string, number][] = [
  ['no HTTP at all', 'GET / HTTQ/1.1\r\n\r\n', 400],
  ['a header without a colon', 'GET / HTTP/1.1\r\nhost\r\n\r\n', 400],
  ['a broken percent sequence', `GET /domains/%zz HTTP/1.1\r\n${local}\r\n`, 400],
  ['an unknown method', `BREW /domains HTTP/1.1\r\n${local}\r\n`, 501],
  ['a verb that is not there', `DELETE /status HTTP/1.1\r\n${local}\r\n`, 405],
  ['a path that is not there', `GET /nothing HTTP/1.1\r\n${local}\r\n`, 404],
  ['a body that is no JSON', `${posting('application/json', 1)}{`, 400],
  ['a form', `${posting('application/x-www-form-urlencoded', 3)}a=b`, 415],
  ['a body that is announced to be huge', posting('application/json', 999_999_999), 413],
];
test('malformed requests are answered with problem documents', async (t) => {
  const { port } = await run(t, {});
  for (const [what, text, status] of malformed) {
    const answer = await sendRaw(port, text);
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    t.true(head.startsWith(`HTTP/1.1 ${status} `), `${what}: ${head}`);
    t.regex(head, /content-type: application\/problem\+json/i, what);
    t.is(JSON.parse(body).status, status, what);
  }
});

test('routes without a token take only a small body, whatever its type', async (t) => {
  const { port } = await run(t, {});
  for (const type of ['application/json', 'application/yaml']) {
    const head = `GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\n`;
    const answer = await sendRaw(port, `${head}Content-Length: 10000\r\n\r\n${'9'.repeat(10_000)}`);
    t.regex(answer, /^HTTP\/1\.1 413 /, type);
  }
});

test('unfinished bodies make room for others before they are too much', async (t) => {
  const { port, ask } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  const part = Buffer.alloc(4 * 1024 * 1024);
  const attackers = Array.from({ length: 18 }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    t.teardown(() => socket.destroy());
    socket.write(unfinishedWebhook(part.length + 1));
    socket.write(part);
    return socket;
  });
  // 72 MiB are more than 64: two or three have to go, and no more.
  await eventually('some were cut', () => attackers.filter((each) => each.closed).length >= 2);
  t.is(
    (await ask('PUT', '/domains/shop', { yaml: ruleText('shop', 2), headers: { 'if-match': '*' } }))
      .status,
    200,
  );
  t.is((await ask('POST', '/webhooks', { json: {} })).status, 401, 'it was read to its end');
  t.true(attackers.filter((each) => each.closed).length <= 4);
});

function unfinishedWebhook(length: number): string {
  const type = 'content-type: application/json';
  return `POST /webhooks HTTP/1.1\r\nhost: localhost\r\n${type}\r\ncontent-length: ${length}\r\n\r\n`;
}

test('metrics count answers by route, never by path', async (t) => {
  const { ask } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  await ask('GET', '/domains/shop');
  await ask('GET', '/something/else');
  const { body, headers } = await ask('GET', '/metrics');
  t.regex(headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  t.regex(body, /admin_answers_total\{route="domains",method="GET",status="200"\} 1/);
  t.regex(body, /admin_answers_total\{route="other",method="GET",status="404"\} 1/);
  t.regex(body, /^ratelane_control_plane_domains 1$/m);
});

test('the description of the API is the one that is kept with it', async (t) => {
  const app = await createAdminApp({ api: undefined, guard: bearer() });
  const kept = await readFile(new URL('openapi.json', import.meta.url), 'utf8');
  t.deepEqual(JSON.parse(JSON.stringify(app.describe())), JSON.parse(kept), 'run npm run docs');
});

test('a webhook call whose body cannot be read gets a problem document as well', async (t) => {
  const { port } = await run(t, {});
  const head =
    'POST /webhooks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n';
  const answer = await sendRaw(port, `${head}Content-Type: nothing\r\n\r\n{}`);
  t.regex(answer, /^HTTP\/1\.1 415 /);
  t.regex(answer, /content-type: application\/problem\+json/i);
  t.notRegex(answer, /FST_/);
});

test('while no revision is in force the control plane is not ready, and says so', async (t) => {
  const { ask, rules } = await run(t, { 'shop.yaml': wrongUnit });
  const before = await ask('GET', '/healthcheck');
  t.is(before.status, 503);
  t.deepEqual(before.body, { status: 'starting', detail: 'a revision that can be in force' });
  rules.write('shop.yaml', ruleText('shop', 1));
  await eventually('it is ready', async () => (await ask('GET', '/healthcheck')).status === 200);
  rules.write('shop.yaml', wrongUnit);
  await eventually('the invalid one is seen', async () => {
    const { stale } = (await ask('GET', '/status')).body;
    return stale?.reason === 'newest_invalid';
  });
  t.is((await ask('GET', '/healthcheck')).status, 200, 'what is in force stays so');
});

test('every path is served under the version as well, the webhook too', async (t) => {
  const { ask } = await run(t, { 'a.yaml': ruleText('a', 1) });
  for (const path of ['/status', '/domains/a', '/revisions?limit=1', '/healthcheck']) {
    const [one, other] = [await ask('GET', path), await ask('GET', `/v1${path}`)];
    t.is(other.status, 200, path);
    t.deepEqual(Object.keys(other.body), Object.keys(one.body), path);
  }
  t.is((await ask('POST', '/v1/webhooks', { json: {} })).status, 401);
  t.is((await ask('PUT', '/v1/domains/a', { yaml: ruleText('a', 2) })).status, 428);
  for (const path of ['/v1', '/v2/status', '/v1/v1/status']) {
    t.is((await ask('GET', path)).status, 404, path);
  }
});

test('a resource that is made below /v1 has its location below /v1', async (t) => {
  const { ask } = await run(t, { 'a.yaml': ruleText('a', 1) });
  const made = await ask('POST', '/v1/domains', { yaml: ruleText('b', 1) });
  t.is(made.headers.get('location'), '/v1/domains/b');
  const old = await ask('POST', '/domains', { yaml: ruleText('c', 1) });
  t.is(old.headers.get('location'), '/domains/c');
});

test('the revision in force is shown without the store, which may no longer have it', async (t) => {
  const { port, store } = await startAdminApi(t, {
    files: { 'a.yaml': ruleText('a', 1) },
  });
  Object.assign(store, { readRevision: async () => undefined });
  const url = `http://127.0.0.1:${port}`;
  const { rules } = (await (await fetch(`${url}/rules/a`)).json()) as { rules: unknown[] };
  t.is(rules.length, 1);
  const explained = await fetch(`${url}/explanations`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ domain: 'a', descriptors: [[{ key: 'k', value: 'v' }]] }),
  });
  t.is(explained.status, 200);
});

test('a listener to the events is told at once that there is something to read', async (t) => {
  const { port, log } = await run(t, { 'a.yaml': ruleText('a', 1) });
  const answer = await fetch(`http://127.0.0.1:${port}/events`);
  t.is(answer.headers.get('content-type'), 'text/event-stream');
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  let text = '';
  while (!text.includes('state')) text += new TextDecoder().decode((await reader.read()).value);
  t.is(text, 'event:revisions\ndata:""\n\nevent:state\ndata:""\n\n');
  await reader.cancel();
  t.is((await fetch(`http://127.0.0.1:${port}/status`)).status, 200);
  t.deepEqual(
    log.lines.filter((line) => line.includes('events')),
    [],
  );
});

test('no more than 64 callers listen to the events, and whoever goes makes room', async (t) => {
  const { port, log } = await run(t, { 'a.yaml': ruleText('a', 1) });
  // The answers are kept: the stream of one that nobody has any more would be closed.
  const listen = async () => {
    const going = new AbortController();
    const { signal } = going;
    return { going, answer: await fetch(`http://127.0.0.1:${port}/events`, { signal }) };
  };
  const listeners = await Promise.all(Array.from({ length: maxListeners }, listen));
  t.true(listeners.every(({ answer }) => answer.status === 200));
  const { answer } = await listen();
  t.is(answer.status, 503);
  t.regex(await answer.text(), /too many connections are open; ask again from time to time/);
  t.false(log.lines.some((line) => line.startsWith('error')));
  listeners[0]?.going.abort();
  await eventually('there is room', async () => (await listen()).answer.status === 200);
  for (const { going } of listeners) going.abort();
});

test('one token has sixteen listeners to the events at most, and leaves room for others', async (t) => {
  const tokens = 'ann read token-of-ann-0123456789\nbob read token-of-bob-0123456789\n';
  const { port } = await run(t, { 'a.yaml': ruleText('a', 1) }, tokens);
  const listen = async (name: string) => {
    const going = new AbortController();
    t.teardown(() => going.abort());
    const headers = { authorization: `Bearer token-of-${name}-0123456789` };
    const { signal } = going;
    return { going, answer: await fetch(`http://127.0.0.1:${port}/events`, { signal, headers }) };
  };
  const [first, ...others] = await Promise.all(Array.from({ length: 16 }, () => listen('ann')));
  t.true(others.every(({ answer }) => answer.status === 200));
  const { answer } = await listen('ann');
  t.is(answer.status, 429);
  t.regex(await answer.text(), /16 listeners of ann are open/);
  t.is((await listen('bob')).answer.status, 200);
  first?.going.abort();
  await eventually('there is room', async () => (await listen('ann')).answer.status === 200);
});

test('the description has what a change may be refused with, and one schema for each answer', async (t) => {
  const { body } = await (await run(t, {})).ask('GET', '/openapi.json');
  const { put, get } = body.paths['/domains/{domain}'];
  t.deepEqual(Object.keys(put.requestBody.content), ['application/json', 'application/yaml']);
  const names = put.parameters.map(({ name }: { name: string }) => name);
  t.deepEqual(names, ['domain', 'If-Match', 'If-None-Match']);
  for (const status of [409, 412, 422, 428, 503]) t.truthy(put.responses[status], `${status}`);
  t.regex(JSON.stringify(put.responses[422]), /"problems"/);
  t.deepEqual(Object.keys(body.paths['/webhooks'].post.responses), ['202', '401', '413', '500']);
  for (const { responses } of [get, body.paths['/domains'].get, body.paths['/revisions'].get]) {
    t.notRegex(JSON.stringify(responses[200].content['application/json'].schema), /^\{"anyOf"/);
  }
  t.deepEqual(
    body.servers.map(({ url }: { url: string }) => url),
    ['/v1', '/'],
  );
});

const token = 'a-token-of-a-person';
/** Connections of an attacker, each with this. */
async function attack(t: ExecutionContext, port: number, count: number, text: string) {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
  await Promise.all(
    sockets.map(async (socket) => {
      t.teardown(() => socket.destroy());
      socket.on('error', () => {}).resume();
      await once(socket, 'connect');
      await new Promise((resolve) => socket.write(text, resolve));
    }),
  );
}

for (const [what, text] of [
  ['headers', 'GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nX-More: '],
  ['bodies', `${unfinishedWebhook(1000)}{`],
] as const) {
  test(`400 connections with unfinished ${what} take nothing from probes and from who has authenticated`, async (t) => {
    const { port, ask } = await run(t, {}, `me read ${token}`);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.teardown(() => agent.destroy());
    const askAgain = async () => {
      const headers = { authorization: `Bearer ${token}` };
      const asking = get({ port, host: '127.0.0.1', path: '/workers', agent, headers });
      const [answer] = await once(asking, 'response');
      await once(answer.resume(), 'end');
      return [answer.statusCode, asking.reusedSocket];
    };
    t.deepEqual(await askAgain(), [200, false]);
    await attack(t, port, 400, text);
    for (let index = 0; index < 20; index++) {
      t.is((await ask('GET', '/healthcheck')).status, 200);
    }
    t.deepEqual(await askAgain(), [200, true], 'on the same connection');
  });
}

// Proof of SECURITY.md: `/healthcheck`, the console's files, a signed webhook
test('a caller who does not authenticate has the connection for one answer', async (t) => {
  const { ask } = await run(t, {}, `me read ${token}`);
  const probe = await ask('GET', '/healthcheck');
  t.is(probe.headers.get('connection'), 'close');
  const headers = { authorization: `Bearer ${token}` };
  const known = await ask('GET', '/workers', { headers });
  t.is(known.headers.get('connection'), 'keep-alive');
  const wrong = await ask('GET', '/workers', { headers: { authorization: 'Bearer no' } });
  t.deepEqual([wrong.status, wrong.headers.get('connection')], [401, 'close']);
});

const lifting = { domain: 'shop', descriptors: [[{ key: 'k', value: 'ada' }]], reason: 'a demo' };

test('a limit is lifted for a time, longer, and not any more, each in force and audited with the reason', async (t) => {
  const { ask, rules, log } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  const inForce = async () => (await ask('GET', '/rules/shop')).body.revision;
  const lift = async (more: object) => {
    const reply = await ask('POST', '/lifts', { json: { ...lifting, ...more } });
    if (reply.status === 200) {
      await eventually('it is in force', async () => (await inForce()) === reply.body.revision);
    }
    return reply;
  };
  const file = () => readFile(join(rules.path, 'shop.yaml'), 'utf8');
  const first = await lift({ for: '1h' });
  t.is(first.status, 200, first.body.detail);
  t.is(first.body.rules, 'shop.k_ada');
  const { until } = first.body;
  t.true(Math.abs(Date.parse(until) - Date.now() - 3_600_000) < 60_000, until);
  t.regex(
    await file(),
    new RegExp(`- \\{key: k, value: ada, until: ${until}, .*\\} {2}# lifted by local: a demo\n`),
  );
  const { domain, descriptors } = lifting;
  const explained = await ask('POST', '/explanations', { json: { domain, descriptors } });
  t.is(explained.body.descriptors[0].until, until);
  const longer = await lift({ until: '2020-01-01T01:00:00+01:00' });
  t.is(longer.status, 400);
  const two = await lift({ for: '2h', reason: 'more\n\nRollout: steps' });
  t.is((await file()).match(/value: ada/g)?.length, 1);
  t.regex(
    await file(),
    new RegExp(`until: ${two.body.until}, .*# lifted by local: more Rollout: steps`),
  );
  const ended = await lift({ end: true });
  t.is(ended.body.until, null);
  t.is(await file(), ruleText('shop', 1));
  t.is((await lift({ end: true })).status, 404);
  const audited = log.lines.filter((line) => line.includes('audit: '));
  t.deepEqual(audited, [
    `info audit: lift shop.k_ada until ${until}: a demo: done`,
    'warning audit: lift shop.k_ada: a demo: 400: until 2020-01-01T00:00:00Z is past: a lift ends later',
    `info audit: lift shop.k_ada until ${two.body.until}: more Rollout: steps: done`,
    'info audit: end the lift of shop.k_ada: a demo: done',
    'warning audit: end the lift of shop.k_ada: a demo: 404: (k=ada) of domain shop is not lifted',
  ]);
});

test('a lift without an end, with a wrong one, or of what nobody has is refused, and nothing is written', async (t) => {
  const { ask, rules } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  const cases: readonly (readonly [object, number, RegExp])[] = [
    [{}, 400, /^a lift needs an end: one of for \(such as 1h\), until \(a time\), and end: true$/],
    [{ for: '1h', end: true }, 400, /^a lift needs an end: one of /],
    [{ for: '1' }, 400, /^for '1' is not a duration, such as 1h: the unit is missing/],
    [{ for: '0s' }, 400, /^for '0s' is no time: a lift lasts longer than nothing$/],
    [{ for: '-1h' }, 400, /^for '-1h' is no time/],
    [{ for: '8761h' }, 400, /^a lift lasts at most 8760h, a year: 8761h is longer$/],
    [{ until: '2020-01-01T00:00:00Z' }, 400, /^until 2020-01-01T00:00:00Z is past/],
    [
      { until: '2126-01-01T00:00:00Z' },
      400,
      /^a lift lasts at most 8760h, a year: 2126-01-01T00:00:00Z is longer$/,
    ],
    [
      { until: '2026-11-24T18:00:00' },
      400,
      /^until '2026-11-24T18:00:00' is not a time with an offset/,
    ],
    [{ for: '1h', reason: '' }, 400, /reason/],
    [{ for: '1h', domain: 'mail' }, 404, /^there is no domain mail$/],
    [
      { for: '1h', descriptors: [[{ key: 'kk', value: 'a' }]] },
      404,
      /^no rule matches \(kk=a\) of domain shop: no rule has the key 'kk'; the keys there are 'k'$/,
    ],
  ];
  for (const [more, status, detail] of cases) {
    const reply = await ask('POST', '/lifts', { json: { ...lifting, ...more } });
    t.is(reply.status, status, JSON.stringify(more));
    t.regex(
      `${reply.body.detail} ${JSON.stringify(reply.body.errors ?? '')}`.replace(/ ""$/, ''),
      detail,
    );
  }
  t.is(await readFile(join(rules.path, 'shop.yaml'), 'utf8'), ruleText('shop', 1));
});

test('a lift is refused to who may only read, and while the newest revision is not in force', async (t) => {
  const [reader, writer] = ['r'.repeat(32), 'w'.repeat(32)];
  const { ask, rules, log } = await run(
    t,
    { 'shop.yaml': ruleText('shop', 1) },
    `ann read ${reader}\nbob write ${writer}\n`,
  );
  const lift = (token: string) =>
    ask('POST', '/lifts', {
      json: { ...lifting, for: '1h' },
      headers: { authorization: `Bearer ${token}` },
    });
  t.is((await lift(reader)).status, 403);
  t.true(log.lines.includes('warning audit: POST /lifts: 403: the token ann may only read'));
  rules.write('mail.yaml', wrongUnit.replace('shop', 'mail'));
  const refused = await lift(writer);
  t.is(refused.status, 409);
  t.regex(
    refused.body.detail,
    /^a lift reaches all workers at once, and the newest revision \S+ would with it, but that is not in force: repair, approve or roll it back first$/,
  );
  t.is(await readFile(join(rules.path, 'shop.yaml'), 'utf8'), ruleText('shop', 1));
});
