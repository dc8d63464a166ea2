// Tests the command-line client as used by a person or a script: both programs run for real.
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { eventually } from '../../support/eventually.ts';
import { startOtlpReceiver } from '../../support/otlp-receiver.ts';
import { ownedByFile } from '../../support/owner.ts';
import { programCommand, runProgram } from '../../support/programs.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

const tlsFile = (name: string): string =>
  fileURLToPath(new URL(`../../conformance/tls/${name}`, import.meta.url));

const rules = `domain: shop
descriptors:
  - {key: customer, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: partner, rate_limit: {unlimited: true}}
`;

const runClientWith = (env: NodeJS.ProcessEnv, ...args: string[]) =>
  runProgram([...programCommand('client'), ...args], { env });
const runClient = (...args: string[]) => runClientWith({}, ...args);

let worker: WorkerProcess;
const owner = ownedByFile(test);
test.before(async () => {
  worker = await startWorkerProcess(owner, {
    env: { BACKEND_TYPE: 'memory' },
    rules: { 'shop.yaml': rules },
  });
});

const ask = (...args: string[]): ReturnType<typeof runClient> =>
  runClient('-dial_string', `127.0.0.1:${worker.ports.grpc}`, '-domain', 'shop', ...args);

test('the answer comes first, and an over-limit one cannot be mistaken for an OK', async (t) => {
  const allowed = await ask('-descriptors', 'customer=ada', '-hits_addend', '2');
  t.is(allowed.code, 0, allowed.err);
  t.regex(
    allowed.out,
    /^OK\n {2}customer=ada: OK, limit 2 per year, 0 remaining, resets in \d+ s\n$/,
  );
  const refused = await ask('-descriptors', 'customer=ada', '-descriptors', 'partner=x');
  t.is(refused.code, 0, refused.err);
  t.regex(
    refused.out,
    /^OVER LIMIT\n {2}customer=ada: OVER LIMIT, limit 2 per year, 0 remaining, resets in \d+ s\n {2}partner=x: OK, unlimited\n$/,
  );
});

test('a script can request a separate exit code for an answer over the limit', async (t) => {
  const script = (...args: string[]) => ask('-fail-over-limit', '-descriptors', ...args);
  t.is((await script('customer=eve', '-hits', '2')).code, 0);
  t.is((await script('customer=eve')).code, 3);
  t.is((await script('customer=eve', '-json')).code, 3);
});

test("the worker's refusal is printed unchanged, with exit code 1 and nothing on standard output", async (t) => {
  t.deepEqual(await ask(), {
    code: 1,
    out: '',
    err:
      'request error: rpc error: code = Unknown desc = rate limit descriptor list must not be empty\n' +
      'missing: -descriptors key=value; -help lists all flags\n',
  });
});

test('an unreachable worker is named, with what to try', async (t) => {
  const { code, err } = await runClient('-dial_string', 'localhost:1', '-domain', 'shop');
  t.is(code, 1);
  t.regex(err, /^request error: rpc error: code = Unavailable desc = .*ECONNREFUSED/);
  t.regex(
    err,
    /is a worker listening at localhost:1\? choose another address with -dial_string; use -grpc-use-tls if it has TLS\n$/,
  );
});

test('a missing TLS file is named with its flag', async (t) => {
  const { code, err } = await ask('-grpc-use-tls', '-grpc-server-ca-file', '/nowhere/ca.pem');
  t.is(code, 1);
  t.regex(err, /^error connecting: -grpc-server-ca-file: .*\/nowhere\/ca\.pem/);
});

test('a worker with TLS is called as the hints describe, also one that requires client certificates', async (t) => {
  const secured = await startWorkerProcess(t, {
    env: {
      BACKEND_TYPE: 'memory',
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: tlsFile('server.pem'),
      GRPC_SERVER_TLS_KEY: tlsFile('server.key'),
      GRPC_CLIENT_TLS_CACERT: tlsFile('ca.pem'),
    },
    rules: { 'shop.yaml': rules },
  });
  const address = ['-dial_string', `localhost:${secured.ports.grpc}`];
  const question = ['-domain', 'shop', '-descriptors', 'partner=x'];
  const plain = await runClient(...address, ...question);
  t.regex(plain.err, /; use -grpc-use-tls if it has TLS\n$/);
  const target = [...address, '-grpc-use-tls'];
  const untrusting = await runClient(...target, ...question);
  t.regex(untrusting.err, /\nset -grpc-server-ca-file to a file with the CA of its certificate\n$/);
  t.notRegex(untrusting.err, /use-system-ca/);
  const ca = ['-grpc-server-ca-file', tlsFile('ca.pem')];
  const identity = [
    '-grpc-cert-file',
    tlsFile('client.pem'),
    '-grpc-key-file',
    tlsFile('client.key'),
  ];
  const known = await runClient(...target, ...ca, ...identity, ...question);
  t.is(known.out, 'OK\n  partner=x: OK, unlimited\n', known.err);
  const unknown = await runClient(...target, ...ca, ...question);
  t.is(unknown.code, 1);
  t.regex(unknown.err, /code = Unavailable/);
});

for (const protocol of ['http', 'grpc'] as const) {
  test.serial(
    `-oltp-protocol: the call is a span, which the worker's spans belong to (OTLP over ${protocol})`,
    async (t) => {
      const receiver = await startOtlpReceiver(t, protocol);
      const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
      const traced = await startWorkerProcess(t, {
        env: {
          ...env,
          BACKEND_TYPE: 'memory',
          TRACING_ENABLED: 'true',
          TRACING_EXPORTER_PROTOCOL: protocol,
          OTEL_BSP_SCHEDULE_DELAY: '20',
        },
        rules: { 'shop.yaml': rules },
      });
      const { grpc } = traced.ports;
      const question = ['-dial_string', `127.0.0.1:${grpc}`, '-oltp-protocol', protocol];
      const answered = await runClientWith(env, ...question, '-domain', 'shop', '-descriptors=a=b');
      t.deepEqual({ code: answered.code, err: answered.err }, { code: 0, err: '' });
      t.like(await runClientWith(env, ...question), { code: 1 });

      const name = 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
      const ofKind = (kind: number) =>
        receiver.spans.filter((span) => span.kind === kind && span.name === name);
      await eventually('the spans of both', () => ofKind(3).length === 2 && ofKind(2).length === 2);
      const [call, failed] = ofKind(3);
      t.is(call?.resource['service.name'], 'RateLimitClient');
      t.is(call?.parentSpanId, '');
      t.deepEqual(call?.attributes, {
        'rpc.system.name': 'grpc',
        'rpc.method': name,
        'rpc.response.status_code': 'OK',
        'network.peer.address': '127.0.0.1',
        'network.peer.port': grpc,
      });
      const server = ofKind(2).find(({ parentSpanId }) => parentSpanId === call?.spanId);
      t.is(server?.traceId, call?.traceId);
      t.like(failed, { status: 2, statusText: 'rate limit domain must not be empty' });
      t.is(failed?.attributes['rpc.response.status_code'], 'UNKNOWN');
    },
  );
}

test('-oltp-protocol: the answer is printed even when the span cannot be sent, which is reported', async (t) => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
  const target = `127.0.0.1:${worker.ports.grpc}`;
  const question = ['-dial_string', target, '-domain', 'shop', '-descriptors', 'partner=x'];
  const { code, out, err } = await runClientWith(env, ...question, '-oltp-protocol', 'grpc');
  t.is(code, 0);
  t.is(out, 'OK\n  partner=x: OK, unlimited\n');
  t.regex(err, /^Traces do not reach their receiver: .*ECONNREFUSED/);
});
