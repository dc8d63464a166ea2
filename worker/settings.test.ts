import test from 'ava';
import { toRows } from '../shared/settings/setting.ts';
import { type Outcome, testScenarios } from '../test/support/scenarios.ts';
import { toSettingLines } from '../test/support/setting-lines.ts';
import { workerTable } from './settings/table.ts';
import {
  describeWorkerSettings,
  findTlsFileProblems,
  findTokenFileProblems,
  parseWorkerSettings,
  type WorkerSettings,
} from './settings.ts';

type Environment = Record<string, string>;

/** The minimal settings with which a worker starts. */
const enough: Environment = { REDIS_URL: 'localhost:6379' };

function parse(environment: Environment) {
  return parseWorkerSettings({ ...enough, ...environment });
}

function settingsOf(environment: Environment): WorkerSettings {
  const result = parse(environment);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return result.settings;
}

const toLines = (settings: WorkerSettings) => toSettingLines({ ...settings, givenNames: {} });
/** With it the start logs no warning. */
const local = { DEBUG_HOST: '127.0.0.1' };
const defaults = new Set(toLines(settingsOf(local)));

function answerOf(environment: Environment): Outcome {
  const result = parseWorkerSettings(environment);
  const warnings = result.warnings.map((text) => `warning: ${text}`);
  if (!result.ok) return { out: warnings.join('\n'), err: result.problems.join('\n'), code: 1 };
  const changed = toLines(result.settings).filter((line) => !defaults.has(line));
  const files = [...result.tlsFiles, ...result.tokenFiles].map(({ path }) => `reads ${path}`);
  return { out: [...changed, ...files, ...warnings].join('\n') };
}

// Proof of migrating.md: `GRPC_MAX_CONNECTION_AGE` unset is no limit
// Proof of migrating.md: A store must be named; `BACKEND_TYPE=memory` counts in process
testScenarios(test, new URL('settings/settings.txt', import.meta.url), (words) => {
  if (words[0] === 'defaults') return { out: toLines(settingsOf({})).join('\n') };
  if (words[0] === 'names') {
    return {
      out: toRows(workerTable)
        .map(({ setting }) => setting.names.join(' '))
        .join('\n'),
    };
  }
  const isAlone = words[0] === 'alone';
  const given = words.filter((word) => word.includes('=')).map((word) => word.split(/=(.*)/s));
  return answerOf({ ...(isAlone ? {} : { ...enough, ...local }), ...Object.fromEntries(given) });
});

test('the settings cannot be changed', (t) => {
  const settings = settingsOf({ EXTRA_TAGS: 'a:b' });
  const seen: string[] = [];
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    if (!Object.isFrozen(value)) seen.push(path);
    for (const [key, inner] of Object.entries(value)) visit(inner, `${path}.${key}`);
  };
  visit(settings, 'settings');
  t.deepEqual(seen, []);
});

test('the dump shows values in force and their origin, but no secret', (t) => {
  const result = parse({
    REDIS_URL: 'redis://me:open-sesame@h:1',
    KVSTORE_PERSECOND_AUTH: 'open-sesame',
    REDIS_SENTINEL_AUTH: 'open-sesame',
    CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'authorization:open-sesame',
    USE_PULLMETRICS: 'true',
    LocalCacheSizeInBytes: '0x10',
  });
  if (!result.ok) return t.fail(result.problems.join());
  const row = (name: string) => result.dump.find((one) => one.name === name);
  t.like(row('KVSTORE_URL'), { value: 'redis://*****@h:1', from: 'REDIS_URL' });
  t.like(row('KVSTORE_PERSECOND_AUTH'), { value: '*****', from: 'KVSTORE_PERSECOND_AUTH' });
  t.like(row('USE_PUSHMETRICS'), { value: 'false', from: 'default' });
  t.like(row('LOCAL_CACHE_SIZE_IN_BYTES'), { value: '16', from: 'LocalCacheSizeInBytes' });
  t.like(row('STATS_FLUSH_INTERVAL'), { value: '10s', from: 'default' });
  t.is(result.dump.length, toRows(workerTable).length);
  t.false(JSON.stringify([result.dump, result.warnings]).includes('sesame'));
});

