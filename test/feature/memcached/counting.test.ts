// Tests the content of a memory cache after decisions: lifetimes, sums, foreign values, the choice of nodes, and the
// related statistics.
import test, { type ExecutionContext } from 'ava';
import type { CounterStore } from '../../../worker/counters/store.ts';
import { countOn, createHit, type HitOptions } from '../../support/counting.ts';
import { type MemcachedServer, startMemcachedServer } from '../../support/memcached-server.ts';
import {
  openMemcachedStore,
  type RecordedMemcachedStore,
  type RecordedMemcachedStoreOptions,
} from '../../support/memcached-store.ts';
import { ownedByFile } from '../../support/owner.ts';

/** For tests with their own keys that do not read the server's statistics. */
const shared = startMemcachedServer(ownedByFile(test));

async function setUp(
  t: ExecutionContext,
  options: RecordedMemcachedStoreOptions = {},
): Promise<{ memcached: MemcachedServer; store: RecordedMemcachedStore }> {
  const memcached = await shared;
  const store = await openMemcachedStore(t, { urls: [memcached.url], ...options });
  return { memcached, store };
}

function count(store: CounterStore, ...hits: HitOptions[]) {
  return countOn(store, hits.map(createHit));
}

const month = 2_592_000;

test('a counter lives for its window and the jitter', async (t) => {
  const { memcached, store } = await setUp(t);
  for (let index = 0; index < 20; index++) {
    await count(store, { key: `jitter_${index}`, windowSeconds: 1000 });
  }
  await store.settled();
  const lifetimes = new Set<number>();
  for (let index = 0; index < 20; index++) {
    const seconds = (await memcached.secondsToLive(`jitter_${index}`)) ?? 0;
    // The server's clock ticks once a second, and the test takes some seconds.
    t.true(seconds > 980 && seconds <= 1301, `${seconds} s`);
    lifetimes.add(Math.round(seconds / 10));
  }
  t.true(lifetimes.size > 3, 'lifetimes differ');
});

for (const windowSeconds of [month - 100, month, month + 1, 31_536_000]) {
  // Proof of migrating.md: Counters of a month and more live that long in a memory cache
  test(`a counter lives for ${windowSeconds} s, on either side of 30 days`, async (t) => {
    const { memcached, store } = await setUp(t, { jitterMaxSeconds: 0 });
    const key = `lives_${windowSeconds}_`;
    await count(store, { key, hits: 2, windowSeconds });
    await store.settled();
    const seconds = (await memcached.secondsToLive(key)) ?? 0;
    t.true(Math.abs(seconds - windowSeconds) <= 20, `${seconds} s`);
    t.deepEqual((await count(store, { key, windowSeconds })).after, [3]);
  });
}

// Proof of migrating.md: A counter in a memory cache lives for a second more than its window and the jitter
test('a counter outlives its window by a second, since the server does not count parts of one', async (t) => {
  const { memcached, store } = await setUp(t, { jitterMaxSeconds: 0 });
  const lifetimes: number[] = [];
  for (let index = 0; index < 5; index++) {
    await count(store, { key: `window_${index}`, windowSeconds: 500 });
    await store.settled();
    lifetimes.push((await memcached.secondsToLive(`window_${index}`)) ?? 0);
  }
  // The longest, because the test may stall at any time.
  t.is(Math.max(...lifetimes), 501);
});

test('later hits of windows that are no longer leave the lifetime unchanged', async (t) => {
  const { memcached, store } = await setUp(t, { jitterMaxSeconds: 0 });
  await count(store, { key: 'kept_', windowSeconds: 500 });
  await store.settled();
  await count(store, { key: 'kept_', windowSeconds: 400 });
  await count(store, { key: 'kept_', refund: true, windowSeconds: 400 });
  await store.settled();
  t.true(((await memcached.secondsToLive('kept_')) ?? 1e9) <= 502);
});

test('more keys than fit into one command are all read', async (t) => {
  const { store } = await setUp(t, { maxIdleConnections: 1 });
  const keys = Array.from({ length: 150 }, (_, index) => `many_${index}`);
  for (const hits of [1, 2]) {
    const results = await Promise.all(keys.map((key) => count(store, { key })));
    t.true(results.every(({ after }) => after[0] === hits));
  }
});

test('the hits of other workers count', async (t) => {
  const { memcached, store } = await setUp(t);
  const other = await openMemcachedStore(t, { urls: [memcached.url] });
  // Both find no counter, and both try to create it.
  await Promise.all([
    ...Array.from({ length: 50 }, (_, index) => count(store, { key: `both_${index}` })),
    ...Array.from({ length: 50 }, (_, index) => count(other, { key: `both_${index}`, hits: 2 })),
  ]);
  await Promise.all([store.settled(), other.settled()]);
  for (let index = 0; index < 50; index++) t.is(await memcached.get(`both_${index}`), '3');
  t.deepEqual((await count(store, { key: 'both_0' })).after, [4]);
});

