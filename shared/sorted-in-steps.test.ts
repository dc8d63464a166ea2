import test from 'ava';
import fc from 'fast-check';
import { runAtOnce } from './in-slices.ts';
import { sortInSteps } from './sorted-in-steps.ts';

test('items are sorted as by toSorted, and equal ones keep their order', (t) => {
  const items = fc.array(fc.record({ rank: fc.nat(20), name: fc.nat() }), { maxLength: 3_000 });
  fc.assert(
    fc.property(items, (given) => {
      const compare = (a: { rank: number }, b: { rank: number }) => a.rank - b.rank;
      t.deepEqual(runAtOnce(sortInSteps(given, compare)), given.toSorted(compare));
    }),
    { numRuns: 50 },
  );
});

test('a step makes at most a few thousand comparisons, however many items there are', (t) => {
  let compared = 0;
  let most = 0;
  const items = Array.from({ length: 100_000 }, (_, at) => (at * 7_919) % 100_003);
  const sorting = sortInSteps(items, (a, b) => {
    compared++;
    return a - b;
  });
  for (let step = sorting.next(); !step.done; step = sorting.next()) {
    most = Math.max(most, compared);
    compared = 0;
  }
  t.true(most > 0 && most < 6_000, `${most}`);
});
