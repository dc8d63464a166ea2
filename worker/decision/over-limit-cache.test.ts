import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRegistry } from '../metrics/registry.ts';
import { AgedEntry, OldestFirst } from './oldest-first.ts';
import { bytesPerEntry, createOverLimitCache } from './over-limit-cache.ts';

const createCache = (sizeInBytes: number) => {
  const metrics = createRegistry({ runtimeNamesMax: 0, log: createRecordedLog() });
  const clock = createManualClock();
  const cache = createOverLimitCache(sizeInBytes, metrics, clock);
  if (cache === undefined) throw new Error('there is no cache');
  const limit = { requestsPerUnit: 5, capacity: 5 };
  const add = (key: string, untilMs: number, removalsBefore: number) =>
    cache.add(key, limit, untilMs, removalsBefore);
  const has = (key: string, nowMs: number) => cache.has(key, 5, 5, nowMs);
  const readGauge = (name: string) => {
    metrics.prepareReading();
    return metrics.gauge(`ratelimit.localcache.${name}`).value;
  };
  return { cache, clock, add, has, readGauge };
};

test('a key is known until its window ends', (t) => {
  const { add, has, readGauge } = createCache(1);
  add('k', 60, 0);
  t.true(has('k', 59));
  t.false(has('k', 60));
  t.false(has('k', 59), 'what has expired is gone');
  t.is(readGauge('entryCount'), 0);
  t.is(readGauge('hitCount'), 1);
  t.is(readGauge('missCount'), 2);
  t.is(readGauge('lookupCount'), 3);
  t.is(readGauge('expiredCount'), 1);
});

test('the access time is that of the last lookup; it is 0 before, and while there are no entries', (t) => {
  const { cache, clock, add, has, readGauge } = createCache(1);
  const startSeconds = clock.wallMs() / 1000;
  const lookUp = (key: string) => has(key, clock.monotonicMs());
  add('before', 60_000, 0);
  t.is(readGauge('averageAccessTime'), 0);
  cache.remove('before');
  lookUp('k');
  t.is(readGauge('averageAccessTime'), 0);
  add('k', 60_000, 0);
  clock.advance(3_000);
  t.is(readGauge('averageAccessTime'), startSeconds);
  lookUp('k');
  clock.advance(3_000);
  t.is(readGauge('averageAccessTime'), startSeconds + 3);
  cache.remove('k');
  t.is(readGauge('averageAccessTime'), 0);
});

test('a removed entry does not retain other entries', (t) => {
  class Entry extends AgedEntry<Entry> {}
  const entries = new OldestFirst<Entry>();
  const all = ['a', 'b', 'c'].map((key) => new Entry(key));
  for (const entry of all) entries.add(entry);
  entries.delete(all[1] as Entry);
  t.like(all[1], { older: undefined, newer: undefined });
});

test('a decision that began before its key was removed does not add it again', (t) => {
  const { cache, add, has } = createCache(1);
  const before = cache.removals;
  cache.remove('k');
  cache.remove('other');
  add('k', 60, before);
  t.false(has('k', 0));
  add('kept', 60, before);
  t.true(has('kept', 0), 'other keys are not concerned');
  add('k', 60, cache.removals);
  t.true(has('k', 0), 'what begins later may');
});

test('a bounded number of removed keys is stored, and a forgotten one can only return with a later decision', (t) => {
  const { cache, add, has } = createCache(10_000_000);
  const before = cache.removals;
  for (let index = 0; index < 10_000; index++) cache.remove(`k${index}`);
  add('other', 60, before);
  t.true(has('other', 0), 'every removal is remembered');
  cache.remove('k10000');
  for (const key of ['k0', 'k1', 'another']) {
    add(key, 60, before);
    t.false(has(key, 0), `${key} may be the one that was forgotten`);
  }
  add('another', 60, before + 1);
  t.true(has('another', 0));
});

