// Tests what an outage of the store costs callers in each failure mode: 400 requests a second while Redis is stopped
// (SIGSTOP: it keeps its connections, accepts others and sends nothing) and continued. Times are only logged; the
// assertions are about counts: answers, and requests that reach the server.
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../../support/eventually.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { mostOpen, startLoad, type Timing } from '../../support/steady-load.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { type CallAnswer, createWorkerCaller } from '../../support/worker-caller.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

const ratePerSecond = 400;
/** Decisions of a phase without an outage. */
const phase = 1.5 * ratePerSecond;
/** A test here waits for phases of load, and repeats some of them. */
const testMs = 300_000;
const rules = {
  'd.yaml': `domain: d
descriptors:
  - {key: k, rate_limit: {unit: day, requests_per_unit: 1000000000}}
`,
};
const values = 200;
/** The callers' answers once the store is known to be unreachable. */
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

/** Silences the server while it is called. Repeated if a busy machine had already made it silent. Calls `began` right
 * before. */
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

type Call = Timing & { readonly answer: CallAnswer };

function logPhase(t: ExecutionContext, phase: string, calls: readonly Call[]): void {
  const took = calls.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  const at = (part: number) => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0;
  const count = (kind: string) => calls.filter(({ answer }) => answer.startsWith(kind)).length;
  t.log(
    `${phase}: ${calls.length} requests, p50 ${at(0.5).toFixed(2)} ms, p99 ${at(0.99).toFixed(2)} ms, max ${at(1).toFixed(1)} ms; ${count('OK')} OK, ${count('OVER_LIMIT')} over the limit, ${count('failed')} failed`,
  );
}

for (const mode of Object.keys(answersWhenOpen) as Mode[]) {
  test(`${mode}: only the first calls wait for a stalled store`, async (t) => {
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
      // Decisions wait for a server longer than a busy machine delays it: with `error` always, with the others once it
      // has accepted.
      KVSTORE_TIMEOUT: mode === 'error' ? '5s' : '10s',
      KVSTORE_FAILURE_MODE: mode,
    };
    const worker = await startWorkerProcess(t, { env, rules });
    const { decide } = createWorkerCaller(t, worker);
    const load = startLoad(ratePerSecond, async (index) => ({
      answer: await decide('d', 'k', `v${index % values}`),
    }));
    t.teardown(load.stop);
    // The first ones compile the worker's code.
    await eventually('a warm worker', () => load.results.length > 800);

    const warmMs = performance.now();
    await eventually('decisions', () => load.results.length > 800 + phase);
    t.true(counted > 0);
    let stoppedMs = 0;
    await silence(worker, redis, () => {
      stoppedMs = performance.now();
    });
    const opened = await countOpened(worker);
    // Everything sent before has arrived.
    counted = 0;
    const openMs = performance.now();
    // Calls that wait for the store do so as long as a probe, so that between two probes not many more are answered
    // than wait at once.
    let [probes, answered] = [proxy.accepted, load.results.length];
    await eventually('decisions between two probes', () => {
      if (proxy.accepted !== probes) [probes, answered] = [proxy.accepted, load.results.length];
      return load.results.length - answered > 4 * mostOpen;
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
    t.regex(await worker.page('/status'), new RegExp(`when the store fails: \\w+=${mode}: `));
    t.is(await countOpened(worker), opened);
    t.is(counted, 0, 'a store that is known to be away is asked to count nothing');
    const resumedMs = performance.now();
    redis.resume();
    const asked = (fromMs: number, toMs: number) =>
      load.results.filter(({ startedMs }) => startedMs >= fromMs && startedMs < toMs);
    await awaitClosed(worker);
    const closedMs = performance.now();
    let after: Call[] = [];
    for (let openedBefore = -1; openedBefore !== (await countOpened(worker)); ) {
      // Repeated if a busy machine has made the server silent.
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
    const whenOpen = asked(openMs, measuredMs).filter(
      ({ startedMs, tookMs }) => startedMs + tookMs < resumedMs,
    );
    logPhase(t, 'open', whenOpen);
    t.log(`closed ${Math.round(closedMs - resumedMs)} ms after the server resumed`);
    logPhase(t, 'after', after);

    t.true(whenOpen.every(({ answer }) => answer.startsWith(answersWhenOpen[mode])));
    t.true(after.every(({ answer }) => answer === 'OK'));
    if (mode === 'allow' || mode === 'local')
      t.true(load.results.every(({ answer }) => answer === 'OK'));
  });
}
