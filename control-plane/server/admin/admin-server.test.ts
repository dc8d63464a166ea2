// Tests the admin API over real sockets and a real directory, without workers.

import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { bearer } from '../../../shared/router/index.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { type AdminApi, type Reply, startAdminApi } from '../../../test/support/admin-api.ts';
import { runInProcess } from '../../../test/support/command-run.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { createRulesFolder, ruleText } from '../../../test/support/rules-folder.ts';
import { type Outcome, testScenarios } from '../../../test/support/scenarios.ts';
import { createAdminApp, maxListeners } from './admin-app.ts';

const run = (t: ExecutionContext, files: Readonly<Record<string, string>>, tokens?: string) =>
  startAdminApi(t, { files, ...(tokens !== undefined && { tokens }) });

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

/** `shop=3` is a document of domain shop with a limit of three, `shop=wrong` an invalid one. */
function toRules(text: string): string {
  return text.replace(/^(\ufeff?)(\w+)=(\d+|wrong)$/, (_, mark, domain, limit) =>
    limit === 'wrong'
      ? ruleText(domain, 1).replace('year', 'yaer')
      : mark + ruleText(domain, limit),
  );
}

const isHeader = /^[a-z-]+:\S/;

function showReply({ status, headers, body }: Reply): string {
  const [tag, location, type] = ['etag', 'location', 'content-type'].map((name) =>
    headers.get(name),
  );
  const head = `${status}${tag ? ` tag ${tag}` : ''}${location ? ` at ${location}` : ''}`;
  if (typeof body === 'string') return `${head}${body && ` ${type}`}\n${body}`;
  if (type !== 'application/problem+json') return `${head}\n${JSON.stringify(body)}`;
  const { detail = '', problems = [], errors = [] } = body;
  return [
    `${head} ${detail}`,
    ...problems.map(
      ({ file, line, column, message }: Problem) =>
        `${[file, line, column].filter((each) => each !== null).join(':')}: ${message}`,
    ),
    ...errors.map((error: unknown) => JSON.stringify(error)),
  ].join('\n');
}

function showRaw(answer: string): string {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const [, status, type] = /^HTTP\/1\.1 (\d+)[\s\S]*\r\ncontent-type: (\S+)/i.exec(head) ?? [];
  const { status: inBody, title, detail = title } = JSON.parse(body);
  return `${status} ${type} ${inBody} ${detail}`;
}

/** The processes that a scenario has started, and the ids that it has seen, which are `id1`, `id2`... in its text. */
class Scenario {
  readonly #t: ExecutionContext;
  readonly #running: Promise<AdminApi>;
  readonly #ids: string[] = [];

  constructor(t: ExecutionContext, folder: string) {
    const { tokens, ...rules } = Object.fromEntries(
      readdirSync(folder).map((name) => [
        name,
        toRules(readFileSync(join(folder, name), 'utf8').trim()),
      ]),
    );
    this.#t = t;
    this.#running = run(t, rules, tokens);
  }

