import test from 'ava';
import { createTimerSeries } from './timer-series.ts';

test('a histogram counts values at or below each bound', (t) => {
  const series = createTimerSeries({ type: 'histogram', buckets: [0.005, 1] }, () => 0);
  for (const value of [0, 0.005, 0.006, 1, 7]) series.observe(value);
  t.deepEqual(series.samples(), [
    { at: 0.005, value: 2 },
    { at: 1, value: 4 },
    { at: Number.POSITIVE_INFINITY, value: 5 },
  ]);
  t.like(series, { count: 5, sum: 8.011 });
});

function createSummary(now: () => number) {
  const quantiles = [0, 0.5, 0.9, 0.99, 1];
  return createTimerSeries({ type: 'summary', quantiles, maxAgeMs: 1000, ageBuckets: 4 }, now);
}

test('a summary has the quantiles of the observations', (t) => {
  const series = createSummary(() => 0);
  for (let value = 100; value >= 1; value--) series.observe(value);
  t.deepEqual(
    series.samples().map(({ at, value }) => `${at}: ${value}`),
    ['0: 1', '0.5: 50', '0.9: 90', '0.99: 99', '1: 100'],
  );
  t.like(series, { count: 100, sum: 5050 });
});

test('a summary drops the oldest observations step by step, but never its sum and count', (t) => {
  let now = 10_000;
  const series = createSummary(() => now);
  const median = () => series.samples()[1]?.value;
  t.is(median(), Number.NaN);
  series.observe(5);
  now += 400;
  series.observe(9);
  series.observe(9);
  t.is(median(), 9);
  now += 800;
  t.is(median(), 9);
  now += 200;
  t.is(median(), Number.NaN);
  series.observe(3);
  t.is(median(), 3);
  now += 1e9;
  t.is(median(), Number.NaN);
  t.like(series, { count: 4, sum: 26 });
});
