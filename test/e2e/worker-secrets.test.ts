// No output of a worker contains a secret: its output, the pages of its ports and its answers are searched for every
// secret that it was given, in each of its states. The settings that hold secrets come from the table of settings, so
// that a new one is included automatically.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { toRows } from '../../shared/settings/setting.ts';
import { workerTable } from '../../worker/settings/table.ts';
import { startEchoStore, startEchoWeb } from '../support/echo-servers.ts';
import { eventually } from '../support/eventually.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import { startScriptedAdsServer } from '../support/scripted-ads-server.ts';
import { createSecrets } from '../support/secrets.ts';
import { createWorkerCaller } from '../support/worker-caller.ts';
import { launchWorker } from '../support/worker-in-process.ts';
import {
  spawnWorkerProcess,
  startWorkerProcess,
  type WorkerProcess,
} from '../support/worker-process.ts';

type Environment = Readonly<Record<string, string>>;

/** Variables that are not our settings but also hold secrets. */
const foreign: Environment = {
  OTEL_EXPORTER_OTLP_HEADERS: 'header',
  AWS_SECRET_ACCESS_KEY: 'text',
  AWS_SESSION_TOKEN: 'text',
};

/** The format of each secret setting; the first test fails for one that is missing here. */
const forms: Readonly<Record<string, 'address' | 'host' | 'text' | 'header' | 'file'>> = {
  KVSTORE_URL: 'address',
  KVSTORE_AUTH: 'text',
  KVSTORE_AUTH_FILE: 'file',
  KVSTORE_SENTINEL_AUTH: 'text',
  KVSTORE_PERSECOND_URL: 'address',
  KVSTORE_PERSECOND_AUTH: 'text',
  KVSTORE_PERSECOND_AUTH_FILE: 'file',
  KVSTORE_PERSECOND_SENTINEL_AUTH: 'text',
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'header',
  CONFIG_GRPC_XDS_TOKEN_FILE: 'file',
  HTTP_SERVER_TLS_KEY: 'file',
  GRPC_SERVER_TLS_KEY: 'file',
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: 'file',
  KVSTORE_TLS_CLIENT_KEY: 'file',
  MEMSTORE_TLS_CLIENT_KEY: 'file',
  CONFIG_GRPC_XDS_SERVER_URL: 'host',
  MEMSTORE_HOST_PORT: 'host',
  LIMIT_PARTITION_KEY_SECRET: 'text',
  RECORD_DECISIONS_HASH_SECRET: 'text',
};

const profiles = ['/debug/pprof/heap?seconds=1', '/debug/pprof/profile?seconds=1'];
const pages = [
  '/',
  '/settings',
  '/status',
  '/stats',
  '/rlconfig',
  '/debug/pprof/',
  '/debug/pprof/trace',
  '/nothing',
];

test('every setting that holds a secret, or names a file that does, is in these tests', (t) => {
  const names = toRows(workerTable)
    .filter(({ setting }) => setting.secret !== 'no')
    .map(({ setting }) => setting.names[0]);
  t.deepEqual(names.toSorted(), Object.keys(forms).toSorted());
});

test('every setting called a password, a secret, a token or headers counts as a secret', (t) => {
  for (const { setting } of toRows(workerTable)) {
    const { names, kind, secret } = setting;
    const isNamed = names.some((name) => /AUTH$|PASSWORD|SECRET|TOKEN$|HEADERS$/.test(name));
    if (kind !== 'bool')
      t.is(
        secret !== 'no',
        isNamed ||
          /^(KVSTORE.*URL|CONFIG_GRPC_XDS_SERVER_URL|MEMSTORE_HOST_PORT)$/.test(names[0]) ||
          /_(AUTH_FILE|TOKEN_FILE|KEY)$/.test(names[0]),
        names[0],
      );
  }
});

type Run = ReturnType<typeof begin>;