  async run(words: readonly string[]): Promise<Outcome> {
    const { ask, url, port, rules, log } = await this.#running;
    const [command = '', target = '', ...rest] = words.map((word) =>
      word.replaceAll(/\bid(\d+)\b/g, (_, at) => this.#ids[at - 1] ?? ''),
    );
    const file = join(rules.path, target);
    const [text = ''] = rest;
    switch (command) {
      case 'write':
        rules.write(target, toRules(text));
        return { out: '' };
      case 'replace':
        rules.replace(target, readFileSync(file, 'utf8').replace(text, rest[1] ?? ''));
        return { out: '' };
      case 'remove':
        rmSync(file, { recursive: true });
        return { out: '' };
      case 'cat':
        return { out: this.#name(existsSync(file) ? readFileSync(file, 'utf8') : 'no file') };
      case 'log':
        return { out: this.#name(log.lines.filter((line) => line.includes(target)).join('\n')) };
      case 'raw':
        return {
          out: showRaw(await sendRaw(port, JSON.parse(`"${target.replaceAll('"', '\\"')}"`))),
        };
      case 'await':
        await eventually(`${target} has ${text}`, async () => {
          return JSON.stringify((await ask('GET', target)).body).includes(text);
        });
        return { out: '' };
      case 'push': {
        const pushed = createRulesFolder(this.#t);
        pushed.write('pushed.yaml', toRules(target));
        return await runInProcess(['push', pushed.path, '--admin-url', url]);
      }
      default: {
        const body = rest.find((word) => !isHeader.test(word));
        const headers = Object.fromEntries(
          rest.filter((word) => isHeader.test(word)).map((word) => word.split(/:(.*)/)),
        );
        const sent = body?.startsWith('{')
          ? {
              json: JSON.parse(body, (_, each) =>
                typeof each === 'string' ? toRules(each) : each,
              ),
            }
          : body !== undefined && { yaml: toRules(body) };
        return { out: this.#name(showReply(await ask(command, target, { headers, ...sent }))) };
      }
    }
  }

  /** Replaces ids by their order of appearance, and times of the next days by their distance. */
  #name(text: string): string {
    const named = text.replaceAll(/\b[0-9a-f]{12,64}\b/g, (id) => {
      const known = this.#ids.findIndex((each) => each.startsWith(id) || id.startsWith(each));
      const at = known === -1 ? this.#ids.length : known;
      if (id.length > (this.#ids[at] ?? '').length) this.#ids[at] = id;
      return `id${at + 1}`;
    });
    return named.replaceAll(/\b20\d\d-\d\d-\d\dT[\d:]+Z/g, (time) => {
      const hours = Math.round((Date.parse(time) - Date.now()) / 3_600_000);
      return hours > 0 && hours < 5 ? `in ${hours} h` : time;
    });
  }
}

const scenarios = new WeakMap<ExecutionContext, Scenario>();

// The first lines of the file explain its commands.
testScenarios(test, new URL('admin-server.txt', import.meta.url), (words, { t, folder }) => {
  const scenario = scenarios.get(t) ?? new Scenario(t, folder);
  scenarios.set(t, scenario);
  return scenario.run(words);
});

test('two writers at once: one wins, the other gets a conflict', async (t) => {
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

// Proof of SECURITY.md: changes rules for all workers, steers rollouts, approves; each by name in the audit log
test('every requested change is in the audit log', async (t) => {
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

// Tests with many connections run first: beside other tests, the first connections would time out before the last one
// is open.
test.serial('connections over the limit are logged once', async (t) => {
  const { port, log } = await run(t, {});
  const sockets = Array.from({ length: 266 }, () => connect(port, '127.0.0.1').resume());
  for (const socket of sockets) socket.on('error', () => {});
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  await eventually('ten were closed', () => sockets.filter(({ closed }) => closed).length >= 10);
  const logged = log.lines.filter((line) => line.includes('already 256 connections'));
  t.is(logged.length, 1);
  t.regex(
    logged[0] ?? '',
    /^warning admin API: there are already 256 connections: the .* one was closed$/,
  );
});

test('routes without a token take only a small body, whatever its type', async (t) => {
  const { port } = await run(t, {});
  for (const type of ['application/json', 'application/yaml']) {
    const head = `GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\n`;
    const answer = await sendRaw(port, `${head}Content-Length: 10000\r\n\r\n${'9'.repeat(10_000)}`);
    t.regex(answer, /^HTTP\/1\.1 413 /, type);
  }
});

test('unfinished bodies are dropped to make room for others before they exceed the limit', async (t) => {
  const { port, ask } = await run(t, { 'shop.yaml': ruleText('shop', 1) });
  const part = Buffer.alloc(4 * 1024 * 1024);
  const attackers = Array.from({ length: 18 }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    t.teardown(() => socket.destroy());
    socket.write(unfinishedWebhook(part.length + 1));
    socket.write(part);
    return socket;
  });
  // 72 MiB exceed 64 MiB: two or three connections must be cut, and no more.
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

test('the generated description of the API equals the stored one', async (t) => {
  const app = await createAdminApp({ api: undefined, guard: bearer() });
  const stored = readFileSync(new URL('openapi.json', import.meta.url), 'utf8');
  const toLines = (value: unknown) => JSON.stringify(value, null, 1);
  t.is(toLines(app.describe()), toLines(JSON.parse(stored)), 'run npm run docs');
});

test('the revision in force is shown even if the store is unreachable and may no longer have it', async (t) => {
  const { ask, store } = await run(t, { 'a.yaml': ruleText('a', 1) });
  Object.assign(store, { readRevision: async () => undefined });
  t.is((await ask('GET', '/rules/a')).body.rules.length, 1);
  const json = { domain: 'a', descriptors: [[{ key: 'k', value: 'v' }]] };
  t.is((await ask('POST', '/explanations', { json })).status, 200);
});

test('a listener to the events is notified at once', async (t) => {
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

test('no more than 64 callers listen to the events, and each one that leaves makes room', async (t) => {
  const { port, log } = await run(t, { 'a.yaml': ruleText('a', 1) });
  // The answers stay referenced: the stream of an unreferenced one would be closed.
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

test('one token has at most sixteen listeners to the events, and leaves room for others', async (t) => {
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

test('the description lists the errors of each change, and one schema for each answer', async (t) => {
  const { body } = await (await run(t, {})).ask('GET', '/openapi.json');
  const { put, get } = body.paths['/domains/{domain}'];
  t.deepEqual(Object.keys(put.requestBody.content), ['application/json', 'application/yaml']);
  const names = put.parameters.map(({ name }: { name: string }) => name);
  t.deepEqual(names, ['domain', 'If-Match', 'If-None-Match']);
  for (const status of [409, 412, 422, 428, 503]) t.truthy(put.responses[status], `${status}`);
  t.regex(JSON.stringify(put.responses[422]), /"problems"/);
  t.deepEqual(Object.keys(body.paths['/webhooks'].post.responses), ['202', '401', '413', '500']);
  for (const { responses } of [get, body.paths['/domains'].get, body.paths['/revisions'].get])
    t.notRegex(JSON.stringify(responses[200].content['application/json'].schema), /^\{"anyOf"/);
  t.deepEqual(
    body.servers.map(({ url }: { url: string }) => url),
    ['/v1', '/'],
  );
});

const token = 'a-token-of-a-person';
/** Opens connections of an attacker, each of which sends this text. */
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
  test(`400 connections with unfinished ${what} do not affect probes and authenticated callers`, async (t) => {
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
    for (let index = 0; index < 20; index++) t.is((await ask('GET', '/healthcheck')).status, 200);
    t.deepEqual(await askAgain(), [200, true], 'on the same connection');
  });
}

// Proof of SECURITY.md: `/healthcheck`, the console's files, a signed webhook
test('an unauthenticated caller has its connection for one answer', async (t) => {
  const { ask } = await run(t, {}, `me read ${token}`);
  const probe = await ask('GET', '/healthcheck');
  t.is(probe.headers.get('connection'), 'close');
  const headers = { authorization: `Bearer ${token}` };
  const known = await ask('GET', '/workers', { headers });
  t.is(known.headers.get('connection'), 'keep-alive');
  const wrong = await ask('GET', '/workers', { headers: { authorization: 'Bearer no' } });
  t.deepEqual([wrong.status, wrong.headers.get('connection')], [401, 'close']);
});

test('a webhook secret is read from its file up to the size limit', async (t) => {
  const folder = createRulesFolder(t, { secret: 'of-the-webhook\n' });
  for (const [secretFile, status] of [
    [join(folder.path, 'secret'), 202],
    ['/dev/zero', 401],
  ] as const) {
    const { ask } = await startAdminApi(t, { files: {}, webhook: { secret: '', secretFile } });
    const headers = { 'x-gitlab-token': 'of-the-webhook' };
    t.is((await ask('POST', '/webhooks', { json: {}, headers })).status, status, secretFile);
  }
});
