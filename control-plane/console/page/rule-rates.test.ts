import test from 'ava';
import { averageOf, matchRates } from './rule-rates.ts';

const row = (rule: string) => ({
  rule,
  entries: [],
  limits: [],
  modes: [],
  owner: null,
  file: 'd.yaml',
  line: 1,
});
const series = (rule: string, hits: number) => ({
  rule,
  hits: [hits],
  overLimit: [0],
  nearLimit: [0],
});

test('counts belong to the rule with the longest name that their metric key begins with', (t) => {
  const rules = ['d.user', 'd.user.plan', 'd.path_/a/*'].map(row);
  const found = matchRates(rules, [
    series('d.user', 1),
    series('d.user_ada', 2),
    series('d.user.minute', 4),
    series('d.user.plan_free', 8),
    series('d.path_/a/*', 16),
    series('d.username', 32),
    series('other.user', 64),
  ]);
  t.deepEqual(
    [...found].map(([rule, { hits }]) => [rule, hits[0]]),
    [
      ['d.user', 7],
      ['d.user.plan', 8],
      ['d.path_/a/*', 16],
    ],
  );
});

test('the average of no series is nothing', (t) => {
  t.is(averageOf(undefined), 0);
  t.is(averageOf([]), 0);
  t.is(averageOf([1, 3]), 2);
});
