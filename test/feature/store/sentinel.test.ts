// Tests Redis behind sentinels: the master is found and followed through a failover under load, and nothing is counted
// twice.
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { Leases } from '../../../worker/counters/leases.ts';
import { parseCredentials } from '../../../worker/counters/redis/credentials.ts';
import { createRegistry } from '../../../worker/metrics/registry.ts';
import { countOn, createHit, startCounting } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { checkFailover, isOver, readReplicated } from '../../support/failover-check.ts';
import { ownedByFile } from '../../support/owner.ts';
import { startRedisSentinels } from '../../support/redis-sentinel.ts';
import {
  createRecordedRedisStore,
  openRedisStore,
  type RecordedRedisStore,
} from '../../support/redis-store.ts';
import { startSteadyLoad } from '../../support/steady-load.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

/** Longer than any machine stalls; a lost master refuses, so nothing waits for it. */
const timeoutMs = 10_000;
/** Longer than every test. */
const lease = { share: 0.05, forMs: 600_000 };

async function count(store: RecordedRedisStore, key: string) {
  return countOn(store, [createHit({ key })]);
}

/** For the tests without a failover. */
const healthy = startRedisSentinels(ownedByFile(test));

test.serial('a name that the sentinels do not know is reported', async (t) => {
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
  const store = await openRedisStore(t, group.url, { type: 'sentinel' });
  t.deepEqual((await count(store, 'found_')).after, [1]);
  t.is(await group.servers[0].command('GET', 'found_'), '1');
  t.regex(store.state().detail, /^connected to main of sentinels 127\.0\.0\.1:\d+,/);
});

test.serial('a failover under load: errors only in the gap, nothing counted twice', async (t) => {
  t.timeout(300_000);
  const group = await startRedisSentinels(t);
  const store = await openRedisStore(t, group.url, { type: 'sentinel', size: 3, timeoutMs });
  const [master, replica] = group.servers;
  const keys = Array.from({ length: 7 }, (_, index) => `failover_${index}_`);
  const keyOf = (index: number) => keys[index % keys.length] ?? '';
  const read = async (key: string) => Number(await replica.command('GET', key));
  const load = startSteadyLoad(store, timeoutMs, (index) => [{ key: keyOf(index) }]);
  await eventually('the load runs', () => load.results.length > 500);
  const replicated = await readReplicated(master, replica, keys);
  const announcement = group.announcement().then(() => performance.now());
  const awayMs = performance.now();
  // So that it dies with unanswered hits.
  await master.pause();
  await eventually('some are in flight', () => load.open > 10);
  await master.kill();
  const goneMs = performance.now();
  // Only now, so that no server is replaced because a busy machine delays it.
  await group.setDownAfter(500);
  const failover = { awayMs, goneMs, announcedMs: await announcement };
  await group.setDownAfter();
  const counters = { keyOf, replicated, read };
  await eventually('OK again', () => isOver(load, failover, counters));
  await load.stop();
  await checkFailover(t, load, failover, counters);
  // The old master returns as a replica and does not count.
  await master.restart();
  const readRole = async () => String(await master.command('INFO', 'replication'));
  await eventually(
    'it follows',
    // The sentinels end all its connections when they reconfigure it.
    async () => (await readRole().catch(() => '')).includes('role:slave'),
    90_000,
  );
  t.is((await count(store, 'after_')).error, undefined);
  t.is(await replica.command('GET', 'after_'), '1');
});

test.serial('leases outlive a failover: exactly the limit of hits is admitted', async (t) => {
  t.timeout(300_000);
  const group = await startRedisSentinels(t);
  const store = await openRedisStore(t, group.url, { type: 'sentinel', timeoutMs });
  const [master, replica] = group.servers;
  const metrics = createRegistry({ runtimeNamesMax: 1, log: store.log });
  const workers = [0, 1].map(() => new Leases({ store, clock: systemClock, metrics }));
  t.teardown(() => workers.forEach((worker) => void worker.close()));
  /** How many of these hits are admitted. */
  const ask = async (hits: number) => {
    let admitted = 0;
    for (let index = 0; index < hits; index++) {
      const hit = createHit({ key: 'leased_', limit: 1_000, lease });
      const { request, result } = startCounting([hit]);
      workers[index % 2]?.count(request);
      const { error } = await result;
      if (error === undefined && hit.after <= 1_000) admitted++;
    }
    return admitted;
  };
  t.is(await ask(300), 300);
  const replicated = await readReplicated(master, replica, ['leased_']);
  t.true(Number(replicated.get('leased_')) > 300, 'hits are leased');
  const announcement = group.announcement();
  await master.kill();
  const without = await ask(200);
  t.true(without > 0, 'what is leased is answered without a master');
  await group.setDownAfter(500);
  await announcement;
  await group.setDownAfter();
  let admitted = 300 + without;
  await eventually('the store answers', async () => {
    admitted += await ask(2);
    const { error } = await count(store, 'again_');
    return error === undefined;
  });
  t.is(admitted + (await ask(1_300)), 1_000);
});

test.serial('servers and sentinels have credentials of their own', async (t) => {
  const group = await startRedisSentinels(t, { password: 'open', sentinelPassword: 'watch' });
  const store = await openRedisStore(t, group.url, {
    type: 'sentinel',
    auth: 'open',
    sentinelCredentials: parseCredentials('watch'),
  });
  t.deepEqual((await count(store, 'auth_')).after, [1]);
  // Without their own credentials the sentinels get none: the servers' password is not for them.
  let received = '';
  const [sentinel] = group.sentinels;
  const proxy = await startTcpProxy(t, sentinel?.port ?? 0, {
    onRequest: (chunk) => {
      received += chunk.toString('latin1');
    },
  });
  const url = `main,127.0.0.1:${proxy.port}`;
  const without = createRecordedRedisStore(url, { type: 'sentinel', auth: 'open' });
  t.teardown(() => without.close(0));
  const stopping = new AbortController();
  const connecting = without.connect(stopping.signal);
  await eventually('a warning', () => without.log.lines.length > 0);
  t.regex(
    without.log.lines[0] ?? '',
    /sentinel 127\.0\.0\.1:\d+: PING: NOAUTH .* \(write the password, or user:password, of the sentinels in KVSTORE_SENTINEL_AUTH\)/,
  );
  t.false(without.log.lines.join().includes('open'));
  t.regex(received, /ping/i);
  t.notRegex(received, /auth|open/i);
  stopping.abort();
  await t.throwsAsync(connecting);
});
