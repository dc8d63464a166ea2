// Tests settings of the source of rules, from the environment to the rules in force.
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import {
  caCertificate,
  clientCertificate,
  misnamedCertificate,
} from '../../contract/grpc-transport-certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import {
  limitResource,
  type ScriptedAdsServer,
  startScriptedAdsServer,
} from '../../support/scripted-ads-server.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import {
  launchWorker,
  startWorker,
  type WorkerInProcess,
  type WorkerInProcessOptions,
} from '../../support/worker-in-process.ts';

const memory = { BACKEND_TYPE: 'memory' };

const rulesOf = (domain: string) =>
  `domain: ${domain}\ndescriptors:\n  - key: k\n    rate_limit: {unit: year, requests_per_unit: 1}\n`;

test('RUNTIME_ROOT, RUNTIME_SUBDIRECTORY, RUNTIME_APPDIRECTORY: rules are read from the path that they form', async (t) => {
  const { path, write } = createRulesFolder(t);
  write('deep/limits/here.yaml', rulesOf('here'));
  write('deep/config/not-here.yaml', rulesOf('elsewhere'));
  write('limits/not-here.yaml', rulesOf('elsewhere'));
  const { page } = await startWorker(t, {
    env: {
      ...memory,
      RUNTIME_ROOT: path,
      RUNTIME_SUBDIRECTORY: 'deep',
      RUNTIME_APPDIRECTORY: 'limits',
    },
  });
  t.regex(await page('/rlconfig'), /^here\.k: [^\n]*\n$/);
});

test('RUNTIME_WATCH_ROOT: when it is false, rules that change in place are loaded', async (t) => {
  const { path, write } = createRulesFolder(t);
  write('config/one.yaml', rulesOf('one'));
  const { page } = await startWorker(t, {
    env: { ...memory, RUNTIME_ROOT: path, RUNTIME_WATCH_ROOT: 'false' },
  });
  write('config/two.yaml', rulesOf('two'));
  await eventually('the rules', async () => (await page('/rlconfig')).includes('two.k: '));
  t.pass();
});

function startServer(t: ExecutionContext, credentials?: ServerCredentials) {
  return startScriptedAdsServer(t, credentials && { credentials });
}

function launch(
  t: ExecutionContext,
  url: string,
  { env, ...options }: Partial<WorkerInProcessOptions> = {},
): Promise<WorkerInProcess> {
  return launchWorker(t, {
    env: {
      ...memory,
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: url,
      CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '50ms',
      ...env,
    },
    ...options,
  });
}

test('CONFIG_GRPC_XDS_NODE_ID, CONFIG_GRPC_XDS_NODE_METADATA, CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: the server at CONFIG_GRPC_XDS_SERVER_URL receives them', async (t) => {
  const server = await startServer(t);
  await launch(t, server.url, {
    env: {
      CONFIG_GRPC_XDS_NODE_ID: 'edge-7',
      CONFIG_GRPC_XDS_NODE_METADATA: 'zone=b,tier=front',
      // The blank is part of the value, but cannot be sent.
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'x-team: edge',
    },
  });
  const stream = await server.stream(0);
  const { node } = await stream.request(0);
  t.is(node?.id, 'edge-7');
  t.like(node?.metadata?.fields, { zone: { stringValue: 'b' }, tier: { stringValue: 'front' } });
  t.deepEqual(stream.headers.get('x-team'), ['edge']);
});

test('CONFIG_GRPC_XDS_TOKEN_FILE: the token in the file is sent, and a new one at the next connection', async (t) => {
  const server = await startServer(t);
  const folder = createRulesFolder(t, { token: 'first-sesame\n' });
  await launch(t, server.url, {
    env: {
      CONFIG_GRPC_XDS_TOKEN_FILE: join(folder.path, 'token'),
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '10ms',
    },
  });
  const first = await server.stream(0);
  t.deepEqual(first.headers.get('authorization'), ['Bearer first-sesame']);
  folder.write('token', 'second-sesame\n');
  first.end();
  const second = await server.stream(1);
  t.deepEqual(second.headers.get('authorization'), ['Bearer second-sesame']);
  folder.write('token', '');
  second.end();
  const third = await server.stream(2);
  t.deepEqual(third.headers.get('authorization'), ['Bearer second-sesame']);
});

test('XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: a larger message is rejected, a smaller one is accepted', async (t) => {
  const server = await startServer(t);
  const worker = await launch(t, server.url, {
    env: { XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: '1000', XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '10ms' },
  });
  const first = await server.stream(0);
  first.send('1', 'a', [limitResource('r', 'd'.repeat(2_000), 1)]);
  const second = await server.stream(1);
  t.is(first.requests.length, 1);
  t.regex(
    worker.log.lines.join('\n'),
    /larger than max .*; raise XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES/,
  );
  second.send('1', 'b', [limitResource('r', 'd', 1)]);
  await t.notThrowsAsync(worker.started);
});