test('TLS files that cannot be read are reported with setting and path', async (t) => {
  const tls = {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: '/tls/none.pem',
    GRPC_SERVER_TLS_KEY: '/tls/key.pem',
    GRPC_CLIENT_TLS_CACERT: '/tls/locked.pem',
  };
  const read = async (path: string) => {
    if (path === '/tls/key.pem') return 'key';
    throw new Error(path === '/tls/none.pem' ? 'ENOENT: no such file' : 'EACCES: not allowed');
  };
  const result = parse(tls);
  if (!result.ok) return t.fail(result.problems.join());
  t.deepEqual(await findTlsFileProblems(result.tlsFiles, read), [
    'GRPC_SERVER_TLS_CERT="/tls/none.pem": the file cannot be read (ENOENT: no such file); name a PEM file that this process may read',
    'GRPC_CLIENT_TLS_CACERT="/tls/locked.pem": the file cannot be read (EACCES: not allowed); name a PEM file that this process may read',
  ]);
});

test('a missing or empty token file ends the start, if rules come from a management server', async (t) => {
  const problemsOf = async (path: string, source: string) => {
    const result = parse({ CONFIG_TYPE: source, CONFIG_GRPC_XDS_TOKEN_FILE: path });
    return result.ok ? findTokenFileProblems(result.tokenFiles) : result.problems;
  };
  t.deepEqual(await problemsOf('/dev/null', 'GRPC_XDS_SOTW'), [
    'CONFIG_GRPC_XDS_TOKEN_FILE="/dev/null": the file is empty; name a file with the token and nothing else',
  ]);
  t.deepEqual(await problemsOf('/tls/none', 'GRPC_XDS_SOTW'), [
    'CONFIG_GRPC_XDS_TOKEN_FILE="/tls/none": the file cannot be read (ENOENT: no such file or directory, open \'/tls/none\'); name a file with the token and nothing else',
  ]);
  t.deepEqual(await problemsOf('/tls/none', 'FILE'), []);
});

test('the help names every setting', (t) => {
  const help = describeWorkerSettings();
  for (const { setting } of toRows(workerTable)) {
    for (const name of setting.names) t.regex(help, new RegExp(`^  .*\\b${name}(,|$)`, 'm'));
  }
});

test('variables that Kubernetes, npm and OpenTelemetry set cause neither errors nor warnings', (t) => {
  const services = 'REDIS KVSTORE STATSD GRPC DEBUG PROMETHEUS TRACING MEMCACHE'.split(' ');
  const links = services.flatMap((service) => [
    [`${service}_SERVICE_HOST`, '10.0.0.1'],
    [`${service}_SERVICE_PORT`, '80'],
    [`${service}_SERVICE_PORT_MAIN`, '80'],
    [`${service}_PORT`, 'tcp://10.0.0.1:80'],
    [`${service}_PORT_80_TCP`, 'tcp://10.0.0.1:80'],
    [`${service}_PORT_80_TCP_PROTO`, 'tcp'],
    [`${service}_PORT_80_TCP_PORT`, '80'],
    [`${service}_PORT_80_TCP_ADDR`, '10.0.0.1'],
  ]);
  const others = {
    PATH: '/bin',
    HOME: '/',
    HOSTNAME: 'pod',
    TERM: 'xterm',
    npm_config_loglevel: 'warn',
    npm_lifecycle_event: 'worker',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318',
    OTEL_SEMCONV_STABILITY_OPT: 'x',
    NODE_OPTIONS: '',
    GRPC_VERBOSITY: 'debug',
    LIMIT_CPU: '2',
  };
  const result = parse({ ...local, ...Object.fromEntries(links), ...others });
  t.true(result.ok);
  t.deepEqual(result.warnings, []);
});
