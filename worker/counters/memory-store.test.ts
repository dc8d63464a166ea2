// Tests times and bounds of the in-process store; its other behaviour is in the contract of counter stores.
import test from 'ava';
import { createHit, type HitOptions, startCounting } from '../../test/support/counting.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { MemoryStore } from './memory-store.ts';
import type { CounterStore, LimiterWindow } from './store.ts';

const count = (store: CounterStore, key: string, windowSeconds: number) =>
  countHit(store, { key, windowSeconds });

async function countHit(store: CounterStore, options: HitOptions) {
  const { request, result } = startCounting([createHit(options)], {
    deadlineMs: Number.POSITIVE_INFINITY,
  });
  store.count(request);
  const { error, after } = await result;
  return error?.message ?? after[0];
}

test('a counter lives for its window, however the wall clock is set', async (t) => {
  const clock = createManualClock();
  const store = new MemoryStore({ clock, log: createRecordedLog() });
  t.is(await count(store, 'a', 10), 1);
  clock.setWall(5_000_000_000_000);
  clock.advance(9_000);
  t.is(await count(store, 'a', 10), 2);
  clock.advance(1_000);
  t.is(store.read('a'), undefined);
  t.is(await count(store, 'a', 10), 1);
});

test('a counter made in the middle of a second of the monotonic clock lives for its whole window', async (t) => {
  const clock = createManualClock();
  const store = new MemoryStore({ clock, log: createRecordedLog() });
  clock.advance(900);
  t.is(await count(store, 'a', 1), 1);
  clock.advance(999);
  t.is(await count(store, 'a', 1), 2);
  clock.advance(1_000);
  t.is(await count(store, 'a', 1), 1);
});

const limiter: LimiterWindow = {
  ...({ algorithm: 'token_bucket', limit: 10, capacity: 10, countsOver: false } as const),
  ...{ windowStart: 0, windowSeconds: 10, isEven: true },
};
const ofDay = { limiter: { ...limiter, windowSeconds: 86_400 }, windowSeconds: 86_400 };
const ofBucket = { key: 'bucket', limit: 10, windowSeconds: 10, limiter };

test('expired counters make room, live ones are never dropped for others', async (t) => {
  const clock = createManualClock();
  const store = new MemoryStore({ clock, log: createRecordedLog(), maxCounters: 3 });
  await count(store, 'long', 100);
  await count(store, 'short1', 5);
  await count(store, 'short2', 5);
  const noRoom = 'in-process counters: there are 3 already, the most that this process keeps';
  t.is(await count(store, 'more', 5), noRoom);
  t.is(await countHit(store, ofBucket), noRoom);
  t.is(await count(store, 'long', 100), 2);
  clock.advance(5_000);
  t.is(await count(store, 'more', 5), 1);
  t.is(await count(store, 'long', 100), 3);
  t.is(store.state().detail, '2 counters in this process');
});

test('the requests of a turn are executed together', (t) => {
  const tasks: (() => void)[] = [];
  const soon = (task: () => void) => void tasks.push(task);
  const store = new MemoryStore({ clock: createManualClock(), log: createRecordedLog(), soon });
  const never = { deadlineMs: Number.POSITIVE_INFINITY };
  for (const key of ['a', 'b'])
    store.count(startCounting([createHit({ key, windowSeconds: 10 })], never).request);
  t.is(tasks.length, 1);
  tasks[0]?.();
  t.deepEqual([store.read('a'), store.read('b')], [1, 1]);
});

test('a very long pause costs no more time than a pause of a second', async (t) => {
  const clock = createManualClock();
  const store = new MemoryStore({ clock, log: createRecordedLog() });
  for (const [key, windowSeconds] of [
    ['a', 1],
    ['b', 100],
    ['c', 1e10],
  ] as const) {
    await count(store, key, windowSeconds);
  }
  // Visiting these seconds one by one would take minutes.
  clock.advance(5e12);
  t.is(await count(store, 'c', 1e10), 2);
  t.is(store.state().detail, '1 counters in this process');
  clock.advance(5e12);
  t.is(await count(store, 'c', 1e10), 1);
  t.is(store.state().detail, '1 counters in this process');
});

