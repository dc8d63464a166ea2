// Tests notifications against a real HTTP server: the requests that arrive, the number of attempts, and the log.
import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../../../test/support/eventually.ts';
import { listenFor } from '../../../test/support/listen.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createRulesFolder } from '../../../test/support/rules-folder.ts';
import type { Notification } from './notification.ts';
import { createNotifier, maxWaiting, retries } from './notifier.ts';
import { toTargets } from './targets.ts';

interface Call {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const notificationOf = (id: string): Notification => ({
  delivery: `delivery-${id}`,
  event: 'taken-back',
  at: '2026-11-24T10:00:00.000Z',
  revision: { id, author: { name: 'Ann', email: 'ann@example.test' }, message: 'raise' },
  domains: ['shop'],
  reason: 'errors 9.0 % where it is, 0.1 % elsewhere',
  by: null,
  problems: [],
  errors: 0,
  link: `https://limits.example/console/#/revisions?open=${id}`,
});

/** A server that answers with these statuses, then with 200. */
async function start(t: ExecutionContext, ...statuses: readonly number[]) {
  const calls: Call[] = [];
  const left = [...statuses];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    calls.push({ path: request.url ?? '', headers: request.headers, body });
    response.writeHead(left.shift() ?? 200, { location: '/elsewhere' }).end('a text');
  });
  const port = await listenFor(t, server);
  const folder = createRulesFolder(t);
  const secretFile = join(folder.path, 'secret');
  const tokenFile = join(folder.path, 'token');
  writeFileSync(secretFile, 'the-shared-secret\n');
  writeFileSync(tokenFile, 'the-host-token\n');
  const log = createRecordedLog();
  const ends: string[] = [];
  const origin = `http://127.0.0.1:${port}`;
  const create = (kind: 'url' | 'status') =>
    createNotifier({
      targets: toTargets({
        url: kind === 'url' ? new URL(`${origin}/hooks/the-secret-path`) : undefined,
        secretFile,
        commitStatus:
          kind === 'status'
            ? { url: new URL(`${origin}/repos/acme/limits/`), tokenFile }
            : undefined,
        publicUrl: undefined,
      }),
      onEnd: (target, delivery) => ends.push(`${target} ${delivery}`),
      log,
      retries: { ...retries, minTimeout: 1, maxTimeout: 5 },
    });
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const logged = () => log.lines.map((line) => line.replaceAll(origin, 'ORIGIN'));
  return { calls, create, ends, logged, secretFile, server };
}

test('a notification is posted as JSON, with a signature that its receiver can verify', async (t) => {
  const { calls, create, ends, logged } = await start(t);
  create('url').notify(notificationOf('abc'));
  await eventually('it arrives', () => ends.length === 1);
  const [call] = calls;
  t.is(call?.path, '/hooks/the-secret-path');
  t.deepEqual(JSON.parse(call?.body ?? ''), notificationOf('abc'));
  const wanted = createHmac('sha256', 'the-shared-secret')
    .update(call?.body ?? '')
    .digest('hex');
  t.like(call?.headers, {
    'content-type': 'application/json',
    'x-ratelane-event': 'taken-back',
    'x-ratelane-delivery': 'delivery-abc',
    'x-ratelane-signature-256': `sha256=${wanted}`,
  });
  t.deepEqual([ends, logged()], [['url delivered'], []]);
});

test('a commit gets its status, with the beginning of the reason and a link', async (t) => {
  const { calls, create, ends } = await start(t);
  const reason = 'x'.repeat(200);
  create('status').notify({ ...notificationOf('abc'), reason });
  await eventually('it arrives', () => ends.length === 1);
  const [call] = calls;
  t.is(call?.path, '/repos/acme/limits/statuses/abc');
  t.is(call?.headers.authorization, 'Bearer the-host-token');
  t.deepEqual(JSON.parse(call?.body ?? ''), {
    state: 'failure',
    context: 'ratelane',
    description: `taken back: ${'x'.repeat(127)}…`,
    target_url: 'https://limits.example/console/#/revisions?open=abc',
  });
});

test("the status of a held-back commit contains 'held back' once", async (t) => {
  const { calls, create, ends } = await start(t);
  const reason = 'held back: no domain would be left';
  create('status').notify({ ...notificationOf('abc'), event: 'held-back', reason });
  await eventually('it arrives', () => ends.length === 1);
  t.like(JSON.parse(calls[0]?.body ?? ''), { state: 'pending', description: reason });
});

test('delivery to an unreachable target is retried, and logged once when that begins and once when it ends', async (t) => {
  const { calls, create, ends, logged } = await start(t, 503, 429, 500);
  create('url').notify(notificationOf('abc'));
  await eventually('it arrives', () => ends.length === 1);
  t.deepEqual(
    calls.map(({ headers }) => headers['x-ratelane-delivery']),
    Array(4).fill('delivery-abc'),
  );
  t.deepEqual(ends, ['url delivered']);
  t.deepEqual(logged(), [
    'warning Notifications to the notification URL at ORIGIN fail (it answers HTTP 503); giving up on each after 6 attempts',
    'notice Notifications to the notification URL at ORIGIN are accepted again',
  ]);
});

test('attempts end: after six of them, or at once when a retry is useless', async (t) => {
  const away = await start(t, ...Array(retries.retries + 1).fill(503), 401, 302);
  const notifier = away.create('url');
  for (const id of ['1', '2', '3', '4']) notifier.notify(notificationOf(id));
  await eventually('all have ended', () => away.ends.length === 4);
  t.is(away.calls.length, retries.retries + 1 + 3);
  t.false(away.calls.some(({ path }) => path === '/elsewhere'));
  t.deepEqual(away.ends, ['url failed', 'url failed', 'url failed', 'url delivered']);
  t.is(away.logged().length, 2, 'logged once, and once when it is over');
});

test('an unreachable or silent server and an unreadable secret are logged without the secret or the path', async (t) => {
  const { create, logged, secretFile, server } = await start(t);
  server.close();
  server.closeAllConnections();
  const gone = create('url');
  gone.notify(notificationOf('abc'));
  await eventually('it is logged', () => logged().length === 1);
  gone.stop();
  writeFileSync(secretFile, '');
  const unread = create('url');
  unread.notify(notificationOf('abc'));
  await eventually('it is logged', () => logged().length === 2);
  unread.stop();
  t.regex(logged()[0] ?? '', /fail \(connect ECONNREFUSED 127\.0\.0\.1:\d+\)/);
  t.regex(logged()[1] ?? '', /fail \(--notify-secret-file: \S+secret does not hold a secret\)/);
  t.false(logged().some((line) => /the-secret-path|the-shared-secret/.test(line)));
});

test('a hundred notifications wait for a target, and the oldest make room', async (t) => {
  const { create, ends, calls, server } = await start(t);
  server.removeAllListeners('request');
  server.on(
    'request',
    (request) => void calls.push({ path: request.url ?? '', headers: {}, body: '' }),
  );
  const notifier = create('url');
  for (let id = 0; id < maxWaiting + 3; id++) notifier.notify(notificationOf(`${id}`));
  // The first one is being sent.
  t.deepEqual(ends, ['url dropped', 'url dropped']);
  await eventually('the first is sent', () => calls.length === 1);
  notifier.stop();
  t.is(calls.length, 1);
});
