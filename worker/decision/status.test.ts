import test from 'ava';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRegistry } from '../metrics/registry.ts';
import type { RuleStats } from '../metrics.ts';
import { codes } from './message.ts';
import { judgeHits, judgeKnownOver, judgeRefund, nearThreshold } from './status.ts';

function createStats(): RuleStats {
  return createRegistry({ runtimeNamesMax: 0, log: createRecordedLog() }).ruleStats('d.k', true);
}
const read = (stats: RuleStats) => ({
  near: stats.nearLimit.value,
  over: stats.overLimit.value,
  within: stats.withinLimit.value,
  shadow: stats.shadowMode.value,
});

test('near_limit begins at the 32-bit product of limit and ratio, rounded down', (t) => {
  t.is(nearThreshold(10, 0.8), 8);
  t.is(nearThreshold(90, 0.7), 63, 'as 64-bit numbers, 0.7 of 90 is below 63');
  t.is(nearThreshold(0, 0.8), 0);
  t.is(
    nearThreshold(4_294_967_295, 1),
    4_294_967_295,
    'the nearest 32-bit float is above the limit',
  );
  t.is(nearThreshold(10, 80), 10);
});

/** [hits before, hits] and the resulting counts, for a limit of 10 with 8 as the near threshold. */
const crossings: readonly [string, number, number, Partial<ReturnType<typeof read>>][] = [
  ['well within', 0, 5, { within: 5 }],
  ['up to the near threshold', 3, 5, { within: 5 }],
  ['across the near threshold', 7, 2, { within: 2, near: 1 }],
  ['between near threshold and limit', 8, 2, { within: 2, near: 2 }],
  ['across both', 5, 8, { over: 3, near: 2 }],
  ['from near across the limit', 9, 4, { over: 3, near: 1 }],
  ['from the limit on', 10, 3, { over: 3 }],
  ['far over', 20, 3, { over: 3 }],
  ['nothing, at the limit', 10, 0, { within: 0 }],
];
for (const [title, before, hits, expected] of crossings) {
  test(`hits ${title} are counted on their side of the threshold`, (t) => {
    const stats = createStats();
    judgeHits(before + hits, hits, 10, 0.8, false, stats);
    t.deepEqual(read(stats), { near: 0, over: 0, within: 0, shadow: 0, ...expected });
  });
}

test('hits that were not counted because of others are treated as above every threshold', (t) => {
  const within = createStats();
  judgeHits(9, 20, 10, 0.8, false, within);
  t.deepEqual(read(within), { near: 20, over: 0, within: 20, shadow: 0 });
  const over = createStats();
  judgeHits(12, 20, 10, 0.8, false, over);
  t.deepEqual(read(over), { near: 0, over: 20, within: 0, shadow: 0 });
});

test('remaining is the rest of the limit, and 0 when it is exceeded', (t) => {
  t.deepEqual(judgeHits(4, 1, 10, 0.8, false, createStats()), { code: codes.ok, remaining: 6 });
  t.deepEqual(judgeHits(11, 1, 10, 0.8, false, createStats()), {
    code: codes.overLimit,
    remaining: 0,
  });
});

test('a limit of 0 rejects the first hit and admits a peek', (t) => {
  t.is(judgeHits(1, 1, 0, 0.8, false, createStats()).code, codes.overLimit);
  t.is(judgeHits(0, 0, 0, 0.8, false, createStats()).code, codes.ok);
});

test('shadow mode admits hits over the limit, and counts only the part that was over', (t) => {
  const stats = createStats();
  t.deepEqual(judgeHits(13, 8, 10, 0.8, true, stats), { code: codes.ok, remaining: 0 });
  t.deepEqual(read(stats), { near: 2, over: 3, within: 0, shadow: 3 });
});

test('a counter over its limit in the local cache counts all its hits as over', (t) => {
  const stats = createStats();
  t.deepEqual(judgeKnownOver(4, false, stats), { code: codes.overLimit, remaining: 0 });
  t.is(stats.overLimitWithLocalCache.value, 4);
  t.is(judgeKnownOver(1, true, stats).code, codes.ok);
  t.deepEqual(read(stats), { near: 0, over: 5, within: 0, shadow: 1 });
});

test('a refund is admitted, even if the counter stays above the limit', (t) => {
  t.deepEqual(judgeRefund(15, 10), { code: codes.ok, remaining: 0 });
  t.deepEqual(judgeRefund(4, 10), { code: codes.ok, remaining: 6 });
});
