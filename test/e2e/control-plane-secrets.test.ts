// No output of a control plane or of its commands contains a secret: the output and every answer of its ports are
// searched for every secret that it was given or sent, in each of its states. The settings that hold secrets come from
// the table of settings, so that a new one is included automatically.
import { createHmac } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { controlPlaneTable } from '../../control-plane/server/settings/table.ts';
import { toRows } from '../../shared/settings/setting.ts';
import {
  type ControlPlaneOptions,
  type ControlPlaneProcess,
  createControlPlaneProcess,
} from '../support/control-plane-process.ts';
import { startEchoWeb } from '../support/echo-servers.ts';
import { eventually } from '../support/eventually.ts';
import { createGitRepository } from '../support/git-repository.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import { createSecrets } from '../support/secrets.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

/** Each is used in one of the tests below; the first test fails for a secret setting that is missing here. */
const covered = [
  '--git',
  'RATELANE_GIT_PASSWORD',
  '--git-password-file',
  'RATELANE_WEBHOOK_SECRET',
  '--webhook-secret-file',
  '--xds-tls-key',
  '--xds-tokens-file',
  '--admin-tls-key',
  '--admin-tokens-file',
  '--peers-token-file',
  '--peers-key',
  '--notify-url',
  '--notify-secret-file',
  '--commit-status-token-file',
  '--record',
  'RATELANE_RECORD_PASSWORD',
  '--record-password-file',
  '--record-key',
];
/** A user in them ends the start before anything else: test/feature/settings/secrets.test.ts. */
const refused = ['--source-url', '--peers', '--public-url', '--commit-status-url'];

test('every setting that holds a secret, or names a file that does, is in these tests', (t) => {
  const rows = toRows(controlPlaneTable).map(({ setting }) => setting);
  const names = rows
    .filter(
      ({ secret, names }) =>
        secret !== 'no' || /-(password|secret|tokens?)-file$|-key$/.test(names[0]),
    )
    .map(({ names }) => names[0]);
  t.deepEqual(names.toSorted(), [...covered, ...refused].toSorted());
  const [, own = ''] = readFileSync(import.meta.filename, 'utf8').split(/^type Run /m);
  for (const name of covered) t.true(own.includes(`'${name}'`), name);
  for (const { names, secret } of rows) {
    const isNamed = names.every((name) => /(PASSWORD|SECRET|TOKEN)$/.test(name));
    if (isNamed) t.is(secret, 'whole', names[0]);
  }
});

type Run = ReturnType<typeof begin>;

function begin(t: ExecutionContext) {
  const secrets = createSecrets();
  const { path: folder } = createRulesFolder(t);
  let logged = '';
  return {
    make: secrets.make,
    /** A file with this text, or with a new secret. */
    file(name: string, text = secrets.make(name)) {
      const path = join(folder, name.replace(/^-+/, ''));
      writeFileSync(path, `${text}\n`);
      return path;
    },
    /** Adds texts that are not part of a control plane's output. */
    note(text: string) {
      logged += `${text}\n`;
    },
    create: ({ flags, ...options }: ControlPlaneOptions) =>
      createControlPlaneProcess(t, { ...options, flags: [...flags, '--log-level', 'debug'] }),
    /** Fails when a secret was printed. */
    search(plane: ControlPlaneProcess) {
      const lines = `${plane.output()}\n${logged}`.split('\n');
      t.deepEqual(
        lines.filter((line) => secrets.findIn(line).length > 0),
        [],
      );
    },
  };
}

/** Calls every route, including requests that are refused. */
async function useAdminApi(
  { note }: Run,
  plane: ControlPlaneProcess,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const description = JSON.parse(
    readFileSync(new URL('../../control-plane/server/admin/openapi.json', import.meta.url), 'utf8'),
  ) as { paths: Record<string, Record<string, unknown>> };
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const method of Object.keys(methods)) {
      const target = path.replaceAll(/\{\w+\}/g, 'shop');
      const answer = await fetch(`${plane.adminUrl}${target}`, {
        method: method.toUpperCase(),
        headers: { 'content-type': 'application/json', ...headers },
        ...(/post|put|patch/.test(method) && { body: '{"yaml": 1}' }),
        signal: AbortSignal.timeout(60_000),
      });
      note(`${method} ${target} ${answer.status} ${JSON.stringify([...answer.headers])}`);
      note(await readAnswer(answer));
    }
  }
}

/** Reads only the beginning of an endless stream. */
async function readAnswer(answer: Response): Promise<string> {
  const isEndless = answer.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (!isEndless || answer.body === null) return await answer.text();
  for await (const chunk of answer.body) return new TextDecoder().decode(chunk);
  return '';
}

