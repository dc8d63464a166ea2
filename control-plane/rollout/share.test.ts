import test from 'ava';
import fc from 'fast-check';
import { findLimit, placeOf } from './share.ts';

const ids = fc.array(fc.string({ maxLength: 3 }), { maxLength: 60 });
const percents = fc.integer({ min: 1, max: 99_999 }).map((each) => each / 1_000);

test('a share is at least one worker, never all, and no more than was asked for', (t) => {
  fc.assert(
    fc.property(ids, percents, (nodeIds, percent) => {
      const limit = findLimit(nodeIds.map(placeOf), percent);
      if (limit === undefined) return new Set(nodeIds).size < 2;
      const chosen = nodeIds.filter((id) => placeOf(id) <= limit);
      // Workers of one id cannot be told apart: the first such group may be more than was asked for.
      const isOneGroup = new Set(chosen).size === 1;
      const isEnough = chosen.length >= 1 && chosen.length < nodeIds.length;
      return isEnough && (isOneGroup || chosen.length <= (nodeIds.length * percent) / 100);
    }),
  );
  t.pass();
});

test('a larger share has the workers of a smaller one', (t) => {
  fc.assert(
    fc.property(ids, percents, percents, (nodeIds, one, other) => {
      const small = findLimit(nodeIds.map(placeOf), Math.min(one, other)) ?? 0;
      const large = findLimit(nodeIds.map(placeOf), Math.max(one, other)) ?? 0;
      return small <= large;
    }),
  );
  t.pass();
});

test('a share follows from the ids alone', (t) => {
  const places = Array.from({ length: 50 }, (_, index) => placeOf(`worker-${index}`));
  const limit = findLimit(places, 10) ?? 0;
  t.is(findLimit(places.toReversed(), 10), limit);
  t.is(places.filter((place) => place <= limit).length, 5);
});
