import test from 'ava';
import { addHits, type CounterValue, parseCounterValue, refundHits } from './counter-value.ts';

const texts: [string, CounterValue][] = [
  ['0', 0],
  ['3000000000', 3_000_000_000],
  // Counted down from 10: memcached keeps the length.
  ['9 ', 9],
  ['9007199254740993', 9_007_199_254_740_993n],
  ['18446744073709551615', 18_446_744_073_709_551_615n],
  ['', undefined],
  ['-1', undefined],
  [' 1', undefined],
  ['1.5', undefined],
  ['ten', undefined],
  ['123456789012345678901', undefined],
];
for (const [text, value] of texts) {
  // Proof of migrating.md: Counters in a memory cache are read up to 2^64-1
  test(`${JSON.stringify(text)} is ${value ?? 'no counter'}`, (t) => {
    t.is(parseCounterValue(text), value);
  });
}

test('sums are exact and stay below 2^63', (t) => {
  t.is(addHits(undefined, 3), 3);
  t.is(addHits(4, 3), 7);
  t.is(addHits(2 ** 53 - 1, 2), 2n ** 53n + 1n);
  t.is(addHits(2n ** 63n - 4n, 3), 2n ** 63n - 1n);
  t.is(addHits(2n ** 63n - 4n, 4), undefined);
  t.is(addHits(2n ** 53n - 2n, 1), 2 ** 53 - 1, 'a number as long as it is exact');
  t.is(addHits(1, 2n ** 53n - 1n), 2n ** 53n);
});

test('a refund stops at 0 and creates no counter', (t) => {
  t.is(refundHits(undefined, 3), undefined);
  t.is(refundHits(5, 3), 2);
  t.is(refundHits(5, 6), 0);
  t.is(refundHits(2n ** 60n, 2n ** 60n), 0);
  t.is(refundHits(2n ** 53n + 4n, 5), 2 ** 53 - 1);
  t.is(refundHits(2n ** 60n + 1n, 2n ** 60n), 1);
});