function begin(t: ExecutionContext) {
  const secrets = createSecrets();
  const { path: folder } = createRulesFolder(t);
  let logged = '';

  function give(name: string, host = '127.0.0.1:1'): string {
    const secret = secrets.make(name);
    switch (forms[name] ?? foreign[name]) {
      case 'address':
        return `redis://${encodeURIComponent(secret)}:${encodeURIComponent(secret)}@${host}/0`;
      case 'host':
        return `${encodeURIComponent(secret)}:${encodeURIComponent(secret)}@${host}`;
      case 'header':
        return name.startsWith('OTEL')
          ? `authorization=${encodeURIComponent(secret)}`
          : `authorization:Bearer ${secret},x-key-bin:${secret}`;
      case 'file': {
        const path = join(folder, name);
        const text = `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----\n`;
        writeFileSync(path, name.endsWith('TOKEN_FILE') ? secret : text);
        return path;
      }
      default:
        return secret;
    }
  }

  return {
    secrets,
    /** A value for the setting, with a new secret in it. */
    give,
    /** All secret settings and variables, except these. */
    giveAll(...except: string[]) {
      const names = [...Object.keys(forms), ...Object.keys(foreign)];
      return Object.fromEntries(
        names.filter((name) => !except.includes(name)).map((name) => [name, give(name)]),
      );
    },
    /** Adds texts that are not part of the worker's output. */
    note(text: string) {
      logged += `${text}\n`;
    },
    /** Starts a worker in this process, and waits until it, or the failure of its start, prints these words; records
     * its output. */
    async launch(env: Environment, words: RegExp) {
      const options = { env: { LOG_LEVEL: 'trace', ...env }, rules: ruleText('shop', 5) };
      const worker = await launchWorker(t, options).catch(({ stack }: Error) => `${stack}\n`);
      if (typeof worker === 'string') {
        logged += worker;
        t.regex(worker, words);
        return;
      }
      let failure = '';
      worker.started.catch(({ stack }: Error) => {
        failure = `${stack}\n`;
      });
      const text = () => `${worker.log.lines.join('\n')}\n${failure}`;
      await eventually('the problem is logged', () => words.test(text()));
      if (failure === '') for (const page of pages) logged += await worker.page(page);
      logged += text();
    },
    /** Fails when a secret was printed. */
    search() {
      const lines = logged.split('\n');
      t.true(logged.length > 100, 'the log is not empty');
      t.deepEqual(
        lines.filter((line) => secrets.findIn(line).length > 0),
        [],
      );
    },
  };
}

async function decide(t: ExecutionContext, { note }: Run, worker: WorkerProcess): Promise<void> {
  const good = '{"domain":"shop","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}';
  for (const [path, body] of [
    ['/json', good],
    ['/json', '{"domain":'],
    ['/json', '{"domain":"nobody","descriptors":[]}'],
    ['/healthcheck', undefined],
    ['/nothing', undefined],
  ] as const) {
    const method = body === undefined ? 'GET' : 'POST';
    const answer = await fetch(`http://127.0.0.1:${worker.ports.http}${path}`, {
      method,
      ...(body && { body }),
    });
    note(`${path} ${answer.status} ${JSON.stringify([...answer.headers])} ${await answer.text()}`);
  }
  const caller = createWorkerCaller(t, worker);
  note(await caller.decide('shop', 'k', 'v'));
  note(await caller.decide('', 'k', 'v'));
}

// Proof of SECURITY.md: reads rules, statistics, values of requests, and settings without secrets
test.serial('a worker that serves, with stores that take its passwords', async (t) => {
  const run = begin(t);
  const env: Record<string, string> = {
    ...run.giveAll(
      'KVSTORE_URL',
      'KVSTORE_AUTH_FILE',
      'KVSTORE_PERSECOND_URL',
      'KVSTORE_PERSECOND_AUTH',
    ),
    KVSTORE_PERSECOND: 'true',
    TRACING_ENABLED: 'true',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await startEchoWeb(t)}`,
    OTEL_BSP_SCHEDULE_DELAY: '100',
    DISABLE_STATS: 'false',
    STATS_FLUSH_INTERVAL: '1s',
    USE_STATSD: 'false',
  };
  for (const [name, password] of [
    ['KVSTORE', env['KVSTORE_AUTH'] ?? ''],
    ['KVSTORE_PERSECOND', returnSecret(env['KVSTORE_PERSECOND_AUTH_FILE'])],
  ] as const) {
    const redis = await startRedisServer(t, {
      args: ['--requirepass', password],
      auth: [password],
    });
    env[`${name}_URL`] = redis.url;
  }
  const rules = { 'shop.yaml': ruleText('shop', 5) };
  const worker = await startWorkerProcess(t, { rules, env: { LOG_LEVEL: 'trace', ...env } });
  await decide(t, run, worker);
  for (const page of [...pages, ...profiles]) {
    const answer = await fetch(`http://127.0.0.1:${worker.ports.debug}${page}`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    const isProfile = answer.headers.get('content-type') === 'application/octet-stream';
    run.note(`${page} ${answer.status} ${JSON.stringify([...answer.headers])}`);
    run.note((isProfile ? gunzipSync(bytes) : bytes).toString('latin1'));
  }
  await eventually('spans were refused', () => /Traces do not reach/.test(worker.output()));
  await worker.stop();
  t.is(worker.ended(), 0);
  run.note(worker.output());
  run.search();
});

