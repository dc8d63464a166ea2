// Tests that the author of a revision is notified of its outcome: by one of the control planes, and once.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { createGitRepository } from '../../support/git-repository.ts';
import { listenFor } from '../../support/listen.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

interface Call {
  readonly path: string;
  // biome-ignore lint/suspicious/noExplicitAny: notifications and statuses
  readonly body: any;
}

async function startReceiver(t: ExecutionContext) {
  const calls: Call[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    calls.push({ path: request.url ?? '', body: JSON.parse(body) });
    response.end();
  });
  const port = await listenFor(t, server);
  const folder = createRulesFolder(t);
  const [secret, token] = ['secret', 'token'].map((name) => {
    writeFileSync(join(folder.path, name), `the-${name}-of-the-test`);
    return join(folder.path, name);
  }) as [string, string];
  const origin = `http://127.0.0.1:${port}`;
  const notify = ['--notify-url', `${origin}/hidden-hook`, '--notify-secret-file', secret];
  const status = ['--commit-status-url', `${origin}/repos/acme/limits`];
  return {
    flags: [...notify, '--public-url', 'https://limits.example/'],
    statusFlags: [...status, '--commit-status-token-file', token],
    events: () =>
      calls
        .filter(({ path }) => path === '/hidden-hook')
        .map(({ body }) => [body.event, body.revision.id]),
    notifications: () =>
      calls.filter(({ path }) => path === '/hidden-hook').map(({ body }) => body),
    statuses: () => calls.filter(({ path }) => path !== '/hidden-hook'),
  };
}

test('one of two control planes notifies an author of errors, and once, over restarts', async (t) => {
  const receiver = await startReceiver(t);
  const repository = createGitRepository(t);
  const push = (files: Readonly<Record<string, string | undefined>>) => {
    repository.push(files);
    return repository.gitAtRemote('rev-parse', 'main');
  };
  const first = push({ 'a.yaml': ruleText('first', 1), 'b.yaml': ruleText('other', 1) });
  const git = ['--git', repository.url, '--git-poll', '200ms'];
  const flags = [...git, ...receiver.flags, ...receiver.statusFlags];
  const planes = await Promise.all([0, 1].map(() => createControlPlaneInProcess(t, { flags })));
  for (const plane of planes) await plane.start();
  const notified: [string, string][] = [['in-force', first]];
  const isNotified = () =>
    eventually(
      `${notified.at(-1)} is notified`,
      () =>
        receiver.events().length >= notified.length &&
        receiver.statuses().length >= notified.length,
    );
  await isNotified();
  const wrong = push({ 'a.yaml': ruleText('first', 1).replace('year', 'yaer') });
  notified.push(['invalid', wrong]);
  await isNotified();
  t.like(receiver.notifications().at(-1), {
    revision: { author: { name: 'Ann', email: 'ann@example.test' }, message: 'change' },
    domains: ['first'],
    reason: "a.yaml:4:25: invalid rate limit unit 'yaer'",
    by: null,
    errors: 1,
    link: `https://limits.example/console/#/revisions?open=${wrong.slice(0, 12)}`,
  });
  t.like(receiver.notifications().at(-1).problems[0], { file: 'a.yaml', line: 4, column: 25 });
  const removing = push({ 'a.yaml': undefined, 'b.yaml': undefined });
  notified.push(['held-back', removing]);
  await isNotified();
  t.regex(receiver.notifications().at(-1).reason, /held back: no domain would be left/);

  for (const plane of planes) {
    await plane.stop();
    await plane.start();
  }
  const right = push({ 'a.yaml': ruleText('first', 2), 'b.yaml': ruleText('other', 1) });
  notified.push(['in-force', right]);
  await isNotified();
  for (const plane of planes) {
    await eventually('both have it', async () => {
      const { body } = await plane.fetch('/status');
      return body.inForce.id === right;
    });
  }
  t.deepEqual(receiver.events(), notified);
  t.deepEqual(
    receiver.statuses().map(({ path, body }) => [path, body.state]),
    [
      [`/repos/acme/limits/statuses/${first}`, 'success'],
      [`/repos/acme/limits/statuses/${wrong}`, 'failure'],
      [`/repos/acme/limits/statuses/${removing}`, 'pending'],
      [`/repos/acme/limits/statuses/${right}`, 'success'],
    ],
  );
  const texts = await Promise.all(
    planes.flatMap((plane) => [
      plane.output(),
      ...['/metrics', '/status'].map(async (path) => (await fetch(plane.adminUrl + path)).text()),
    ]),
  );
  t.false(texts.some((text) => /hidden-hook|-of-the-test/.test(text)));
  const delivered =
    /^ratelane_control_plane_notifications_total\{target="url",outcome="delivered"\} \d+$/m;
  t.true(texts.some((text) => delivered.test(text)));
});

test('the actor and the reason of an abort are sent with the taken-back revision', async (t) => {
  const receiver = await startReceiver(t);
  const rules = createRulesFolder(t, { 'a.yaml': ruleText('first', 1) });
  const plane = await createControlPlaneInProcess(t, {
    flags: ['--config-dir', rules.path, '--rollout', 'canary=10%,hold=1h', ...receiver.flags],
  });
  await plane.start();
  await eventually('the first notification arrives', () => receiver.events().length === 1);
  rules.write('a.yaml', ruleText('first', 2));
  await eventually('it is on trial', async () => {
    return (await plane.fetch('/rollouts')).body.rollout !== null;
  });
  await eventually('it has begun', async () => {
    return (await plane.run('rollout', 'abort', '--reason', 'wrong file')).exitCode === 0;
  });
  await eventually('the second notification arrives', () => receiver.events().length === 2);
  t.like(receiver.notifications().at(-1), {
    event: 'taken-back',
    by: 'local',
    reason: 'aborted by local: wrong file',
    domains: ['first'],
  });
});

const mistakes: readonly [what: string, flags: readonly string[], expected: RegExp][] = [
  [
    'a secret that cannot be read',
    ['--notify-url', 'http://127.0.0.1:9/hidden-hook', '--notify-secret-file', '/nowhere/secret'],
    /--notify-secret-file cannot be read: ENOENT/,
  ],
  [
    'a secret that has no end',
    ['--notify-url', 'http://127.0.0.1:9/hidden-hook', '--notify-secret-file', '/dev/zero'],
    /--notify-secret-file cannot be read: \/dev\/zero has more than 4096 bytes/,
  ],
];
for (const [what, flags, expected] of mistakes) {
  test(`${what} ends the start, and names the setting`, async (t) => {
    const rules = createRulesFolder(t, { 'a.yaml': ruleText('first', 1) });
    const error = await t.throwsAsync(async () => {
      const all = ['--config-dir', rules.path, ...flags];
      await (await createControlPlaneInProcess(t, { flags: all })).start();
    });
    t.regex(error?.message ?? '', expected);
    t.false(error?.message.includes('hidden-hook'));
  });
}
