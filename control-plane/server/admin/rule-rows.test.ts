import test from 'ava';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import {
  countingRules,
  findingRules,
  locatingRules,
  type RowsQuestion,
  toRow,
} from './rule-rows.ts';

const locatedRules = (given: Parameters<typeof locatingRules>[0]) =>
  runAtOnce(locatingRules(given));

const { document } = parseRuleDocument(
  `domain: d
descriptors:
  - key: plan
    value: free
    metadata: { owner: sales }
    descriptors:
      - key: user
        shadow_mode: true
        rate_limit: { unit: minute, requests_per_unit: 3, name: each-user }
  - {key: guest, rate_limit: { unlimited: true }}
`,
  'd.yaml',
);
const documents = document === undefined ? [] : [document];
const all = { text: '', offset: 0, limit: 5_000 };
const findIn = (given: typeof documents, asked: Partial<RowsQuestion> = {}) => {
  const rules = locatedRules(given).get('d') ?? [];
  const { total, found } = runAtOnce(findingRules('d', rules, { ...all, ...asked }));
  return { total, rows: found.map(toRow) };
};
const { rows } = findIn(documents);

test('a rule has the owner of its parent, its human-readable limit, and its position', (t) => {
  t.deepEqual(
    rows.map(({ rule, owner, limits, modes, line }) => [rule, owner, limits, modes, line]),
    [
      ['d.plan_free', 'sales', [], [], 3],
      ['d.plan_free.user', 'sales', ['3 per minute, named each-user'], ['shadow_mode'], 7],
      ['d.guest', null, ['unlimited'], [], 10],
    ],
  );
  t.deepEqual(rows[1]?.entries, [
    { key: 'plan', value: 'free' },
    { key: 'user', value: '' },
  ]);
});

test('a rule is found by its name, limit, mode, owner and file, in any letter case', (t) => {
  const found = (text: string) => findIn(documents, { text }).rows.map(({ rule }) => rule);
  t.deepEqual(found('GUEST'), ['d.guest']);
  t.deepEqual(found('each-user'), ['d.plan_free.user']);
  t.deepEqual(found('shadow'), ['d.plan_free.user']);
  t.deepEqual(found('sales'), ['d.plan_free', 'd.plan_free.user']);
  t.is(found('d.yaml').length, 3);
  t.deepEqual(found('nothing'), []);
});

test('a page of the matching rules is returned, with the number of all', (t) => {
  const { total, rows: some } = findIn(documents, { text: 'd.', offset: 1, limit: 1 });
  t.deepEqual([total, some.map(({ rule }) => rule)], [3, ['d.plan_free.user']]);
  t.is(runAtOnce(countingRules(locatedRules(documents).get('d') ?? [])), 3);
});

test('limits read as operators write them', (t) => {
  const texts = (limits: string) => {
    const parsed = parseRuleDocument(
      `domain: d\ndescriptors:\n  - key: k\n    rate_limits: ${limits}\n`,
      'd.yaml',
    );
    return findIn(parsed.document ? [parsed.document] : []).rows.flatMap((row) => row.limits);
  };
  t.deepEqual(
    texts(`
      - { unit: minute, requests_per_unit: 40000, algorithm: token_bucket }
      - { unit: second, requests_per_unit: 5, algorithm: token_bucket, burst: 1000 }
      - { unit: day, requests_per_unit: 2000000, algorithm: sliding_window }
      - { unit: week, requests_per_unit: 9, algorithm: sliding_window, count_over_limit: true }
      - { unit: hour, unit_multiplier: 6, requests_per_unit: 1200 }`),
    [
      '40,000 per minute (token bucket, burst 40,000)',
      '5 per second (token bucket, burst 1,000)',
      '2,000,000 per day (sliding window)',
      '9 per week (sliding window, counts hits over the limit)',
      '1,200 per 6 hours',
    ],
  );
});

test('the same documents are processed once', (t) => {
  t.is(locatedRules(documents), locatedRules(documents));
});

test('domains are in numeric order', (t) => {
  const named = ['d-10', 'd-2', 'b'].flatMap((name) => {
    const parsed = parseRuleDocument(`domain: ${name}\ndescriptors:\n  - key: k\n`, `${name}.yaml`);
    return parsed.document ?? [];
  });
  t.deepEqual([...locatedRules(named).keys()], ['b', 'd-2', 'd-10']);
});
