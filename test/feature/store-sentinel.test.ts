// Redis behind sentinels: the master is found, followed through a failover under load, and nothing is
// counted twice.
import test from 'ava';
import { parseCredentials } from '../../worker/counters/redis/credentials.ts';
import { createHit, startCounting } from '../support/counting.ts';
import { eventually } from '../support/eventually.ts';
import { startRedisSentinels } from '../support/redis-sentinel.ts';
import {
  createRecordedRedisStore,
  openRedisStore,
  type RecordedRedisStore,
} from '../support/redis-store.ts';
import { startSteadyLoad } from '../support/steady-load.ts';

async function count(store: RecordedRedisStore, key: string) {
  const { request, result } = startCounting([createHit({ key })]);
  store.count(request);
  return result;
}

/** For the tests without a failover. */
const healthy = startRedisSentinels();
test.after.always(async () => (await healthy).stop());

test.serial('a name that the sentinels do not know is said', async (t) => {
  const group = await healthy;
  const store = createRecordedRedisStore(group.url.replace(/^main/, 'other'), { type: 'sentinel' });
  t.teardown(() => store.close(0));
  const stopping = new AbortController();
  const connecting = store.connect(stopping.signal);
  await eventually('a warning', () => store.log.lines.length > 0);
  t.regex(store.log.lines[0] ?? '', /there is no master named other/);
  stopping.abort();
  await t.throwsAsync(connecting);
});

test.serial('the master is found through the first sentinel that answers', async (t) => {
  const group = await healthy;
  const [first] = group.sentinels;
  await first?.kill();
  const store = await openRedisStore(group.url, { type: 'sentinel' });
  t.teardown(() => store.close(0));
  t.deepEqual((await count(store, 'found_')).after, [1]);
  t.is(await group.servers[0].command('GET', 'found_'), '1');
  t.regex(store.state().detail, /^connected to main of sentinels 127\.0\.0\.1:\d+,/);
});

test.serial('a failover under load: errors only in the gap, nothing counted twice', async (t) => {
  const group = await startRedisSentinels();
  t.teardown(group.stop);
  const store = await openRedisStore(group.url, { type: 'sentinel', size: 3, timeoutMs: 1_000 });
  t.teardown(() => store.close(0));
  const [master, replica] = group.servers;
  const load = startSteadyLoad(store, 1_000, (index) => [{ key: `failover_${index % 7}_` }]);
  await eventually('the load runs', () => load.results.length > 100);
  await eventually('the replica has it', async () => (await replica.command('DBSIZE')) === 7);
  const awayMs = performance.now();
  await master.kill();
  await eventually('the failover', async () => (await group.findMaster()) === replica, 30_000);
  await eventually('it is the master', async () =>
    String(await replica.command('INFO', 'replication')).includes('role:master'),
  );
  const backMs = performance.now();
  const isOkAfter = ({ error, startedMs }: { error: unknown; startedMs: number }) =>
    error === undefined && startedMs > backMs;
  await eventually('OK again', () => load.results.filter(isOkAfter).length > 50);
  const results = await load.stop();
  const firstOkMs = Math.min(...results.filter(isOkAfter).map(({ startedMs }) => startedMs));
  for (const { error, startedMs, tookMs } of results) {
    if (error === undefined) continue;
    t.true(startedMs + tookMs >= awayMs && startedMs <= firstOkMs, error.message);
  }
  t.true(firstOkMs - backMs < 3_000 + load.worstLagMs, `${firstOkMs - backMs} ms`);
  // What the old master had not passed on is lost; nothing is there twice.
  let counted = 0;
  for (let index = 0; index < 7; index++) {
    counted += Number(await replica.command('GET', `failover_${index}_`));
  }
  t.true(counted <= results.length, `${counted} counted, ${results.length} sent`);
  // The old one comes back as a replica and is not counted with.
  await master.restart();
  await eventually(
    'it follows',
    async () => String(await master.command('INFO', 'replication')).includes('role:slave'),
    20_000,
  );
  t.is((await count(store, 'after_')).error, undefined);
  t.is(await replica.command('GET', 'after_'), '1');
});

test.serial('servers and sentinels have credentials of their own', async (t) => {
  const group = await startRedisSentinels({ password: 'open', sentinelPassword: 'watch' });
  t.teardown(group.stop);
  const store = await openRedisStore(group.url, {
    type: 'sentinel',
    auth: 'open',
    sentinelCredentials: parseCredentials('watch'),
  });
  t.teardown(() => store.close(0));
  t.deepEqual((await count(store, 'auth_')).after, [1]);
  // The servers' password is not sent to the sentinels.
  const without = createRecordedRedisStore(group.url, { type: 'sentinel', auth: 'open' });
  t.teardown(() => without.close(0));
  const stopping = new AbortController();
  const connecting = without.connect(stopping.signal);
  await eventually('a warning', () => without.log.lines.length > 0);
  t.regex(without.log.lines[0] ?? '', /sentinel 127\.0\.0\.1:\d+: PING: NOAUTH/);
  t.false(without.log.lines.join().includes('open'));
  stopping.abort();
  await t.throwsAsync(connecting);
});
