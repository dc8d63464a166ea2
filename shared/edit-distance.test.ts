import test from 'ava';
import fc from 'fast-check';
import { editDistance } from './edit-distance.ts';

const distances: [string, string, number][] = [
  ['', '', 0],
  ['', 'abc', 3],
  ['abc', '', 3],
  ['abc', 'abc', 0],
  ['abc', 'abd', 1],
  ['abc', 'ab', 1],
  ['abc', 'xabc', 1],
  ['abc', 'acb', 1],
  ['ab', 'ba', 1],
  ['kitten', 'sitting', 3],
];
for (const [a, b, distance] of distances) {
  test(`'${a}' and '${b}' are ${distance} edits apart`, (t) => {
    t.is(editDistance(a, b), distance);
  });
}

test('a distance with a bound is the distance, or infinity where it is above', (t) => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 });
  fc.assert(
    fc.property(word, word, fc.nat(8), (a, b, most) => {
      const distance = editDistance(a, b);
      t.is(editDistance(a, b, most), distance > most ? Number.POSITIVE_INFINITY : distance);
    }),
    { numRuns: 2000 },
  );
});

test('the distance is the same both ways, and at most the longer length', (t) => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 });
  fc.assert(
    fc.property(word, word, (a, b) => {
      t.is(editDistance(a, b), editDistance(b, a));
      t.true(editDistance(a, b) <= Math.max(a.length, b.length));
      t.is(editDistance(a, b) === 0, a === b);
    }),
  );
});
