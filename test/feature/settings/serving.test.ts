// Tests settings of the ports, from the environment to the wire.
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { type Caller, type CallerTls, createCaller } from '../../contract/grpc-transport-caller.ts';
import {
  caCertificate,
  clientCertificate,
  misnamedCertificate,
  renewedCertificate,
  secondCa,
  serverCertificate,
  type TestCertificate,
} from '../../contract/grpc-transport-certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { pluck } from '../../support/pluck.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { launchWorker, startWorker } from '../../support/worker-in-process.ts';

const memory = { BACKEND_TYPE: 'memory' };
/** An empty message: for the health service, it names the empty service. */
const nothing = Buffer.of();

async function connectTo(
  t: ExecutionContext,
  env: Readonly<Record<string, string>>,
  tls?: CallerTls,
): Promise<Caller> {
  const worker = await startWorker(t, { env: { ...memory, ...env } });
  const caller = await createCaller((await worker.started).grpc, tls);
  t.teardown(caller.close);
  return caller;
}

for (const [what, name, host] of [
  ['HTTP', 'PORT', 'HOST'],
  ['gRPC', 'GRPC_PORT', 'GRPC_HOST'],
  ['debug', 'DEBUG_PORT', 'DEBUG_HOST'],
] as const) {
  test(`${name}: the configured port is open, and one in use is named together with the settings to change`, async (t) => {
    const port = await freePort();
    const env = { ...memory, [name]: String(port) };
    await startWorker(t, { env });
    const socket = connect(port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    await t.notThrowsAsync(once(socket, 'connect'));
    const inUse = `cannot listen for ${what} on 127.0.0.1:${port}: the port is in use`;
    const { started } = await launchWorker(t, { env });
    await t.throwsAsync(started, { message: `${inUse}; set ${name} (and ${host}) to another` });
  });
}

for (const name of ['HOST', 'GRPC_HOST', 'DEBUG_HOST']) {
  test(`${name}: the worker listens on the configured address, and a foreign one ends the start`, async (t) => {
    // From a network reserved for documentation.
    const worker = await launchWorker(t, { env: { ...memory, [name]: '192.0.2.1' } });
    const error = await t.throwsAsync(worker.started);
    t.regex(error.message, /^cannot listen for \w+ on 192\.0\.2\.1:\d+: /);
    t.true(error.message.includes(`; set ${name} to one that it has`), error.message);
  });
}

test('GRPC_MAX_CONNECTION_AGE: a connection of that age gets GOAWAY, and its calls may end', async (t) => {
  const { session, open } = await connectTo(t, { GRPC_MAX_CONNECTION_AGE: '5s' });
  const watch = open('/grpc.health.v1.Health/Watch');
  watch.answer.catch(() => {});
  watch.send(nothing);
  await once(session, 'goaway', { signal: AbortSignal.timeout(60_000) });
  t.false(watch.stream.closed);
});

test('GRPC_MAX_CONNECTION_AGE_GRACE: this much later calls are cut', async (t) => {
  const { session, open } = await connectTo(t, {
    GRPC_MAX_CONNECTION_AGE: '5s',
    GRPC_MAX_CONNECTION_AGE_GRACE: '100ms',
  });
  const watch = open('/grpc.health.v1.Health/Watch');
  watch.send(nothing);
  const { grpcStatus } = await watch.answer;
  t.is(grpcStatus, undefined, 'it has not ended by itself');
  await eventually('the connection is closed', () => session.destroyed);
});

test('GRPC_MAX_CONNECTIONS: for one more, the least used one is closed, which is logged and counted', async (t) => {
  const worker = await startWorker(t, { env: { ...memory, GRPC_MAX_CONNECTIONS: '2' } });
  const { grpc } = await worker.started;
  const connectCaller = async () => {
    const caller = await createCaller(grpc);
    t.teardown(caller.close);
    return caller;
  };
  const isServed = async ({ call }: Caller) =>
    (await call('/grpc.health.v1.Health/Check', nothing)).grpcStatus === 0;
  const idle = await connectCaller();
  t.true(await isServed(idle));
  const used = await connectCaller();
  t.true(await isServed(used));
  const third = await connectCaller();
  t.true(await isServed(third), 'who comes is served');
  await eventually('the idle one is closed', () => idle.session.destroyed);
  t.true(idle.hasGoaway, 'it receives GOAWAY, so that no request is lost');
  t.true(await isServed(used), 'who asks is served on');
  t.regex(await worker.page('/stats'), /^ratelimit\.grpc\.cx_refused: 1$/m);
  t.true(worker.log.lines.some((line) => line.includes('GRPC_MAX_CONNECTIONS')));
});

// Proof of migrating.md: A request has at most `REQUEST_MAX_DESCRIPTORS` descriptors and `REQUEST_MAX_ENTRIES`
// entries
test('REQUEST_MAX_DESCRIPTORS, REQUEST_MAX_ENTRIES: a request that exceeds them is refused with the numbers', async (t) => {
  const { decide, started } = await startWorker(t, {
    env: {
      ...memory,
      REQUEST_MAX_DESCRIPTORS: '2',
      REQUEST_MAX_ENTRIES: '3',
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
    },
  });
  const { call, close } = await createCaller((await started).grpc);
  t.teardown(close);
  const { path, requestSerialize } = loadProtos().rateLimitService.ShouldRateLimit;
  const ask = (...entryCounts: number[]) => {
    const descriptors = entryCounts.map((count) => ({
      entries: Array.from({ length: count }, () => ({ key: 'key', value: 'value' })),
    }));
    return call(path, requestSerialize({ domain: 'shop', descriptors }));
  };
  t.not((await ask(1, 2)).grpcStatus, 8);
  const { grpcStatus, text } = await ask(1, 1, 1);
  t.is(grpcStatus, 8);
  t.is(text, 'the request has more than 2 descriptors; REQUEST_MAX_DESCRIPTORS sets the maximum');
  t.is(
    (await ask(2, 2)).text,
    'the request has more than 3 entries; REQUEST_MAX_ENTRIES sets the maximum',
  );
  t.deepEqual(await decide('a', 'b', 'c'), { status: 400, text: `${text}\n` });
});

/** Files of a certificate for localhost, and of its CA. */
function writeCertificate(t: ExecutionContext) {
  const { cert, key } = serverCertificate;
  const files = { 'ca.pem': caCertificate, 'cert.pem': cert, 'key.pem': key };
  const { path } = createRulesFolder(t, files);
  return { ca: join(path, 'ca.pem'), cert: join(path, 'cert.pem'), key: join(path, 'key.pem') };
}

test('HTTP_SERVER_USE_TLS, DEBUG_SERVER_USE_TLS: the ports answer over TLS, with the certificate of HTTP_SERVER_TLS_CERT and HTTP_SERVER_TLS_KEY', async (t) => {
  const { cert, key } = writeCertificate(t);
  const worker = await startWorker(t, {
    env: {
      ...memory,
      HTTP_SERVER_USE_TLS: 'true',
      HTTP_SERVER_TLS_CERT: cert,
      HTTP_SERVER_TLS_KEY: key,
      DEBUG_SERVER_USE_TLS: 'true',
    },
  });
  const { http, debug } = await worker.started;
  for (const { port } of [http, debug]) {
    const socket = connectTls({
      host: '127.0.0.1',
      port,
      ca: caCertificate,
      servername: 'localhost',
    });
    t.teardown(() => socket.destroy());
    await t.notThrowsAsync(once(socket, 'secureConnect'));
  }
});

// Proof of SECURITY.md: can use up any limit of any domain; `GRPC_CLIENT_TLS_CACERT` and `GRPC_CLIENT_TLS_SAN`
// require a certificate for one name
test('GRPC_CLIENT_TLS_SAN: only a client certificate for that name is accepted', async (t) => {
  const { ca, cert, key } = writeCertificate(t);
  const env = {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: cert,
    GRPC_SERVER_TLS_KEY: key,
    GRPC_CLIENT_TLS_CACERT: ca,
    GRPC_CLIENT_TLS_SAN: 'proxy.example',
  };
  const known = await connectTo(t, env, { ca: caCertificate, ...clientCertificate });
  t.is((await known.call('/grpc.health.v1.Health/Check', nothing)).grpcStatus, 0);
  await t.throwsAsync(connectTo(t, env, { ca: caCertificate, ...misnamedCertificate }));
});

test('certificates that are replaced while the port serves apply to new connections, and cost no call', async (t) => {
  const { ca, cert, key } = writeCertificate(t);
  const env = {
    ...memory,
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: cert,
    GRPC_SERVER_TLS_KEY: key,
    GRPC_CLIENT_TLS_CACERT: ca,
  };
  const worker = await startWorker(t, { env });
  const { grpc } = await worker.started;
  const open = async (client: TestCertificate) => {
    const caller = await createCaller(grpc, { ca: caCertificate, ...client });
    t.teardown(caller.close);
    const isServed = async () =>
      (await caller.call('/grpc.health.v1.Health/Check', nothing)).grpcStatus === 0;
    const { subject } = (caller.session.socket as TLSSocket).getPeerCertificate();
    return { isServed, name: subject.CN };
  };
  const before = await open(clientCertificate);
  t.is(before.name, 'server');
  await writeFile(cert, renewedCertificate.cert);
  await writeFile(key, renewedCertificate.key);
  await writeFile(ca, secondCa.cert);
  await eventually('new connections get the new one', async () => {
    const isServed = await open(secondCa).then(
      async (after) => after.name === 'renewed' && (await after.isServed()),
      () => false,
    );
    return (await before.isServed()) && isServed;
  });
  await t.throwsAsync(async () => (await open(clientCertificate)).isServed());
});

test('REQUEST_INVALID_UTF8: a request with a byte that is not UTF-8 fails by name, or is counted', async (t) => {
  const rules =
    'domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: year, requests_per_unit: 1}}\n';
  const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
  // Domain d, one descriptor with k=v and one byte of Latin-1.
  const request = Buffer.from('0a0164120a0a080a016b1203763de9', 'hex');
  const run = async (value: string) => {
    const env = { ...memory, REQUEST_INVALID_UTF8: value };
    const worker = await startWorker(t, { env, rules });
    const caller = await createCaller((await worker.started).grpc);
    t.teardown(caller.close);
    const answers = [await caller.call(path, request), await caller.call(path, request)];
    const { text: http } = (await worker.started).http;
    await fetch(`http://${http}/json`, { method: 'POST', body: request });
    const logged = worker.log.lines.filter((line) => line.includes('cannot be read'));
    const stats = (await worker.page('/stats')).match(/undecodable: \d+/)?.[0];
    return { answers, logged, stats };
  };
  const failed = await run('fail');
  t.deepEqual(pluck(failed.answers, 'grpcStatus'), [13, 13]);
  t.is(failed.stats, 'undecodable: 3', 'with the one of /json');
  t.deepEqual(failed.logged, [
    'warning a gRPC request cannot be read, so it is not limited: descriptors[0], at key "k": string field contains invalid UTF-8',
  ]);
  const counted = await run('count');
  const codes = counted.answers.map(({ messages }) => messages[0]?.subarray(0, 2).toString('hex'));
  t.deepEqual(codes, ['0801', '0802'], 'OK, then OVER_LIMIT');
});
