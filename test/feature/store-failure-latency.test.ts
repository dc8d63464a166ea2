// What an outage of the store costs callers in each failure mode: 1,000 requests a second while Redis
// stands still (SIGSTOP: it keeps its connections, takes others and says nothing) and goes on. The
// figures are logged; asserted is only what holds on any machine.
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../support/eventually.ts';
import { type PacedCall, startPacedCalls } from '../support/paced-calls.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.ts';

const ratePerSecond = 1_000;
const timeoutMs = 1_000;
const probeTimeoutMs = 300;
const rules = {
  'd.yaml': `domain: d
descriptors:
  - key: k
    rate_limit: {unit: day, requests_per_unit: 1000000000}
`,
};
const requests = Array.from({ length: 200 }, (_, index) => ({
  domain: 'd',
  descriptors: [{ entries: [{ key: 'k', value: `v${index}` }] }],
}));
/** What callers are told once the store is known to be away. */
const answersWhenOpen = { error: 'failed', allow: 'OK', deny: 'OVER_LIMIT', local: 'OK' } as const;
type Mode = keyof typeof answersWhenOpen;

async function readStat(worker: WorkerProcess, name: string): Promise<number> {
  const page = await fetch(`http://127.0.0.1:${worker.ports.debug}/stats`, {
    signal: AbortSignal.timeout(8_000),
  });
  const text = await page.text();
  return Number(text.match(new RegExp(`^${name.replaceAll('.', '\\.')}: (\\d+)$`, 'm'))?.[1] ?? 0);
}

function logPhase(t: ExecutionContext, phase: string, calls: readonly PacedCall[]): number {
  const took = calls.map(({ dueMs, answeredMs }) => answeredMs - dueMs).sort((a, b) => a - b);
  const at = (part: number) => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0;
  const count = (answer: PacedCall['answer']) =>
    calls.filter((call) => call.answer === answer).length;
  t.log(
    `${phase}: ${calls.length} requests, p50 ${at(0.5).toFixed(2)} ms, p99 ${at(0.99).toFixed(2)} ms, max ${at(1).toFixed(1)} ms; ${count('OK')} OK, ${count('OVER_LIMIT')} over the limit, ${count('failed')} failed`,
  );
  return at(0.5);
}

for (const mode of Object.keys(answersWhenOpen) as Mode[]) {
  test.serial(`${mode}: a store that stands still is waited for once`, async (t) => {
    const redis = await startRedisServer();
    t.teardown(redis.stop);
    const env = {
      KVSTORE_URL: redis.url,
      KVSTORE_TIMEOUT: `${timeoutMs}ms`,
      KVSTORE_FAILURE_MODE: mode,
    };
    const worker = await startWorkerProcess({ env, rules });
    t.teardown(worker.stop);
    const load = await startPacedCalls(worker.ports.grpc, ratePerSecond, requests);
    t.teardown(load.stop);
    // The first ones compile the worker's code.
    await eventually('a warm worker', () => load.calls.length > 2_000, 30_000);

    const warmMs = performance.now();
    await eventually('decisions', () => performance.now() - warmMs > 1_500, 30_000);
    const stoppedMs = performance.now();
    await redis.pause();
    await eventually(
      'the breaker is open',
      async () => (await readStat(worker, 'ratelimit.store.breaker.open')) === 1,
    );
    const openMs = performance.now();
    await eventually('decisions without the store', () => performance.now() - openMs > 2_000);
    const measuredMs = performance.now();
    if (mode !== 'error') {
      const spawnedMs = performance.now();
      const other = await startWorkerProcess({ env, rules });
      t.log(
        `a worker started meanwhile serves after ${Math.round(performance.now() - spawnedMs)} ms`,
      );
      await other.stop();
    }
    const resumedMs = performance.now();
    redis.resume();
    await eventually(
      'the breaker is closed',
      async () => (await readStat(worker, 'ratelimit.store.breaker.closed')) === 1,
    );
    const closedMs = performance.now();
    await eventually('decisions', () => performance.now() - closedMs > 1_500, 30_000);
    await load.stop();

    const due = (fromMs: number, toMs: number) =>
      load.calls.filter(({ dueMs }) => dueMs >= fromMs && dueMs < toMs);
    logPhase(t, 'healthy', due(warmMs, stoppedMs));
    logPhase(t, `silent, ${Math.round(openMs - stoppedMs)} ms until open`, due(stoppedMs, openMs));
    const whenOpen = due(openMs, measuredMs).filter(({ answeredMs }) => answeredMs < resumedMs);
    const medianMs = logPhase(t, 'open', whenOpen);
    t.log(`closed ${Math.round(closedMs - resumedMs)} ms after the server went on`);
    const after = due(closedMs, Number.POSITIVE_INFINITY);
    logPhase(t, 'after', after);

    t.true(medianMs < 400, 'nobody waits for a store that is known to be away');
    t.true(whenOpen.every(({ answer }) => answer === answersWhenOpen[mode]));
    t.true(after.every(({ answer }) => answer === 'OK'));
    if (mode === 'allow' || mode === 'local')
      t.true(load.calls.every(({ answer }) => answer === 'OK'));
    t.is(await readStat(worker, 'ratelimit.store.breaker.opened'), 1);
  });
}

test.serial('a store that is away is probed over one connection at a time', async (t) => {
  const redis = await startRedisServer();
  t.teardown(redis.stop);
  const requestsSeen: string[] = [];
  const proxy = await startTcpProxy(redis.port, {
    onRequest: (chunk) => requestsSeen.push(chunk.toString('latin1')),
  });
  t.teardown(proxy.close);
  const worker = await startWorkerProcess({
    env: {
      KVSTORE_URL: `127.0.0.1:${proxy.port}`,
      KVSTORE_TIMEOUT: `${probeTimeoutMs}ms`,
      KVSTORE_FAILURE_MODE: 'local',
    },
    rules,
  });
  t.teardown(worker.stop);
  const load = await startPacedCalls(worker.ports.grpc, 200, requests);
  t.teardown(load.stop);
  await eventually(
    'decisions over all connections',
    () => proxy.open >= 10 && load.calls.length > 20,
  );
  await redis.pause();
  await eventually(
    'the breaker is open',
    async () => (await readStat(worker, 'ratelimit.store.breaker.open')) === 1,
  );
  t.is(await readStat(worker, 'ratelimit.redis_pool.cx_active'), 0);
  const accepted = proxy.accepted;
  requestsSeen.length = 0;
  const beganMs = performance.now();
  await eventually('several probes', () => proxy.accepted >= accepted + 5);
  const elapsedMs = performance.now() - beganMs;
  t.log(`${proxy.accepted - accepted} probes in ${Math.round(elapsedMs)} ms`);
  // Each is waited for until its time is over, and then the next one begins.
  t.true(proxy.accepted - accepted <= elapsedMs / probeTimeoutMs + 1);
  t.false(
    requestsSeen.some((text) => text.includes('INCRBY')),
    'nothing is counted',
  );
  redis.resume();
  await eventually(
    'all connections are back',
    async () => (await readStat(worker, 'ratelimit.redis_pool.cx_active')) === 10,
  );
  t.is(await readStat(worker, 'ratelimit.store.breaker.closed'), 1);
});
