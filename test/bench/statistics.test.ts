import test from 'ava';
import { median, medianRatio, spread } from './statistics.ts';

test('a median is the middle value, or the mean of the two middle ones', (t) => {
  t.is(median([9, 1, 5]), 5);
  t.is(median([9, 1, 5, 6]), 5.5);
  t.is(median([]), Number.NaN);
  t.is(median([1, Number.NaN, 2]), Number.NaN);
});

test('the spread is half the range, relative to the median', (t) => {
  t.is(spread([8, 10, 12]), 0.2);
});

test('ratios are taken within a round, so that a slow round has no effect', (t) => {
  const ours = new Map([
    [0, 2],
    [1, 20],
    [2, 3],
  ]);
  const theirs = new Map([
    [0, 10],
    [1, 100],
    [2, 10],
  ]);
  t.is(medianRatio(ours, theirs), 0.2);
  t.is(medianRatio(ours, new Map([[2, 10]])), 0.3);
  t.is(medianRatio(ours, new Map()), Number.NaN);
});
