// A burst, then a rate per second.
import test from 'ava';
import { createTokenBucket } from './token-bucket.ts';

test('a full bucket admits its capacity at once, then the rate, and never holds more than its capacity', (t) => {
  const bucket = createTokenBucket({ capacity: 3, perSecond: 2 });
  t.deepEqual(
    [0, 0, 0, 0].map((nowMs) => bucket.spend(1, nowMs)),
    [true, true, true, false],
  );
  t.false(bucket.spend(1, 499));
  t.true(bucket.spend(1, 501));
  t.false(bucket.spend(4, 1_000_000));
  t.true(bucket.spend(3, 1_000_000));
  t.false(bucket.spend(1, 1_000_000));
});

test('a refused request takes no tokens', (t) => {
  const bucket = createTokenBucket({ capacity: 2, perSecond: 1 });
  t.false(bucket.spend(3, 0));
  t.true(bucket.spend(2, 0));
});

test('returned tokens can be taken again, but never more than the capacity', (t) => {
  const bucket = createTokenBucket({ capacity: 2, perSecond: 0 });
  t.true(bucket.spend(2, 0));
  bucket.give(1);
  t.true(bucket.spend(1, 0));
  bucket.give(5);
  t.false(bucket.spend(3, 0));
  t.true(bucket.spend(2, 0));
});