test('removed keys count towards the size, and are dropped before keys over their limit', (t) => {
  const { cache, add, has, readGauge } = createCache(600_000);
  add('known', 60, 0);
  const before = cache.removals;
  const long = 'k'.repeat(1_000);
  const fitting = Math.floor(600_000 / (bytesPerEntry + 2 * (long.length + 3)));
  // One fewer, for the other keys.
  for (let index = 100; index < 100 + fitting - 1; index++) cache.remove(`${long}${index}`);
  add('other', 60, before);
  t.true(has('other', 0), 'every removal is remembered');
  for (let index = 500; index < 502; index++) cache.remove(`${long}${index}`);
  add('another', 60, before);
  t.false(has('another', 0), 'the oldest was forgotten');
  t.true(has('known', 0));
  t.is(readGauge('evacuateCount'), 0);
});

test('with a size of 0 there is no cache, and there are no gauges', (t) => {
  const metrics = createRegistry({ runtimeNamesMax: 0, log: createRecordedLog() });
  t.is(createOverLimitCache(0, metrics, createManualClock()), undefined);
  t.deepEqual(metrics.gauges, []);
});

test('the oldest keys are dropped when the size is reached, however many are added', (t) => {
  const { add, has, readGauge } = createCache(600_000);
  const key = (index: number) => `domain_key_${String(index).padStart(10, '0')}`;
  for (let index = 0; index < 20_000; index++) add(key(index), 60, 0);
  const entryCount = readGauge('entryCount');
  t.true(entryCount > 1_000 && entryCount < 600_000 / bytesPerEntry, `${entryCount} entries`);
  t.is(readGauge('evacuateCount'), 20_000 - entryCount);
  t.true(has(key(19_999), 0));
  t.false(has(key(0), 0));
});

test('a key that is added again counts once', (t) => {
  const { add, has, readGauge } = createCache(1);
  add('k', 60, 0);
  add('k', 120, 0);
  t.true(has('k', 119));
  t.is(readGauge('entryCount'), 1);
  t.is(readGauge('overwriteCount'), 1);
});

test('an entry only answers for the limit with which it was made, and stays for it', (t) => {
  const { cache, add, has } = createCache(1);
  add('k', 60, 0);
  t.false(cache.has('k', 50, 50, 0), 'a raised limit');
  t.false(cache.has('k', 5, 8, 0), 'another burst');
  t.false(cache.has('k', 8, 5, 0), 'another rate');
  t.true(has('k', 0));
});

test('expired entries are dropped before others, although no caller asks for them again', (t) => {
  const { clock, add, has, readGauge } = createCache(600_000);
  const room = Math.floor(600_000 / (bytesPerEntry + 2 * 8));
  const fill = (prefix: string, untilMs: number, count: number) => {
    for (let index = 0; index < count; index++) {
      add(`${prefix}${String(index).padStart(7, '0')}`, untilMs, 0);
    }
  };
  fill('d', 86_400_000, Math.floor(room / 4));
  for (let minute = 0; minute < 10; minute++) {
    fill(`${minute}`, clock.monotonicMs() + 60_000, Math.floor(room / 3));
    clock.advance(60_000);
  }
  t.is(readGauge('evacuateCount'), 0);
  t.true(has('d0000000', clock.monotonicMs()));
});

test('adding a key takes as long in a full cache as in a small one', (t) => {
  const run = (sizeInBytes: number) => {
    const { add } = createCache(sizeInBytes);
    const key = (index: number) => `domain_key_${String(index).padStart(10, '0')}_1700000000`;
    const filled = Math.ceil(sizeInBytes / bytesPerEntry);
    for (let index = 0; index < filled; index++) add(key(index), 1e9, 0);
    const before = process.cpuUsage();
    for (let index = filled; index < filled + 20_000; index++) add(key(index), 1e9, 0);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 20_000;
  };
  run(1);
  const [small, large] = [run(1), run(32 * 1024 * 1024)];
  // A scan of the whole cache would take thousands; a garbage collection takes some.
  t.true(large < 100 * Math.max(1, small), `${large} us beside ${small} us`);
});
