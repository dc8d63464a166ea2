import test from 'ava';
import fc from 'fast-check';
import { backoffDelayMs } from './backoff.ts';

const plain = { initialMs: 10_000, maxMs: 60_000, multiplier: 1.5, random: undefined };

test('waits grow by the multiplier up to the maximum', (t) => {
  const waits = [0, 1, 2, 3, 4, 5, 1000].map((failures) => backoffDelayMs(plain, failures));
  t.deepEqual(waits, [10_000, 15_000, 22_500, 33_750, 50_625, 60_000, 60_000]);
});

test('a multiplier of 1 never grows', (t) => {
  t.is(backoffDelayMs({ ...plain, multiplier: 1 }, 50), 10_000);
});

test('an initial wait above the maximum is the maximum', (t) => {
  t.is(backoffDelayMs({ ...plain, initialMs: 90_000 }, 0), 60_000);
  t.is(backoffDelayMs({ ...plain, initialMs: 90_000, random: () => 0.5 }, 0), 60_000);
});

test('a wait with jitter lies between the first wait and the next one', (t) => {
  t.is(backoffDelayMs({ ...plain, random: () => 0 }, 2), 10_000);
  t.is(backoffDelayMs({ ...plain, random: () => 0.5 }, 0), 12_500);
  t.is(backoffDelayMs({ ...plain, random: () => 0.5 }, 20), 35_000);
});

test('a wait is always a number within the bounds', (t) => {
  const options = fc.record({
    initialMs: fc.nat(),
    maxMs: fc.nat(),
    multiplier: fc.double({ min: 1, max: 1e6, noNaN: true }),
    random: fc.option(
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }).map((value) => () => value),
      { nil: undefined },
    ),
  });
  fc.assert(
    fc.property(options, fc.nat(), (each, failures) => {
      const wait = backoffDelayMs(each, failures);
      t.true(wait >= Math.min(each.initialMs, each.maxMs) && wait <= each.maxMs);
    }),
  );
});