test.serial('a control plane with tokens that are correct, wrong or misplaced', async (t) => {
  const run = begin(t);
  const rules = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 11) });
  const [read, write, worker] = [run.make('read'), run.make('write'), run.make('worker')];
  const tokens = `ann read ${read}\nbob write ${write}\nfleet xds ${worker}`;
  const peers = run.make('of peers');
  const webhook = run.make('RATELANE_WEBHOOK_SECRET');
  const plane = await run.create({
    flags: [
      ...['--config-dir', rules.path],
      ...['--admin-tokens-file', run.file('--admin-tokens-file', tokens)],
      ...['--xds-tokens-file', run.file('--xds-tokens-file', tokens)],
      ...['--peers-token-file', run.file('--peers-token-file', peers)],
    ],
    env: { RATELANE_WEBHOOK_SECRET: webhook, RATELANE_ADMIN_TOKEN: write },
  });
  await plane.start();

  const wrong = run.make('a wrong token');
  for (const authorization of [
    `Bearer ${read}`,
    `Bearer ${write}`,
    `Bearer ${worker}`,
    `Bearer ${peers}`,
    `Bearer ${wrong}`,
    `Bearer ${wrong} ${write}`,
    `Basic ${Buffer.from(`bob:${write}`).toString('base64')}`,
    write,
  ]) {
    await useAdminApi(run, plane, { authorization });
  }
  for (const init of [
    { headers: { 'x-gitlab-token': wrong } },
    { headers: { 'x-gitlab-token': webhook } },
    { headers: { 'x-hub-signature-256': `sha256=${wrong}` } },
    {
      body: '{}',
      headers: {
        'x-hub-signature-256': `sha256=${createHmac('sha256', webhook).update('{}').digest('hex')}`,
      },
    },
  ]) {
    run.note(JSON.stringify(await plane.fetch('/webhooks', { method: 'POST', ...init })));
  }
  run.note(JSON.stringify(await plane.fetch(`/status?token=${encodeURIComponent(write)}`)));

  for (const token of [worker, wrong]) {
    const started = startWorkerProcess(t, {
      env: {
        LOG_LEVEL: 'trace',
        BACKEND_TYPE: 'memory',
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        CONFIG_GRPC_XDS_SERVER_URL: plane.xdsAddress,
        CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `authorization:Bearer ${token}`,
        FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
      },
    });
    const process = await started;
    await eventually('rules or a refusal', async () => {
      const rules = await fetch(`http://127.0.0.1:${process.ports.debug}/rlconfig`);
      return (await rules.text()).includes('shop') || /UNAUTHENTICATED/.test(process.output());
    });
    await useAdminApi(run, plane, { authorization: `Bearer ${read}` });
    run.note(process.output());
  }

  const asked = [
    await plane.run('status', '--min-workers', '0'),
    await plane.run('status', '--json', '--token-file', run.file('wrong')),
    await plane.run('history', '--token-file', run.file('several', `${wrong} ${write}`)),
    await plane.run('push', rules.path, '--token-file', join(rules.path, 'nothing')),
    await plane.runElsewhere(
      'status',
      '--admin-url',
      `http://x:${encodeURIComponent(wrong)}@127.0.0.1:1`,
    ),
    await plane.runElsewhere(
      'status',
      '--admin-url',
      `http://:${encodeURIComponent(wrong)}@127.0.0.1:1`,
    ),
    await plane.runElsewhere('status', '--admin-url', 'http://127.0.0.1:1'),
    await plane.runElsewhere('serve', '--help'),
  ];
  for (const { exitCode, stdout, stderr } of asked) run.note(`${exitCode} ${stdout} ${stderr}`);
  t.is(asked[0]?.exitCode, 0, asked[0]?.stderr);
  t.is(await plane.end('SIGTERM'), 0);
  run.search(plane);
});

type ToOptions = (run: Run, host: string) => ControlPlaneOptions;
const password = (run: Run) => encodeURIComponent(run.make('--git'));
const ways: Readonly<Record<string, ToOptions>> = {
  'in the address': (run, host) => ({
    flags: ['--git', `http://${password(run)}:${password(run)}@${host}/r.git`],
  }),
  'as the user of the address': (run, host) => ({
    flags: ['--git', `http://${password(run)}@${host}/r.git`],
  }),
  'as a parameter of the address': (run, host) => ({
    flags: ['--git', `http://${host}/r.git?private_token=${password(run)}`],
  }),
  'in a variable': (run, host) => ({
    flags: ['--git', `http://${host}/r.git`],
    env: { RATELANE_GIT_PASSWORD: run.make('RATELANE_GIT_PASSWORD') },
  }),
  'in a file': (run, host) => {
    const file = run.file('--git-password-file');
    return { flags: ['--git', `http://${host}/r.git`, '--git-password-file', file] };
  },
};
for (const [how, toOptions] of Object.entries(ways)) {
  test.serial(`a Git host that refuses and quotes the password ${how}`, async (t) => {
    const run = begin(t);
    const { flags, env = {} } = toOptions(run, `127.0.0.1:${await startEchoWeb(t)}`);
    const webhook = run.file('--webhook-secret-file');
    const plane = await run.create({
      flags: [...flags, '--git-poll', '500ms', '--webhook-secret-file', webhook],
      env,
    });
    plane.begin();
    await eventually('the refusal is logged', () => /git [\w-]+ failed/.test(plane.output()));
    await useAdminApi(run, plane, {});
    run.note(JSON.stringify(await plane.fetch('/webhooks', { method: 'POST' })));
    const { exitCode, stdout, stderr } = await plane.run('status');
    run.note(`${exitCode} ${stdout} ${stderr}`);
    t.is(await plane.end('SIGTERM'), 0);
    run.search(plane);
  });
}

