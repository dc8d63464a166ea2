import test from 'ava';
import fc from 'fast-check';
import { createBoundedNearestWord, editDistance, nearestWord } from './nearest-word.ts';
import { units } from './rules/unit.ts';

const keys = ['key', 'value', 'value_to_metric', 'rate_limit', 'requests_per_unit', 'descriptors'];
const cases: [word: string, known: readonly string[], nearest: string | undefined][] = [
  ['rate_limt', keys, 'rate_limit'],
  ['ratelimit', keys, 'rate_limit'],
  ['rate-limit', keys, 'rate_limit'],
  ['requestsPerUnit', keys, 'requests_per_unit'],
  ['vlaue', keys, 'value'],
  ['desc', keys, 'descriptors'],
  ['v', keys, undefined],
  ['burst', keys, undefined],
  ['mintue', units, 'minute'],
  ['HOURS', units, 'hour'],
  ['sec', units, 'second'],
  ['m', units, undefined],
  ['fortnight', units, undefined],
  ['', units, undefined],
  ['_', units, undefined],
  ['hour'.repeat(100), units, undefined],
];
for (const [word, known, nearest] of cases) {
  test(`'${word.slice(0, 20)}' most likely stands for ${nearest ?? 'nothing'}`, (t) => {
    t.is(nearestWord(word, known), nearest);
  });
}

test('with a bound, no more words are compared in all', (t) => {
  const nearest = createBoundedNearestWord(3 * units.length);
  const guesses = Array.from({ length: 5 }, () => nearest('mintue', units));
  t.deepEqual(guesses, ['minute', 'minute', 'minute', undefined, undefined]);
});

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

test('what two words have in common at their ends adds nothing to their distance', (t) => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 });
  fc.assert(
    fc.property(word, word, word, word, (start, a, b, end) => {
      t.is(editDistance(`${start}${a}${end}`, `${start}${b}${end}`), editDistance(a, b));
    }),
  );
});

test('no word is compared after one that is equal', (t) => {
  let looks = 0;
  const words = function* () {
    for (const word of ['minutes', 'minute', 'minuet', 'hour']) {
      looks++;
      yield word;
    }
  };
  t.is(
    nearestWord('MINUTE', { [Symbol.iterator]: words } as unknown as readonly string[]),
    'minute',
  );
  t.is(looks, 2);
});