test('buckets of a day that fill in a second leave room for new callers all day', async (t) => {
  const clock = createManualClock();
  const store = new MemoryStore({ clock, log: createRecordedLog(), maxCounters: 200 });
  const daily: LimiterWindow = { ...ofDay.limiter, limit: 86_400 };
  for (let second = 0; second < 60; second++) {
    for (let caller = 0; caller < 50; caller++) {
      const key = `caller ${second} ${caller}`;
      t.is(await countHit(store, { ...ofBucket, ...ofDay, key, limiter: daily }), 1);
    }
    clock.advance(1_000);
  }
  const hourly: LimiterWindow = { ...daily, limit: 240 };
  const slow = { ...ofBucket, key: 'slow', windowSeconds: 86_400, limiter: hourly };
  await countHit(store, { ...slow, hits: 10 });
  await countHit(store, { ...slow, hits: 9, refund: true });
  clock.advance(362_000);
  t.is(await count(store, 'any', 1), 1);
  t.is(store.state().detail, '1 counters in this process');
});

test('a counter that limits of several units share lives for the longest of their windows', async (t) => {
  const clock = createManualClock();
  const store = new MemoryStore({ clock, log: createRecordedLog() });
  await count(store, 'a', 10);
  clock.advance(5_000);
  t.is(await count(store, 'a', 100), 2);
  t.is(await count(store, 'a', 10), 3);
  clock.advance(94_000);
  t.is(await count(store, 'a', 10), 4);
  clock.advance(6_000);
  t.is(await count(store, 'a', 10), 1);
});

test('a counter that is created again is not dropped with its predecessor', async (t) => {
  const clock = createManualClock();
  const store = new MemoryStore({ clock, log: createRecordedLog() });
  // More than are dropped in one tick, so that some expired ones remain for a while.
  const keys = Array.from({ length: 25_000 }, (_, index) => `key${index}`);
  await Promise.all(keys.map((key) => count(store, key, 5)));
  clock.advance(6_000);
  t.is(await count(store, 'key1', 60), 1);
  for (let i = 0; i < 5; i++) t.is(await count(store, 'other', 60), i + 1);
  t.is(await count(store, 'key1', 60), 2);
  t.is(store.state().detail, '2 counters in this process');
});

test('long keys use up the room of short ones', async (t) => {
  const clock = createManualClock();
  const store = new MemoryStore({ clock, log: createRecordedLog() });
  // 300 million characters.
  const end = 'x'.repeat(500_000);
  for (let index = 0; index < 600; index++) t.is(await count(store, `k_${index}${end}`, 5), 1);
  t.is(await count(store, `k_0${end}`, 5), 2);
  t.is(store.state().detail, '600 counters in this process');
});

test('with the mode add-unless-over nothing is counted beside a bucket without room', async (t) => {
  const store = new MemoryStore({ clock: createManualClock(), log: createRecordedLog() });
  t.is(await countHit(store, { ...ofBucket, hits: 10 }), 10);
  const { request, result } = startCounting(
    [createHit(ofBucket), createHit({ key: 'window', descriptorIndex: 1 })],
    { mode: 'add-unless-over', deadlineMs: Number.POSITIVE_INFINITY },
  );
  store.count(request);
  await result;
  t.is(await count(store, 'window', 60), 1);
});

test('a bucket that is full again leaves nothing behind', async (t) => {
  const clock = createManualClock();
  const store = new MemoryStore({ clock, log: createRecordedLog(), maxCounters: 2 });
  const countOne = (refund: boolean) => countHit(store, { ...ofBucket, refund });
  await count(store, 'window', 10);
  // More than are dropped in two ticks, made for the second in which the counter above expires.
  for (let pairs = 0; pairs < 10_000; pairs++) {
    await countOne(false);
    await countOne(true);
  }
  t.is(store.state().detail, '1 counters in this process');
  clock.advance(11_000);
  t.is(await count(store, 'a', 10), 1);
  t.is(await count(store, 'b', 10), 1, 'the expired one made room at once');
});
