// Tests a Redis cluster under load while slots move and a master is lost: errors only in the gap, and no hit counted
// twice.
import test from 'ava';
import { countOn, createHit } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { checkFailover, isOver, readReplicated } from '../../support/failover-check.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import {
  createRecordedRedisStore,
  openRedisStore,
  type RecordedRedisStore,
} from '../../support/redis-store.ts';
import { loadPerSecond, startSteadyLoad } from '../../support/steady-load.ts';

/** Longer than any machine stalls; lost calls are refused, so nothing waits for it. */
const timeoutMs = 10_000;
/** Keys that share a slot, some of them with names that need more than ASCII. */
const keysOf = (tag: string) => ['a', 'b', 'ü', '計'].map((name) => `{${tag}}${name}_`);

async function count(store: RecordedRedisStore, keys: readonly string[], refund = false) {
  return countOn(
    store,
    keys.map((key) => createHit({ key, refund })),
  );
}

// Proof of migrating.md: A decision on a cluster is one batch for each node
test.serial('a request over several nodes is counted on each', async (t) => {
  const cluster = await startRedisCluster(t);
  const store = await openRedisStore(t, cluster.url.split(',')[0] ?? '', {
    type: 'cluster',
    size: 2,
  });
  const keys = Array.from({ length: 20 }, (_, index) => `spread_ü${index}_`);
  await eventually('every master', () => store.connections.active === 6);
  t.deepEqual(
    (await count(store, keys)).after,
    keys.map(() => 1),
  );
  for (const key of keys)
    t.is(await (await cluster.ownerOf(await cluster.slotOf(key))).command('GET', key), '1');
  t.regex(store.state().detail, /^connected to cluster .* \(6 connections to 3 of 3 masters\)/);
  t.is(store.connections.total, 6);
});

test.serial('slots that move under load cost no decision and no hit', async (t) => {
  const cluster = await startRedisCluster(t);
  const store = await openRedisStore(t, cluster.url, { type: 'cluster', timeoutMs: 20_000 });
  const tags = ['one', 'two', 'three'];
  const keys = tags.flatMap(keysOf);
  const load = startSteadyLoad(store, 20_000, (index) => [
    { key: keys[index % keys.length] ?? '' },
    { key: keys[(index * 5 + 3) % keys.length] ?? '', refund: index % 10 === 9, hits: 1 },
  ]);
  await eventually('the load runs', () => load.results.length > 200);
  let moves = 0;
  for (let round = 0; round < 6; round++) {
    for (const tag of tags) {
      const slot = await cluster.slotOf(`{${tag}}`);
      const owner = await cluster.ownerOf(slot);
      const next = cluster.masters[(cluster.masters.indexOf(owner) + 1) % 3];
      if (next === undefined) throw new Error('no other master');
      const before = load.results.length;
      moves++;
      await cluster.moveSlot(slot, next, () =>
        eventually('counting while the slot is open', () => load.results.length > before + 20),
      );
    }
  }
  const results = await load.stop();
  t.deepEqual(
    results.flatMap(({ error }) => error?.message ?? []),
    [],
  );
  // Counters that lost and gained nothing: their values are those that were answered.
  const expected = new Map<string, number>();
  for (let index = 0; index < results.length; index++) {
    const add = (key: string, hits: number) => expected.set(key, (expected.get(key) ?? 0) + hits);
    add(keys[index % keys.length] ?? '', 1);
    add(keys[(index * 5 + 3) % keys.length] ?? '', index % 10 === 9 ? -1 : 1);
  }
  for (const [key, hits] of expected) t.is(Number(await cluster.read(key)), hits, key);
  t.log(
    `${results.length} sent at ${loadPerSecond}/s over ${moves} moves of a slot, none failed; ` +
      `slowest ${Math.round(Math.max(...results.map(({ tookMs }) => tookMs)))} ms, ` +
      `worst lag of the test ${Math.round(load.worstLagMs)} ms`,
  );
  for (const key of keys) {
    const owner = await cluster.ownerOf(await cluster.slotOf(key));
    t.true(Number(await owner.command('TTL', key)) > 0, `${key} has no lifetime`);
  }
});

