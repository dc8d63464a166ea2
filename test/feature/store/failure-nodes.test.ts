// Tests partial failures of a store: one master of a cluster, one of two stores, one memory cache. Hits on the other
// parts are counted there, and nothing waits for a part that is known to be unreachable.
import test from 'ava';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import type { CounterStore } from '../../../worker/counters/store.ts';
import { countOn, createHit } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { startMemcachedServer } from '../../support/memcached-server.ts';
import { openMemcachedStore } from '../../support/memcached-store.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRecordedRedisStore, openRedisStore } from '../../support/redis-store.ts';
import { startWorker } from '../../support/worker-in-process.ts';

/** How often a store polls for answers. */
const sweepMs = 25;
/** Polls for answers so rarely that a server counts as silent only after ten times the usual time: one that a busy
 * machine delays does not. */
const rarelyPollingClock: Clock = {
  ...systemClock,
  after: (delayMs, task) => systemClock.after(delayMs === sweepMs ? 10 * sweepMs : delayMs, task),
};
const openGauge = 'ratelimit.store.breaker.open';
const rules = `domain: d
descriptors:
  - {key: second, rate_limit: {unit: second, requests_per_unit: 1000000}}
  - {key: day, rate_limit: {unit: year, requests_per_unit: 2}}
`;

async function count(store: CounterStore, ...keys: readonly string[]) {
  return countOn(
    store,
    keys.map((key) => createHit({ key })),
  );
}

test.serial('one silent master of a cluster does not affect the keys of the others', async (t) => {
  const cluster = await startRedisCluster(t);
  for (const master of cluster.masters)
    await master.command('CONFIG', 'SET', 'cluster-require-full-coverage', 'no');
  const store = await openRedisStore(t, cluster.url, {
    type: 'cluster',
    timeoutMs: 20_000,
    failureMode: 'local',
    clock: rarelyPollingClock,
  });
  const [silent] = cluster.masters;
  const away: string[] = [];
  const present: string[] = [];
  for (let index = 0; away.length < 3 || present.length < 3; index++) {
    const key = `node_${index}_`;
    const owner = await cluster.ownerOf(await cluster.slotOf(key));
    (owner === silent ? away : present).push(key);
  }
  await eventually('every master', () => store.connections.active === 6);
  await silent?.pause();
  t.regex(String((await count(store, ...away)).error?.message), /no answer in 500 ms/);
  t.is(store.metrics.gauge(openGauge).value, 1);
  for (let round = 1; round <= 20; round++) {
    const alone = await count(store, ...present);
    t.is(alone.error, undefined);
    t.true(alone.after.every((after) => after === 2 * round - 1));
    // The parts of a request continue after one that failed, and their counts are reported.
    const mixed = await count(store, away[0] ?? '', ...present);
    t.is(mixed.error?.code, 'store');
    t.deepEqual(mixed.after, [-1, ...present.map(() => 2 * round)]);
  }
  t.is(store.metrics.counter('ratelimit.store.breaker.opened').value, 1);
  silent?.resume();
  await eventually('the keys of the master', async () => {
    return (await count(store, ...away)).error === undefined;
  });
  await eventually('every connection', () => store.connections.active === 6);
  t.is(store.metrics.gauge(openGauge).value, 0);
});

test.serial('a silent cluster does not delay a start, and is used once it answers', async (t) => {
  const cluster = await startRedisCluster(t);
  await Promise.all(cluster.masters.map((master) => master.pause()));
  const store = createRecordedRedisStore(cluster.url, {
    type: 'cluster',
    // The time of a connection attempt, which is longer than the start waits.
    timeoutMs: 120_000,
    failureMode: 'allow',
  });
  t.teardown(() => store.close(0));
  await store.connect(AbortSignal.timeout(60_000));
  t.deepEqual(store.healthChanges, [false]);
  t.regex(String((await count(store, 'early_')).error?.message), /no node serves slot/);
  for (const master of cluster.masters) master.resume();
  await eventually('every master', async () => {
    return (await count(store, 'a_', 'b_', 'c_', 'd_')).error === undefined;
  });
});

test.serial('an unreachable per-second store does not affect the main one', async (t) => {
  const [main, perSecond] = [await startRedisServer(t), await startRedisServer(t)];
  const worker = await startWorker(t, {
    env: {
      KVSTORE_URL: main.url,
      KVSTORE_PERSECOND: 'true',
      KVSTORE_PERSECOND_URL: perSecond.url,
      KVSTORE_FAILURE_MODE: 'deny',
      KVSTORE_TIMEOUT: '20s',
    },
    rules,
    clock: rarelyPollingClock,
  });
  // A worker that can answer without a store does not wait long for it at the start.
  for (const key of ['second', 'day=start'])
    await eventually('it is counted', async () => (await worker.decide(key)).status === 200);
  await perSecond.kill();
  await eventually('it is denied', async () => (await worker.decide('second')).status === 429);
  t.regex(await worker.page('/stats'), /^ratelimit\.per_second_store\.breaker\.open: 1$/m);
  t.regex(await worker.page('/stats'), /^ratelimit\.store\.breaker\.open: 0$/m);
  t.regex(
    await worker.page('/status'),
    new RegExp(`^ {2}not asked: key-value store ${perSecond.url}: connect ECONNREFUSED`, 'm'),
  );
  const statuses: number[] = [];
  for (let round = 0; round < 3; round++) statuses.push((await worker.decide('day')).status);
  t.deepEqual(statuses, [200, 200, 429]);
  await perSecond.restart();
  await eventually('it is counted', async () => (await worker.decide('second')).status === 200);
  t.notRegex(await worker.page('/status'), /not asked/);
});

for (const mode of ['error', 'allow', 'local'] as const) {
  test.serial(`${mode}: a silent memory cache is waited for once, then probed`, async (t) => {
    const memcached = await startMemcachedServer(t);
    const store = await openMemcachedStore(t, {
      urls: [memcached.url],
      failureMode: mode,
      clock: systemClock,
    });
    const isCounted = async () => {
      const { error, after } = await count(store, 'silent_');
      await store.settled();
      return error === undefined && (after[0] ?? 0) >= 2;
    };
    const isAsked = () => store.metrics.gauge(openGauge).value === 0;
    // A busy machine may have timed out on a slow answer.
    await eventually('it is counted', async () => (await isCounted()) && isAsked());
    await memcached.pause();
    const outcomes = await Promise.all([count(store, 'silent_'), count(store, 'silent_')]);
    for (const { error, after } of outcomes) {
      t.is(error?.code, mode === 'error' ? undefined : 'store');
      t.deepEqual(after, [mode === 'error' ? 1 : -1]);
    }
    t.is(store.metrics.gauge(openGauge).value, 1);
    const beganMs = performance.now();
    for (let round = 0; round < 200; round++) await count(store, 'silent_');
    // Each wait would take half a second.
    t.true(performance.now() - beganMs < 50_000);
    t.is(store.metrics.gauge(openGauge).value, 1);
    memcached.resume();
    await eventually('it is asked again', isAsked);
    await eventually('it is counted again', isCounted);
  });
}