const tlsNames = [
  'CONFIG_GRPC_XDS_SERVER_USE_TLS',
  'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
  'CONFIG_GRPC_XDS_CLIENT_TLS_CERT',
  'CONFIG_GRPC_XDS_CLIENT_TLS_KEY',
  'CONFIG_GRPC_XDS_SERVER_TLS_SAN',
] as const;

/** The server's certificate is for proxy.example, not localhost, and it requires a client certificate. */
async function startTlsServer(t: ExecutionContext) {
  const { cert: clientCert, key: clientKey } = misnamedCertificate;
  const files = { 'ca.pem': caCertificate, 'cert.pem': clientCert, 'key.pem': clientKey };
  const { path: folder } = createRulesFolder(t, files);
  const { cert, key } = clientCertificate;
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  const server = await startServer(
    t,
    ServerCredentials.createSsl(Buffer.from(caCertificate), [pair], true),
  );
  const env: Record<(typeof tlsNames)[number], string> = {
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: join(folder, 'ca.pem'),
    CONFIG_GRPC_XDS_CLIENT_TLS_CERT: join(folder, 'cert.pem'),
    CONFIG_GRPC_XDS_CLIENT_TLS_KEY: join(folder, 'key.pem'),
    CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'proxy.example',
  };
  return { server, env };
}

test('rules arrive over TLS with all settings of it', async (t) => {
  const { server, env } = await startTlsServer(t);
  const worker = await launch(t, server.url, { env });
  (await server.stream(0)).send('1', 'a', [limitResource('r', 'd', 1)]);
  await t.notThrowsAsync(worker.started);
  await eventually('the expiry of its certificate is reported', async () =>
    /^client certificate for management servers: valid until 2126-/m.test(
      await worker.page('/status'),
    ),
  );
});

for (const name of tlsNames) {
  test(`${name}: without it that server cannot be reached over TLS`, async (t) => {
    const { server, env } = await startTlsServer(t);
    const { [name]: _left, ...others } = env;
    const { log } = await launch(t, server.url, { env: others });
    const isReported = /^error (?:Could not reach|Lost) the management server/;
    await eventually('it is logged', () => log.lines.some((line) => isReported.test(line)));
    t.is(server.streams.length, 0);
  });
}

/** Advances the clock this far: nothing happens before, and an attempt is made then. */
async function assertWait(
  t: ExecutionContext,
  {
    worker,
    clock,
    minMs,
    maxMs = minMs,
  }: {
    readonly worker: WorkerInProcess;
    readonly clock: ReturnType<typeof createManualClock>;
    readonly minMs: number;
    readonly maxMs?: number;
  },
): Promise<void> {
  const attempts = async () =>
    Number(/ratelimit\.xds\.reconnects: (\d+)/.exec(await worker.page('/stats'))?.[1]);
  const before = await attempts();
  const failure = `failed at ${new Date(clock.wallMs()).toISOString()}`;
  await eventually('the connection is gone', async () =>
    (await worker.page('/status')).includes(failure),
  );
  clock.advance(minMs - 1);
  t.is(await attempts(), before, `${minMs} ms are not over`);
  clock.advance(maxMs - minMs + 1);
  t.is(await attempts(), before + 1, `${maxMs} ms are over`);
}

async function loseStreams(server: ScriptedAdsServer, index: number): Promise<void> {
  const stream = await server.stream(index);
  await stream.request(0);
  stream.end();
}

test('XDS_CLIENT_BACKOFF_INITIAL_INTERVAL, XDS_CLIENT_BACKOFF_MAX_INTERVAL, XDS_CLIENT_BACKOFF_RANDOM_FACTOR: the waits begin, grow and end as set', async (t) => {
  const server = await startServer(t);
  const clock = createManualClock();
  const worker = await launch(t, server.url, {
    clock,
    env: {
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '1s',
      XDS_CLIENT_BACKOFF_MAX_INTERVAL: '10s',
      XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '3',
    },
  });
  for (const [index, minMs] of [1_000, 3_000, 9_000, 10_000].entries()) {
    await loseStreams(server, index);
    await assertWait(t, { worker, clock, minMs });
  }
});

test('XDS_CLIENT_BACKOFF_JITTER: a wait is longer than it would be, and shorter than the next one', async (t) => {
  const server = await startServer(t);
  const clock = createManualClock();
  const worker = await launch(t, server.url, {
    clock,
    env: {
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '4s',
      XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '2',
      XDS_CLIENT_BACKOFF_JITTER: 'true',
    },
  });
  await loseStreams(server, 0);
  // Of all random waits only the very shortest would be over after 4 s.
  await assertWait(t, { worker, clock, minMs: 4_001, maxMs: 8_000 });
});

// Proof of migrating.md: `CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL` is the wait after an attempt to
// connect that failed
test('CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: failed attempts are this far apart', async (t) => {
  const clock = createManualClock();
  const proxy = await startTcpProxy(t, 1);
  const worker = await launch(t, `127.0.0.1:${proxy.port}`, {
    clock,
    env: { CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '7s' },
  });
  await eventually('an attempt', () => proxy.accepted > 0);
  for (let attempt = 0; attempt < 2; attempt++)
    await assertWait(t, { worker, clock, minMs: 7_000 });
});