test.serial('a lost master: errors only for its slots, until its replica serves', async (t) => {
  t.timeout(240_000);
  const cluster = await startRedisCluster(t, { replica: true });
  const store = await openRedisStore(t, cluster.url, { type: 'cluster', timeoutMs, size: 2 });
  const [lost] = cluster.masters;
  const { replica } = cluster;
  if (lost === undefined || replica === undefined) throw new Error('no such node');
  const ofLost: string[] = [];
  const ofOthers: string[] = [];
  for (let index = 0; index < 40; index++) {
    const key = `fail_${index}_`;
    const owner = await cluster.ownerOf(await cluster.slotOf(key));
    (owner === lost ? ofLost : ofOthers).push(key);
  }
  const readCounter = async (key: string) => Number(await cluster.read(key));
  const keyOf = (keys: readonly string[]) => (index: number) => keys[index % keys.length] ?? '';
  const startLoad = (keys: readonly string[]) =>
    startSteadyLoad(store, timeoutMs, (index) => [{ key: keyOf(keys)(index) }]);
  const [safe, struck] = [startLoad(ofOthers), startLoad(ofLost)];
  await eventually('the load runs', () => struck.results.length > 500);
  const replicated = await readReplicated(lost, replica, ofLost);
  const counters = { keyOf: keyOf(ofLost), replicated, read: readCounter };
  const awayMs = performance.now();
  // So that it dies with unanswered hits.
  await lost.pause();
  await eventually('some are in flight', () => struck.open > 10);
  await lost.kill();
  const goneMs = performance.now();
  // Only now, so that no node is replaced because a busy machine delays it.
  const left = [...cluster.masters.slice(1), replica];
  await cluster.setNodeTimeout(1_000, left);
  await eventually('the heir is known', () => isNamed(replica), 60_000);
  const failover = { awayMs, goneMs, announcedMs: performance.now() };
  await cluster.setNodeTimeout(cluster.nodeTimeoutMs, left);
  await eventually('OK again', () => isOver(struck, failover, counters));
  await Promise.all([safe.stop(), struck.stop()]);
  await checkFailover(t, struck, failover, counters);
  // The others refuse, and report it before they count, while the cluster has no successor.
  const refused = safe.results.filter(({ error }) => error !== undefined);
  for (const { error, startedMs, tookMs } of refused) {
    t.regex(error?.message ?? '', /: CLUSTERDOWN /);
    const lateMs = startedMs + tookMs - failover.announcedMs;
    t.true(startedMs >= awayMs && lateMs < 30_000 + safe.worstLagMs, `${lateMs} ms`);
  }
  t.log(`${refused.length} of ${safe.results.length} refused on the other masters`);
  for (const key of ofOthers) {
    const ofKey = safe.results.filter(({ index }) => keyOf(ofOthers)(index) === key);
    const answered = ofKey.filter(({ error }) => error === undefined).length;
    t.is(await readCounter(key), answered, key);
  }
});

/** Whether it reports itself that it serves slots. */
async function isNamed(node: RedisServer): Promise<boolean> {
  const ranges = (await node.command('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
  return ranges.some(([, , [, port]]) => port === node.port);
}

test.serial('a server that is no cluster is reported as such', async (t) => {
  const redis = await startRedisServer(t);
  const store = createRecordedRedisStore(redis.url, { type: 'cluster' });
  t.teardown(() => store.close(0));
  const stopping = new AbortController();
  const connecting = store.connect(stopping.signal);
  await eventually('a warning', () => store.log.lines.length > 0);
  t.regex(store.log.lines[0] ?? '', /cluster support disabled/);
  stopping.abort();
  await t.throwsAsync(connecting);
});

test.serial('a slot that no node serves fails only the decisions on it', async (t) => {
  const cluster = await startRedisCluster(t);
  const slot = await cluster.slotOf('{gap}');
  for (const node of cluster.masters) {
    await node.command('CONFIG', 'SET', 'cluster-require-full-coverage', 'no');
    await node.command('CLUSTER', 'DELSLOTS', slot);
  }
  const store = await openRedisStore(t, cluster.url, { type: 'cluster' });
  t.regex((await count(store, ['{gap}a_'])).error?.message ?? '', /no node serves slot \d+$/);
  t.regex((await count(store, ['other_', '{gap}a_'])).error?.message ?? '', /no node serves slot/);
  t.is(await cluster.read('other_'), undefined);
  t.is((await count(store, ['other_'])).error, undefined);
  const [first] = cluster.masters;
  // A node with an older view may have given it back to its previous owner.
  await eventually('a node takes it', async () => {
    await first?.command('CLUSTER', 'DELSLOTS', slot).catch(() => undefined);
    const added = await first?.command('CLUSTER', 'ADDSLOTS', slot).catch(() => undefined);
    return added === 'OK';
  });
  await eventually(
    'it is served',
    async () => (await count(store, ['{gap}a_'])).error === undefined,
  );
});

test.serial('a counter that is recreated while its slot moves gets a lifetime', async (t) => {
  const cluster = await startRedisCluster(t);
  const store = await openRedisStore(t, cluster.url, { type: 'cluster' });
  const key = '{anew}_';
  // From now on the worker considers the lifetime known.
  await count(store, [key]);
  const slot = await cluster.slotOf(key);
  const owner = await cluster.ownerOf(slot);
  const next = cluster.masters.find((node) => node !== owner) ?? owner;
  await owner.command('DEL', key);
  await cluster.moveSlot(slot, next, async () => {
    t.deepEqual((await count(store, [key])).after, [1]);
  });
  t.is(await next.command('GET', key), '1');
  await eventually('a lifetime', async () => Number(await next.command('TTL', key)) > 0);
});
