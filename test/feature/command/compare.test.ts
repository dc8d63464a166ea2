// Tests `compare`: requests recorded by a real worker are sent to real workers.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { eventually } from '../../support/eventually.ts';
import { listenFor } from '../../support/listen.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { startWorker } from '../../support/worker-in-process.ts';

const rules = `
domain: d
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 3}}
  - {key: plan, value: gold, rate_limit: {unit: year, requests_per_unit: 5}}
`;
const answers = {
  LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
  LIMIT_RATELIMIT_ENABLED: 'true',
  LIMIT_RETRY_AFTER_ENABLED: 'true',
  RESPONSE_DYNAMIC_METADATA: 'true',
};
const memory = { BACKEND_TYPE: 'memory', ...answers };

async function record(t: ExecutionContext): Promise<string> {
  const folder = createTemporaryFolder(t);
  const path = join(folder, 'decisions');
  const env = { ...memory, RECORD_DECISIONS: path, RECORD_DECISIONS_RATE: '1' };
  const worker = await startWorker(t, { env, rules });
  for (let index = 0; index < 120; index++) {
    await worker.decide(`user=u${index % 30}`, index % 3 === 0 ? 'plan=gold' : 'plan=free');
  }
  await eventually('all is recorded', async () => {
    const text = await readFile(path, 'utf8').catch(() => '');
    return text.split('"domain"').length === 121;
  });
  return path;
}

async function startAsked(
  t: ExecutionContext,
  env: Readonly<Record<string, string>>,
  itsRules = rules,
): Promise<string> {
  const worker = await startWorker(t, { env, rules: itsRules });
  return (await worker.started).grpc.text;
}

function compare(path: string, reference: string, candidate: string, ...more: string[]) {
  const services = ['--reference', reference, '--candidate', candidate];
  return runInProcess(['compare', ...services, '--replay', path, '--speed', '0', ...more]);
}

test('two workers with different stores give the same answers', async (t) => {
  const path = await record(t);
  const redis = await startRedisServer(t);
  const reference = await startAsked(t, memory);
  const candidate = await startAsked(t, { KVSTORE_URL: redis.url, ...answers });
  const { code, out, err } = await compare(path, reference, candidate);
  t.regex(out, /^120 requests compared in [\d.]+ s: no differences\n$/);
  t.is(err.replace(/^waiting: .*\n/gm, ''), '');
  t.is(code, 0);
});

for (const [what, env, itsRules, kind] of [
  ['a limit', {}, rules.replace('requests_per_unit: 3', 'requests_per_unit: 4'), 'limit'],
  ['a header', { LIMIT_RESET_HEADER: 'x-reset' }, rules, 'response header'],
  ['the metadata', { RESPONSE_DYNAMIC_METADATA: 'false' }, rules, 'metadata'],
  ['the mode', { QUOTA_MODE: 'true' }, rules, 'code'],
] as const) {
  test(`${what} that differs is found within the first 100 requests that it affects`, async (t) => {
    const path = await record(t);
    const reference = await startAsked(t, memory);
    const candidate = await startAsked(t, { ...memory, ...env }, itsRules);
    const { code, out } = await compare(path, reference, candidate, '--json');
    t.is(code, 1);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { summary } = lines.at(-1);
    t.is(summary.requests, 120);
    t.is(summary.different, lines.length - 1, 'every difference is listed');
    t.true(summary.by_kind[kind] > 0, JSON.stringify(summary.by_kind));
    t.true(lines[0].request <= 100, `${lines[0].request}`);
  });
}

test('a difference is reported with its request and the answers of both services', async (t) => {
  const path = await record(t);
  const reference = await startAsked(t, memory);
  const candidate = await startAsked(t, memory, rules.replace('unit: year', 'unit: month'));
  const { out } = await compare(path, reference, candidate);
  t.regex(
    out,
    /^request 1 \(recorded 20[^)]+Z\), domain d: user=u0 plan=gold\n {2}descriptor 1 limit: reference 3 per YEAR, candidate 3 per MONTH\n/,
  );
});

