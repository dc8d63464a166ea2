// What an outage of the store costs callers in each failure mode: 400 requests a second while Redis
// stands still (SIGSTOP: it keeps its connections, takes others and says nothing) and goes on. Times are
// logged; asserted is what is counted: answers, and what reaches the server.
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../../support/eventually.ts';
import { maxOpen, type PacedCall, startPacedCalls } from '../../support/paced-calls.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

const ratePerSecond = 400;
/** Decisions of a phase in which nothing is away. */
const phase = 1.5 * ratePerSecond;
const probeTimeoutMs = 1_000;
/** A test here waits for phases of load, some of them more than once. */
const testMs = 300_000;
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
  const text = await worker.page('/stats');
  return Number(text.match(new RegExp(`^${name.replaceAll('.', '\\.')}: (\\d+)$`, 'm'))?.[1] ?? 0);
}

const countOpened = (worker: WorkerProcess) => readStat(worker, 'ratelimit.store.breaker.opened');

async function awaitClosed(worker: WorkerProcess): Promise<void> {
  await eventually('the breaker is closed', async () => {
    const page = await worker.page('/status');
    return !page.includes('not asked: ');
  });
}

async function awaitOpen(worker: WorkerProcess): Promise<void> {
  await eventually(
    'the breaker is open',
    async () => (await readStat(worker, 'ratelimit.store.breaker.open')) === 1,
  );
}

/** Has the server fall silent while it is asked. Where a busy machine has made it silent before, it
 * is done again. `began` is called right before. */
async function silence(worker: WorkerProcess, redis: RedisServer, began: () => void) {
  for (;;) {
    await awaitClosed(worker);
    const before = await countOpened(worker);
    began();
    await redis.pause();
    await awaitOpen(worker);
    if ((await countOpened(worker)) === before + 1) return;
    redis.resume();
  }
}

function logPhase(t: ExecutionContext, phase: string, calls: readonly PacedCall[]): void {
  const took = calls.map(({ askedMs, answeredMs }) => answeredMs - askedMs).sort((a, b) => a - b);
  const at = (part: number) => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0;
  const count = (answer: PacedCall['answer']) =>
    calls.filter((call) => call.answer === answer).length;
  t.log(
    `${phase}: ${calls.length} requests, p50 ${at(0.5).toFixed(2)} ms, p99 ${at(0.99).toFixed(2)} ms, max ${at(1).toFixed(1)} ms; ${count('OK')} OK, ${count('OVER_LIMIT')} over the limit, ${count('failed')} failed`,
  );
}