// Proof of migrating.md: A worker sees its own hits in a memory cache at once, and one after the other
test('one worker sees its own hits, although they are added in the background', async (t) => {
  const { store } = await setUp(t);
  for (let hits = 1; hits <= 200; hits++) {
    const { after } = await count(store, { key: 'own_' });
    if (after[0] !== hits) t.is(after[0], hits);
  }
  t.pass();
});

test('a refunded counter that loses a digit is read correctly', async (t) => {
  const { memcached, store } = await setUp(t);
  await memcached.set('digits_', '10');
  t.deepEqual((await count(store, { key: 'digits_', hits: 1, refund: true })).after, [9]);
  await store.settled();
  t.deepEqual((await count(store, { key: 'digits_' })).after, [10]);
  await store.settled();
  t.is(await memcached.get('digits_'), '10');
});

test('a value that is not a counter counts as 0 and is logged', async (t) => {
  const { memcached, store } = await setUp(t);
  await memcached.set('foreign_', 'something else');
  await memcached.set('overlong_', 'x'.repeat(100_000));
  t.deepEqual(
    (await count(store, { key: 'foreign_', hits: 3 }, { key: 'overlong_' })).after,
    [3, 1],
  );
  await store.settled();
  t.is(await memcached.get('foreign_'), 'something else');
  t.true(
    store.log.lines.some((line) =>
      /the value of "(foreign|overlong)_" is not a counter/.test(line),
    ),
    store.log.lines.join('\n'),
  );
  t.is(store.metrics.counter('ratelimit.memcache.increment.__code=error').value, 2);
});

test('a key that the protocol cannot represent fails only its own request', async (t) => {
  const { memcached, store } = await setUp(t);
  const [bad, good] = await Promise.all([
    count(store, { key: 'fine_' }, { key: 'x'.repeat(251), descriptorIndex: 4 }),
    count(store, { key: 'fine_' }),
  ]);
  t.is(bad.error?.code, 'bad_request');
  t.regex(bad.error?.message ?? '', /^descriptors\[4\]: its counter key has 251 bytes/);
  t.deepEqual(good.after, [1]);
  const injected = await count(store, { key: 'a\r\nset owned 0 0 1\r\n1' });
  t.is(injected.error?.code, 'bad_request');
  await store.settled();
  t.is(await memcached.get('fine_'), '1');
  t.is(await memcached.get('owned'), undefined);
});

test('calls are counted by their outcome', async (t) => {
  const { memcached, store } = await setUp(t);
  await memcached.set('old_', '5');
  await count(store, { key: 'old_' }, { key: 'new_' });
  await store.settled();
  await count(store, { key: 'new_' });
  await store.settled();
  const values = Object.fromEntries(store.metrics.snapshot());
  t.deepEqual(values, {
    'ratelimit.memcache.add.__code=success': 1,
    'ratelimit.memcache.increment.__code=miss': 1,
    'ratelimit.memcache.increment.__code=success': 2,
    'ratelimit.memcache.keys_found': 2,
    'ratelimit.memcache.keys_requested': 3,
    'ratelimit.memcache.multiget.__code=success': 2,
  });
});

// Proof of migrating.md: `MEMSTORE_MAX_IDLE_CONNS` bounds the connections to a node
test('no more connections are opened than are kept', async (t) => {
  const memcached = await startMemcachedServer(t);
  const readTotal = async () => (await memcached.stats()).get('total_connections') ?? 0;
  const before = await readTotal();
  const { store } = await setUp(t, { urls: [memcached.url], maxIdleConnections: 3 });
  for (let round = 0; round < 5; round++) {
    await Promise.all(
      Array.from({ length: 50 }, (_, index) => count(store, { key: `idle_${round}_${index}` })),
    );
  }
  await store.settled();
  // One more is the one that queries the statistics.
  t.is((await readTotal()) - before, 3 + 1);
});

test('a counter that limits of several units share lives for the longest of their windows', async (t) => {
  const { memcached, store } = await setUp(t, { jitterMaxSeconds: 0 });
  const other = await openMemcachedStore(t, { urls: [memcached.url], jitterMaxSeconds: 0 });
  for (const [by, windowSeconds] of [
    [store, 3_600],
    [other, 86_400],
    [store, 60],
  ] as const) {
    await count(by, { key: 'units', windowSeconds });
    await by.settled();
  }
  const seconds = (await memcached.secondsToLive('units')) ?? 0;
  t.true(Math.abs(seconds - 86_400) <= 20, `${seconds} s`);
});

test('MEMSTORE_LONG_KEYS=hash: keys that a node does not take are counted apart, beside others', async (t) => {
  const { store } = await setUp(t, { longKeys: 'hash' });
  const keys = ['hashed with a blank', `hashed_${'x'.repeat(300)}`, `hashed_${'x'.repeat(3_000)}`];
  for (const round of [1, 2]) {
    const { error, after } = await count(store, ...keys.map((key) => ({ key })), {
      key: 'hashed_short',
    });
    t.is(error, undefined);
    t.deepEqual(after, [round, round, round, round]);
    await store.settled();
  }
});
