import test from 'ava';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRegistry } from '../metrics/registry.ts';
import { createOverLimitCache } from './over-limit-cache.ts';

const createCache = (sizeInBytes: number) => {
  const metrics = createRegistry({ runtimeNamesMax: 0, log: createRecordedLog() });
  const cache = createOverLimitCache(sizeInBytes, metrics);
  if (cache === undefined) throw new Error('there is no cache');
  const readGauge = (name: string) => {
    metrics.prepareReading();
    return metrics.gauge(`ratelimit.localcache.${name}`).value;
  };
  return { cache, readGauge };
};

test('a key is known until its window ends', (t) => {
  const { cache, readGauge } = createCache(1);
  cache.add('k', 60, 0);
  t.true(cache.has('k', 59));
  t.false(cache.has('k', 60));
  t.false(cache.has('k', 59), 'what has expired is gone');
  t.is(readGauge('entryCount'), 0);
  t.is(readGauge('hitCount'), 1);
  t.is(readGauge('missCount'), 2);
  t.is(readGauge('lookupCount'), 3);
  t.is(readGauge('expiredCount'), 1);
});

test('the access time is that of the last lookup, and 0 before it and while there are no entries', (t) => {
  const { cache, readGauge } = createCache(1);
  cache.add('before', 1_700_000_000, 0);
  t.is(readGauge('averageAccessTime'), 0);
  cache.remove('before');
  cache.has('k', 1_700_000_000);
  t.is(readGauge('averageAccessTime'), 0);
  cache.add('k', 1_700_000_060, 0);
  t.is(readGauge('averageAccessTime'), 1_700_000_000);
  cache.has('k', 1_700_000_007);
  t.is(readGauge('averageAccessTime'), 1_700_000_007);
  cache.remove('k');
  t.is(readGauge('averageAccessTime'), 0);
});

test('a removed key is asked for again', (t) => {
  const { cache } = createCache(1);
  cache.add('k', 60, 0);
  cache.remove('k');
  cache.remove('never there');
  t.false(cache.has('k', 0));
});

test('a decision that began before its key was removed does not bring it back', (t) => {
  const { cache } = createCache(1);
  const before = cache.removals;
  cache.remove('k');
  cache.remove('other');
  cache.add('k', 60, before);
  t.false(cache.has('k', 0));
  cache.add('kept', 60, before);
  t.true(cache.has('kept', 0), 'other keys are not concerned');
  cache.add('k', 60, cache.removals);
  t.true(cache.has('k', 0), 'what begins later may');
});

test('removed keys are remembered in bounded number, and one that is not comes back with a later decision', (t) => {
  const { cache } = createCache(10_000_000);
  const before = cache.removals;
  for (let index = 0; index < 10_000; index++) cache.remove(`k${index}`);
  cache.add('other', 60, before);
  t.true(cache.has('other', 0), 'every removal is remembered');
  cache.remove('k10000');
  for (const key of ['k0', 'k1', 'another']) {
    cache.add(key, 60, before);
    t.false(cache.has(key, 0), `${key} may be the one that was forgotten`);
  }
  cache.add('another', 60, before + 1);
  t.true(cache.has('another', 0));
});

test('removed keys count towards the size, and make room before those that are over their limit', (t) => {
  const { cache, readGauge } = createCache(600_000);
  cache.add('known', 60, 0);
  const before = cache.removals;
  const long = 'k'.repeat(1_000);
  const fitting = Math.floor(600_000 / (96 + 2 * (long.length + 3)));
  // One fewer, for the keys beside them.
  for (let index = 100; index < 100 + fitting - 1; index++) cache.remove(`${long}${index}`);
  cache.add('other', 60, before);
  t.true(cache.has('other', 0), 'every removal is remembered');
  for (let index = 500; index < 502; index++) cache.remove(`${long}${index}`);
  cache.add('another', 60, before);
  t.false(cache.has('another', 0), 'the oldest was forgotten');
  t.true(cache.has('known', 0));
  t.is(readGauge('evacuateCount'), 0);
});

test('with a size of 0 there is no cache, and no gauges of one', (t) => {
  const metrics = createRegistry({ runtimeNamesMax: 0, log: createRecordedLog() });
  t.is(createOverLimitCache(0, metrics), undefined);
  t.deepEqual(metrics.gauges, []);
});

test('the oldest keys make room when the size is reached, however many are added', (t) => {
  const { cache, readGauge } = createCache(600_000);
  const key = (index: number) => `domain_key_${String(index).padStart(10, '0')}`;
  for (let index = 0; index < 20_000; index++) cache.add(key(index), 60, 0);
  const entryCount = readGauge('entryCount');
  t.true(entryCount > 1_000 && entryCount < 600_000 / 96, `${entryCount} entries`);
  t.is(readGauge('evacuateCount'), 20_000 - entryCount);
  t.true(cache.has(key(19_999), 0));
  t.false(cache.has(key(0), 0));
});

test('a key that is added again counts once', (t) => {
  const { cache, readGauge } = createCache(1);
  cache.add('k', 60, 0);
  cache.add('k', 120, 0);
  t.true(cache.has('k', 119));
  t.is(readGauge('entryCount'), 1);
  t.is(readGauge('overwriteCount'), 1);
});
