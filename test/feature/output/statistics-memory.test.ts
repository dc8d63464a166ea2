// What very many names made of requests cost a worker as a process, with its default settings and
// every output on: the memory that the system sees, not only what V8 says is in use.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { credentials, makeClientConstructor, type ServiceError } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { freePort } from '../../support/free-port.ts';
import { startOtlpReceiver } from '../../support/otlp-receiver.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const RateLimitClient = makeClientConstructor(loadProtos().rateLimitService, 'RateLimitService');
const defaultNamesMax = 25_000;
/** More than the bound: what comes after it is folded, however much it is. */
const names = 75_000;
const mostBytes = 64 * 1024 * 1024;
const descriptorsPerCall = 50;
const callsAtOnce = 16;

const rules = `domain: d
descriptors:
  - key: one_name
    rate_limit: {unit: second, requests_per_unit: 1000000}
  - key: own_names
    detailed_metric: true
    rate_limit: {unit: second, requests_per_unit: 1000000}
`;

function createAsker(t: ExecutionContext, port: number) {
  const client = new RateLimitClient(`127.0.0.1:${port}`, credentials.createInsecure());
  t.teardown(() => client.close());
  const ask = (key: string, first: number) =>
    new Promise<void>((resolve, reject) => {
      const descriptors = Array.from({ length: descriptorsPerCall }, (_, index) => ({
        entries: [{ key, value: `value_${first + index}` }],
      }));
      client['ShouldRateLimit']?.(
        { domain: 'd', descriptors },
        { deadline: Date.now() + 60_000 },
        (error: ServiceError | null) => (error === null ? resolve() : reject(error)),
      );
    });
  /** `names` different values of `key`, once each. */
  return async (key: string): Promise<void> => {
    let next = 0;
    const askOn = async () => {
      while (next < names) {
        const first = next;
        next += descriptorsPerCall;
        await ask(key, first);
      }
    };
    await Promise.all(Array.from({ length: callsAtOnce }, askOn));
  };
}

async function readRssBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

test('names beyond the bound cost a worker bounded memory as the system sees it', async (t) => {
  t.timeout(180_000);
  const redis = await startRedisServer(t);
  const silent = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on('error', () => {});
    t.teardown(() => socket.destroy());
  }).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => silent.close());
  const silentAddress = silent.address();
  const traces = await startOtlpReceiver('http');
  t.teardown(() => traces.close());
  const pull = `127.0.0.1:${await freePort()}`;
  const worker = await startWorkerProcess(t, {
    rules: { 'd.yaml': rules },
    env: {
      REDIS_URL: redis.url,
      DISABLE_STATS: 'false',
      USE_STATSD: 'true',
      STATSD_HOST: '127.0.0.1',
      STATSD_PORT: `${typeof silentAddress === 'object' ? silentAddress?.port : 0}`,
      USE_DOG_STATSD: 'true',
      USE_PROMETHEUS: 'true',
      PROMETHEUS_ADDR: pull,
      TRACING_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
    },
  });
  const askAll = createAsker(t, worker.ports.grpc);
  const read = async (url: string) => (await fetch(url)).text();

  // The same calls under one name, until they take no more memory than before.
  for (let time = 0; time < 2; time++) {
    await askAll('one_name');
    await read(`http://${pull}/metrics`);
  }
  const before = await readRssBytes(worker.pid);
  await askAll('own_names');
  await read(`http://${pull}/metrics`);
  const more = (await readRssBytes(worker.pid)) - before;
  t.log(`${Math.round(more / 1024 / 1024)} MiB more`);
  t.true(more < mostBytes, `${more} bytes`);
  const stats = await read(`http://127.0.0.1:${worker.ports.debug}/stats`);
  t.true(stats.includes(`ratelimit.service.folded_metric_names: ${names - defaultNamesMax}\n`));
});
