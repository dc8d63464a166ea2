import test from 'ava';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { findRows, placedRules, rowsOf } from './rule-rows.ts';

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
  - key: guest
    rate_limit: { unlimited: true }
`,
  'd.yaml',
);
const documents = document === undefined ? [] : [document];
const rows = rowsOf('d', placedRules(documents).get('d') ?? []);

test('a rule has the owner of the one above it, its limit in words, and its place', (t) => {
  t.deepEqual(
    rows.map(({ rule, owner, limits, modes, line }) => [rule, owner, limits, modes, line]),
    [
      ['d.plan_free', 'sales', [], [], 3],
      ['d.plan_free.user', 'sales', ['3 per minute (each-user)'], ['shadow_mode'], 7],
      ['d.guest', null, ['unlimited'], [], 10],
    ],
  );
  t.deepEqual(rows[1]?.entries, [
    { key: 'plan', value: 'free' },
    { key: 'user', value: '' },
  ]);
});

test('a rule is found by its name, limit, mode, owner and file, in any case', (t) => {
  const found = (text: string) => findRows(rows, text).map(({ rule }) => rule);
  t.deepEqual(found('GUEST'), ['d.guest']);
  t.deepEqual(found('each-user'), ['d.plan_free.user']);
  t.deepEqual(found('shadow'), ['d.plan_free.user']);
  t.deepEqual(found('sales'), ['d.plan_free', 'd.plan_free.user']);
  t.is(found('d.yaml').length, 3);
  t.deepEqual(found('nothing'), []);
});

test('the same documents are placed once', (t) => {
  t.is(placedRules(documents), placedRules(documents));
});

test('domains are in the order of their numbers', (t) => {
  const named = ['d-10', 'd-2', 'b'].flatMap((name) => {
    const parsed = parseRuleDocument(`domain: ${name}\ndescriptors:\n  - key: k\n`, `${name}.yaml`);
    return parsed.document ?? [];
  });
  t.deepEqual([...placedRules(named).keys()], ['b', 'd-2', 'd-10']);
});
