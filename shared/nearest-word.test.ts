import test from 'ava';
import { createBoundedNearestWord, nearestWord } from './nearest-word.ts';
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
