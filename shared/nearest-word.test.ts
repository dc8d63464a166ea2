import test from 'ava';
import fc from 'fast-check';
import { testLines } from '../test/support/reviewed-lines.ts';
import { createBoundedNearestWord, editDistance, nearestWord } from './nearest-word.ts';
import { units } from './rules/unit.ts';

const keys = ['key', 'value', 'value_to_metric', 'rate_limit', 'requests_per_unit', 'descriptors'];
testLines(test, new URL('nearest-word.txt', import.meta.url), (given) => {
  const [what, first = '', second = ''] = given.split(' ');
  if (what === 'apart') return String(editDistance(first, second));
  return nearestWord(second, first === 'keys' ? keys : units) ?? 'nothing';
});

test('with a bound, no more words than that are compared in total', (t) => {
  const nearest = createBoundedNearestWord(3 * units.length);
  const guesses = Array.from({ length: 5 }, () => nearest('mintue', units));
  t.deepEqual(guesses, ['minute', 'minute', 'minute', undefined, undefined]);
});

test('a distance with a bound is the distance, or infinity above the bound', (t) => {
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

test('common beginnings and endings of two words do not affect their distance', (t) => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 });
  fc.assert(
    fc.property(word, word, word, word, (start, a, b, end) => {
      t.is(editDistance(`${start}${a}${end}`, `${start}${b}${end}`), editDistance(a, b));
    }),
  );
});

test('no word is compared after one that is equal', (t) => {
  let checks = 0;
  const words = function* () {
    for (const word of ['minutes', 'minute', 'minuet', 'hour']) {
      checks++;
      yield word;
    }
  };
  t.is(
    nearestWord('MINUTE', { [Symbol.iterator]: words } as unknown as readonly string[]),
    'minute',
  );
  t.is(checks, 2);
});