/** Writes a secret to a file in the required format; returns the secret. */
function returnSecret(path = ''): string {
  const secret = readFileSync(path, 'utf8').split('\n')[1] ?? '';
  writeFileSync(path, `${secret}\n`);
  return secret;
}

for (const [what, type, store] of [
  ['AUTH', 'single', 'refuse'],
  ['addresses', 'single', 'quote'],
  ['AUTH_FILE', 'single', 'quote'],
  ['SENTINEL_AUTH', 'sentinel', 'quote'],
  ['AUTH', 'single', 'quote the beginning of'],
] as const) {
  test(`a worker whose stores ${store} its password, in ${what}`, async (t) => {
    const run = begin(t);
    const host = `127.0.0.1:${await startStore(t, store)}`;
    const auth = ['KVSTORE_AUTH', 'KVSTORE_PERSECOND_AUTH'];
    const authFiles = auth.map((name) => `${name}_FILE`);
    const env: Record<string, string> = {
      ...run.giveAll(...(what === 'AUTH_FILE' ? auth : authFiles)),
      KVSTORE_PERSECOND: 'true',
      KVSTORE_TYPE: type,
      KVSTORE_PERSECOND_TYPE: type,
    };
    for (const name of ['KVSTORE_URL', 'KVSTORE_PERSECOND_URL']) {
      if (what === 'addresses') env[name] = run.give(name, host);
      else env[name] = type === 'sentinel' ? `main,${host}` : host;
    }
    for (const name of authFiles) if (env[name] !== undefined) returnSecret(env[name]);
    await run.launch(env, /AUTH: /);
    run.search();
  });
}

async function startStore(t: ExecutionContext, what: string): Promise<number> {
  if (what === 'quote') return startEchoStore(t, 1_000);
  if (what === 'quote the beginning of') return startEchoStore(t, 14);
  const redis = await startRedisServer(t, {
    args: ['--requirepass', 'another'],
    auth: ['another'],
  });
  return redis.port ?? 0;
}

for (const [where, other] of [
  ['in a header', 'CONFIG_GRPC_XDS_TOKEN_FILE'],
  ['in a file', 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS'],
] as const)
  test(`a worker whose management server quotes its token, which is ${where}`, async (t) => {
    const run = begin(t);
    const server = await startScriptedAdsServer(t);
    const quoting = server.stream(0).then((stream) => {
      const headers = Object.values(stream.headers.getMap()).map(String);
      stream.fail(16, `who is ${headers.join(' ')}?`);
    });
    const env = {
      ...run.giveAll('KVSTORE_URL', 'KVSTORE_AUTH_FILE', 'KVSTORE_PERSECOND_AUTH_FILE', other),
      BACKEND_TYPE: 'memory',
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: server.url,
    };
    await run.launch(env, /UNAUTHENTICATED/);
    await quoting;
    run.search();
  });

test.serial('a defect that ends the process, and the help', async (t) => {
  const run = begin(t);
  const crash = 'setTimeout(() => { throw new Error("a defect"); }, 1500)';
  const env = run.giveAll('KVSTORE_URL', 'KVSTORE_AUTH_FILE', 'KVSTORE_PERSECOND_AUTH_FILE');
  const crashing = {
    ...env,
    BACKEND_TYPE: 'memory',
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(crash)}`,
  };
  for (const [options, code, words] of [
    [{ env: crashing }, 1, /a defect/],
    [{ env, arguments: ['--help'] }, 0, /KVSTORE_AUTH/],
  ] as const) {
    const worker = await spawnWorkerProcess(t, options);
    t.is(await worker.waitForEnd(60_000), code);
    t.regex(worker.output(), words);
    run.note(worker.output());
  }
  run.search();
});
