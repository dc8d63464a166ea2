// What happens on the way from a worker to a memory cache: no decision fails or waits long, hits are lost
// only where that is said, none is counted twice, and counting comes back by itself.
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../support/eventually.ts';
import { type MemcachedServer, startMemcachedServer } from '../support/memcached-server.ts';
import { type Fault, startTcpProxy } from '../support/tcp-proxy.ts';
import { startWorker, type WorkerInProcess } from '../support/worker-in-process.ts';
import { askThroughFault } from './faulty-load.ts';

/** Connecting and reading are bounded by 500 ms each; the rest is for a busy machine. */
const longestMs = 1_000 + 15_000;
const windowSeconds = 365 * 86_400;
const rules = `domain: d
descriptors:
  - key: k
    rate_limit: {unit: year, requests_per_unit: 1000000}
`;

async function countOf(memcached: MemcachedServer, value: string): Promise<number> {
  const start = Math.floor(Date.now() / 1000 / windowSeconds) * windowSeconds;
  return Number((await memcached.get(`d_k_${value}_${start}`)) ?? 0);
}

/** A busy machine may take a slow answer for none: then another counter is tried. */
async function becomesExact(worker: WorkerInProcess, memcached: MemcachedServer): Promise<void> {
  let round = 0;
  await eventually('counting is exact again', async () => {
    const value = `again${round++}`;
    for (let hit = 0; hit < 5; hit++) await worker.decide(`k=${value}`);
    const giveUpAtMs = performance.now() + 2_000;
    while (performance.now() < giveUpAtMs) {
      if ((await countOf(memcached, value)) === 5) return true;
    }
    return false;
  });
}

async function goThrough(t: ExecutionContext, fault: Fault, isFelt: RegExp | undefined) {
  const memcached = await startMemcachedServer(t);
  const proxy = await startTcpProxy(t, memcached.port);
  const url = `127.0.0.1:${proxy.port}`;
  const worker = await startWorker(t, {
    env: { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: url },
    rules,
  });
  const { lines } = worker.log;
  const { decisions, asked, healedMs } = await askThroughFault(
    worker,
    proxy,
    fault,
    () => isFelt === undefined || lines.some((line) => isFelt.test(line)),
  );
  await becomesExact(worker, memcached);
  const tookMs = Math.round(performance.now() - healedMs);
  t.deepEqual(
    decisions.filter(({ failure }) => failure !== undefined),
    [],
  );
  const slowestMs = Math.max(...decisions.map(({ askedMs, answeredMs }) => answeredMs - askedMs));
  t.true(slowestMs < longestMs, `${slowestMs} ms`);
  const errors = lines.filter((line) => line.startsWith('error'));
  t.true(
    errors.every((line) => line.includes(`memory cache ${url}: `)),
    errors.join('\n'),
  );
  let lost = 0;
  for (const [value, sent] of asked) {
    const counter = await countOf(memcached, value);
    t.true(counter <= sent, `${value}: ${counter} counted, ${sent} sent`);
    lost += sent - counter;
  }
  t.true(lost === 0 || errors.length > 0, `${lost} hits were lost in silence`);
  t.log(
    `${decisions.length} decisions, the slowest ${Math.round(slowestMs)} ms, ${lost} hits not counted; ` +
      `exact ${tookMs} ms after the repair`,
  );
  return { errors, lines, url };
}

for (const fault of [
  { kind: 'latency', ms: 50 },
  { kind: 'drip', bytes: 16, everyMs: 5 },
] as const) {
  test.serial(`a memory cache answers late (${fault.kind}): it is waited for`, async (t) => {
    await goThrough(t, fault, undefined);
  });
}

for (const kind of ['stall', 'reset', 'half-close', 'cut'] as const) {
  test.serial(
    `the way to a memory cache is broken (${kind}): it counts as 0, and only then`,
    async (t) => {
      const { errors, lines, url } = await goThrough(t, { kind }, /^error .*count as 0 until/);
      t.true(errors.length <= 4, errors.join('\n'));
      const back = lines.filter((line) =>
        line.startsWith(`notice memory cache ${url}: answers again after `),
      );
      t.true(back.length >= 1 && back.length <= 4, lines.join('\n'));
    },
  );
}