test('a service that dies midway is named, with the comparison until then', async (t) => {
  const path = await record(t);
  const reference = await startAsked(t, memory);
  const worker = await startWorker(t, { env: memory, rules });
  const { grpc } = await worker.started;
  const { createServer, connect } = await import('node:net');
  // A proxy to the candidate that is cut after some requests.
  let requests = 0;
  const proxy = createServer((socket) => {
    const way = connect(grpc.port, '127.0.0.1');
    socket.on('data', (chunk) => {
      if (++requests > 40) {
        proxy.close();
        socket.destroy();
        way.destroy();
      } else way.write(chunk);
    });
    way.on('data', (chunk) => socket.write(chunk));
    for (const end of [socket, way]) end.on('error', () => {});
  });
  const port = await listenFor(t, proxy);
  const { code, out, err } = await compare(path, reference, `127.0.0.1:${port}`);
  t.is(code, 2);
  const [, compared] = /^(\d+) requests compared/.exec(out) ?? [];
  t.true(Number(compared) > 0 && Number(compared) < 120, out);
  t.true(
    err.includes(
      `the candidate ended the comparison after ${compared} requests: the connection to it was lost`,
    ),
    err,
  );
});

test('the pace is that of the recording, or the given multiple of it', async (t) => {
  const path = await record(t);
  const lines = (await readFile(path, 'utf8')).trim().split('\n');
  const [header = '', first = '{}', second = '{}'] = lines;
  const decisions = [first, second].map((line, index) =>
    JSON.stringify({ ...JSON.parse(line), time: 1_000_000 + index * 8_000 }),
  );
  await writeFile(path, `${[header, ...decisions, 'no line'].join('\n')}\n`);
  const reference = await startAsked(t, memory);
  const candidate = await startAsked(t, memory);
  const { out, err } = await compare(path, reference, candidate, '--speed', '16', '--json');
  const { summary } = JSON.parse(out);
  t.true(summary.seconds >= 0.5, `${summary.seconds}`);
  t.is(summary.lines_left_out, 1);
  t.regex(err, /warning: 1 line left out, the first is line 4 of '.*': it is not JSON/);
});

test('a worker compared with itself gives the same answers over TLS and on a unix socket', async (t) => {
  const path = await record(t);
  const tlsFile = (name: string) => join('test', 'conformance', 'tls', name);
  const secured = await startAsked(t, {
    ...memory,
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: tlsFile('server.pem'),
    GRPC_SERVER_TLS_KEY: tlsFile('server.key'),
    GRPC_CLIENT_TLS_CACERT: tlsFile('ca.pem'),
  });
  const { port } = new URL(`tcp://${secured}`);
  const socket = join(path, '..', 'worker.sock');
  await startAsked(t, { ...memory, GRPC_UDS: socket });
  const addresses = [path, `tls://localhost:${port}`, `unix:${socket}`] as const;
  const ca = ['--ca', tlsFile('ca.pem')];
  const identity = ['--cert', tlsFile('client.pem'), '--key', tlsFile('client.key')];
  const { code, out, err } = await compare(...addresses, ...ca, ...identity);
  t.regex(out, /^120 requests compared in [\d.]+ s: no differences\n$/, err);
  t.is(code, 0);

  const half = await compare(...addresses, ...ca, ...identity.slice(0, 2));
  t.is(half.code, 2);
  t.regex(half.err, /--cert and --key go together/);
  const unused = await compare(path, `unix:${socket}`, `localhost:${port}`, ...ca);
  t.is(unused.code, 2);
  t.regex(unused.err, /are for a service with TLS: write its address as tls:\/\/host:port/);
  const plain = await compare(path, `unix:worker.sock`, `unix:${socket}`);
  t.is(plain.code, 2);
  t.regex(plain.err, /'unix:worker.sock': write the full path, such as unix:\/run\/ratelane.sock/);
});

test('an unreachable service or an invalid address is refused by name', async (t) => {
  const path = await record(t);
  const address = await startAsked(t, memory);
  const unreachable = await compare(path, address, '127.0.0.1:1');
  t.is(unreachable.code, 2);
  t.regex(unreachable.err, /the candidate 127\.0\.0\.1:1 cannot be called/);
  const wrong = await compare(path, 'nowhere', address);
  t.is(wrong.code, 2);
  t.regex(wrong.err, /'nowhere': the port is missing; write an address such as 127\.0\.0\.1:8081/);
  t.like(await compare(join(path, 'none'), address, address), { code: 2 });
});