const engines: Readonly<Record<string, ToOptions>> = {
  'that quotes the password in the address': (run, host) => ({
    flags: ['--record', `etcd:http://root:${encodeURIComponent(run.make('--record'))}@${host}`],
  }),
  'that quotes the password in a variable': (run, host) => ({
    flags: ['--record', `etcd:http://root@${host}`],
    env: { RATELANE_RECORD_PASSWORD: run.make('RATELANE_RECORD_PASSWORD') },
  }),
  'that quotes the password in a file': (run, host) => {
    const file = run.file('--record-password-file');
    return { flags: ['--record', `etcd:http://root@${host}`, '--record-password-file', file] };
  },
  'whose key is none': (run, host) => {
    const key = run.file('--record-key');
    const tls = ['--record-cert', key, '--record-key', key];
    return { flags: ['--record', `etcd:https://${host}`, ...tls] };
  },
};
for (const [what, toOptions] of Object.entries(engines)) {
  test.serial(`an engine of the record ${what}`, async (t) => {
    const run = begin(t);
    const { flags, env = {} } = toOptions(run, `127.0.0.1:${await startEchoWeb(t)}`);
    const rules = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 1) });
    const rollout = ['--config-dir', rules.path, '--rollout', 'canary=10%,hold=1h'];
    const plane = await run.create({ flags: [...rollout, ...flags], env });
    plane.begin();
    await eventually('the refusal is logged', () =>
      /\(--record\) cannot be read/.test(plane.output()),
    );
    await useAdminApi(run, plane, {});
    t.is(await plane.end('SIGTERM'), 0);
    run.search(plane);
  });
}

test.serial('receivers of notifications that refuse and quote the request', async (t) => {
  const run = begin(t);
  const host = `http://127.0.0.1:${await startEchoWeb(t)}`;
  const hook = encodeURIComponent(run.make('--notify-url'));
  const repository = createGitRepository(t, { 'shop.yaml': ruleText('shop', 1) });
  const plane = await run.create({
    flags: [
      ...['--git', repository.url, '--commit-status-url', `${host}/repos/acme/limits`],
      ...['--notify-url', `${host}/${hook}?token=${hook}`],
      ...['--notify-secret-file', run.file('--notify-secret-file')],
      ...['--commit-status-token-file', run.file('--commit-status-token-file')],
    ],
  });
  await plane.start();
  await eventually('both refusals are logged', () => plane.output().split(' fail (').length === 3);
  await useAdminApi(run, plane, {});
  const { exitCode, stdout, stderr } = await plane.run('status');
  run.note(`${exitCode} ${stdout} ${stderr}`);
  t.is(await plane.end('SIGTERM'), 0);
  run.search(plane);
});

test.serial('starts that fail because of files, and a defect', async (t) => {
  const run = begin(t);
  const directory = ['--config-dir', createRulesFolder(t).path];
  const tokens = run.file('--admin-tokens-file');
  const short = run.file('--xds-tokens-file', `ann all ${run.make('a token')}`);
  const crash = 'setTimeout(() => { throw new Error("a defect"); }, 1500)';
  const env = {
    RATELANE_GIT_PASSWORD: run.make('RATELANE_GIT_PASSWORD'),
    RATELANE_WEBHOOK_SECRET: run.make('RATELANE_WEBHOOK_SECRET'),
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(crash)}`,
  };
  const tls = (...names: [string, string]) => {
    const key = run.file(names[1]);
    return [names[0], key, names[1], key];
  };
  const starts: [flags: readonly string[], words: RegExp, env?: Record<string, string>][] = [
    [['--admin-tokens-file', tokens], /write a name, a scope and a token/],
    [['--xds-tokens-file', short], /the scope is not one of/],
    [tls('--xds-tls-cert', '--xds-tls-key'), /cannot be used/],
    [tls('--admin-tls-cert', '--admin-tls-key'), /cannot be used/],
    [['--peers', 'https://127.0.0.1:1', ...tls('--peers-cert', '--peers-key')], /cannot be used/],
    [[], /a defect/, env],
  ];
  for (const [flags, words, env = {}] of starts) {
    const plane = await run.create({ flags: [...directory, ...flags], env });
    plane.begin();
    t.is(await plane.ended(), 1, plane.output());
    t.regex(plane.output(), words);
    run.search(plane);
  }
});
