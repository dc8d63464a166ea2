import test from 'ava';
import { createHistogram } from './histogram.ts';

test('quantiles are exact up to 512 microseconds, and to 0.4 % above', (t) => {
  const histogram = createHistogram();
  for (let us = 1; us <= 100; us++) histogram.add(us);
  t.is(histogram.quantile(0.5), 51);
  t.is(histogram.quantile(0.99), 100);
  for (const us of [513, 4_321, 87_654, 1_234_567, 20_000_000]) {
    const one = createHistogram();
    one.add(us);
    one.add(us * 2);
    const low = one.quantile(0);
    t.true(low >= us && low <= us * 1.004, `${us}: ${low}`);
    t.is(one.quantile(0.9), us * 2);
  }
});

test('an empty histogram has no quantiles, and a clock that goes backwards counts as 0', (t) => {
  const histogram = createHistogram();
  t.is(histogram.quantile(0.5), Number.NaN);
  histogram.add(-3);
  t.is(histogram.quantile(0.5), 0);
  t.is(histogram.count, 1);
});