for (const mode of Object.keys(answersWhenOpen) as Mode[]) {
  test(`${mode}: a store that stands still is waited for once`, async (t) => {
    t.timeout(testMs);
    const redis = await startRedisServer(t);
    let counted = 0;
    const proxy = await startTcpProxy(t, redis.port, {
      onRequest: (chunk) => {
        if (chunk.includes('INCRBY')) counted++;
      },
    });
    const env = {
      KVSTORE_URL: `127.0.0.1:${proxy.port}`,
      // Decisions wait longer for a server than a busy machine holds it up: with `error` always, with
      // the others once it has accepted.
      KVSTORE_TIMEOUT: mode === 'error' ? '5s' : '10s',
      KVSTORE_FAILURE_MODE: mode,
    };
    const worker = await startWorkerProcess(t, { env, rules });
    const load = await startPacedCalls(worker.ports.grpc, ratePerSecond, requests);
    t.teardown(load.stop);
    // The first ones compile the worker's code.
    await eventually('a warm worker', () => load.calls.length > 800);

    const warmMs = performance.now();
    await eventually('decisions', () => load.calls.length > 800 + phase);
    t.true(counted > 0);
    let stoppedMs = 0;
    await silence(worker, redis, () => {
      stoppedMs = performance.now();
    });
    const opened = await countOpened(worker);
    // All has arrived that was sent before.
    counted = 0;
    const openMs = performance.now();
    // Whoever waits for the store does so as long as a probe, so that not many more are answered between two
    // probes than wait at once.
    let [probes, answered] = [proxy.accepted, load.calls.length];
    await eventually('decisions between two probes', () => {
      if (proxy.accepted !== probes) [probes, answered] = [proxy.accepted, load.calls.length];
      return load.calls.length - answered > 4 * maxOpen;
    });
    const measuredMs = performance.now();
    if (mode !== 'error') {
      const spawnedMs = performance.now();
      const other = await startWorkerProcess(t, { env, rules });
      t.log(
        `a worker started meanwhile serves after ${Math.round(performance.now() - spawnedMs)} ms`,
      );
      await other.stop();
    }
    t.is(await countOpened(worker), opened);
    t.is(counted, 0, 'a store that is known to be away is asked to count nothing');
    const resumedMs = performance.now();
    redis.resume();
    const asked = (fromMs: number, toMs: number) =>
      load.calls.filter(({ askedMs }) => askedMs >= fromMs && askedMs < toMs);
    await awaitClosed(worker);
    const closedMs = performance.now();
    let after: PacedCall[] = [];
    for (let openedBefore = -1; openedBefore !== (await countOpened(worker)); ) {
      // Once more where a busy machine has made the server silent.
      await awaitClosed(worker);
      openedBefore = await countOpened(worker);
      const fromMs = performance.now();
      await eventually('decisions', () => {
        after = asked(fromMs, Number.POSITIVE_INFINITY);
        return after.length > phase;
      });
    }
    await load.stop();

    logPhase(t, 'healthy', asked(warmMs, stoppedMs));
    logPhase(
      t,
      `silent, ${Math.round(openMs - stoppedMs)} ms until open`,
      asked(stoppedMs, openMs),
    );
    const whenOpen = asked(openMs, measuredMs).filter(({ answeredMs }) => answeredMs < resumedMs);
    logPhase(t, 'open', whenOpen);
    t.log(`closed ${Math.round(closedMs - resumedMs)} ms after the server went on`);
    logPhase(t, 'after', after);

    t.true(whenOpen.every(({ answer }) => answer === answersWhenOpen[mode]));
    t.true(after.every(({ answer }) => answer === 'OK'));
    if (mode === 'allow' || mode === 'local')
      t.true(load.calls.every(({ answer }) => answer === 'OK'));
  });
}

test('a store that is away is probed over one connection at a time', async (t) => {
  t.timeout(testMs);
  const redis = await startRedisServer(t);
  const requestsSeen: string[] = [];
  const proxy = await startTcpProxy(t, redis.port, {
    onRequest: (chunk) => requestsSeen.push(chunk.toString('latin1')),
  });
  const worker = await startWorkerProcess(t, {
    env: {
      KVSTORE_URL: `127.0.0.1:${proxy.port}`,
      KVSTORE_TIMEOUT: `${probeTimeoutMs}ms`,
      // No connection is opened that is no probe.
      KVSTORE_POOL_ON_EMPTY_BEHAVIOR: 'WAIT',
      KVSTORE_FAILURE_MODE: 'local',
    },
    rules,
  });
  const load = await startPacedCalls(worker.ports.grpc, 200, requests);
  t.teardown(load.stop);
  await eventually('decisions', () => load.calls.length > 20);
  const closedBefore = await readStat(worker, 'ratelimit.store.breaker.closed');
  let accepted = 0;
  let beganMs = 0;
  for (;;) {
    await eventually('all connections', async () => {
      const active = await readStat(worker, 'ratelimit.redis_pool.cx_active');
      return active === 10 && proxy.open === 10;
    });
    const before = await countOpened(worker);
    await silence(worker, redis, () => {
      // From before it is silent: attempts that the test has not seen yet were made after this too.
      accepted = proxy.accepted;
      beganMs = performance.now();
    });
    if ((await countOpened(worker)) === before + 1) break;
    redis.resume();
  }
  t.is(await readStat(worker, 'ratelimit.redis_pool.cx_active'), 0);
  // By then all has arrived that was sent before.
  await eventually('the second probe', () => proxy.accepted >= accepted + 2);
  requestsSeen.length = 0;
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
  t.true((await readStat(worker, 'ratelimit.store.breaker.closed')) > closedBefore);
});
