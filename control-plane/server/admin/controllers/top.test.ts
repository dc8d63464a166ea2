import test from 'ava';
import { runAtOnce } from '../../../../shared/in-slices.ts';
import { parseRuleDocument } from '../../../../shared/rules/document/document.ts';
import { findingRuleOwners } from '../rule-owners.ts';
import { type TopFacts, type TopJson, toFacts, toTop } from './top.ts';

/** Answer of a peer. */
function topOf(count: number, unlistedAtMost: number, name = 'ada'): TopJson {
  return {
    workers: 2,
    values: [
      {
        ...{ domain: 'd', rule: 'd.k', entries: [{ key: 'k', value: name }] },
        ...{ atLeast: count, atMost: count, perSecond: count / 60, perSecondBefore: null },
        workers: 2,
      },
    ],
    unlistedAtMost,
    rules: [
      {
        ...{ rule: 'd.k', hitsPerSecond: 2, overLimitPerSecond: 1, nearLimitPerSecond: 0 },
        shadowMode: name === 'ada',
      },
    ],
    missing: [],
  };
}

const noOwners = runAtOnce(findingRuleOwners([]));
const isNotLifted = () => undefined;

test('the figures of control planes are added, and a lifted value has the end of its lift', (t) => {
  const until = Date.parse('2026-11-24T18:00:00Z');
  const top = toTop(
    [topOf(60, 1), topOf(30, 2), topOf(6, 4, 'bob')].map(toFacts),
    noOwners,
    (domain, [entry]) => (domain === 'd' && entry?.value === 'ada' ? until : undefined),
    10,
  );
  t.like(top, {
    ...{ workers: 6, unlistedAtMost: 7 },
    rules: [{ rule: 'd.k', hitsPerSecond: 6, overLimitPerSecond: 3, shadowMode: true }],
  });
  t.deepEqual(
    top.values.map(({ entries, atLeast, atMost, perSecond, workers, liftedUntil }) => [
      ...[entries[0]?.value, atLeast, atMost, perSecond, workers, liftedUntil],
    ]),
    [
      ['ada', 90, 94, 1.5, 4, '2026-11-24T18:00:00Z'],
      ['bob', 6, 9, 0.1, 2, undefined],
    ],
  );
});

const { document } = parseRuleDocument(
  `domain: d
descriptors:
  - key: k
    shadow_mode: true
    value_to_metric: true
    rate_limits: [{unit: minute, requests_per_unit: 5}, {unit: day, requests_per_unit: 50}]
`,
  'd.yaml',
);
const owners = runAtOnce(findingRuleOwners(document ? [document] : []));
const nothing: TopFacts = { workers: 1, limited: { values: [], unlistedAtMost: 0 }, rates: [] };
const rate = (rule: string, overLimitPerSecond: number) => ({
  rule,
  ...{ hitsPerSecond: 2, overLimitPerSecond, nearLimitPerSecond: 1 },
});

test('a rule is one row: it includes its values and the limits of its list, the strongest first', (t) => {
  const rates = [
    ...[rate('d.k_ada', 2), rate('d.k_ada.minute', 0.5), rate('d.k_ada.day', 1.5)],
    ...[rate('d.k_bob', 1), rate('d.k_bob.minute', 0), rate('d.k_bob.day', 1)],
    rate('gone.k', 1),
  ];
  const expected = [
    {
      rule: 'd.k',
      ...{ hitsPerSecond: 4, overLimitPerSecond: 3, nearLimitPerSecond: 2 },
      shadowMode: true,
      limits: [
        { limit: 'day', hitsPerSecond: 4, overLimitPerSecond: 2.5, nearLimitPerSecond: 2 },
        { limit: 'minute', hitsPerSecond: 4, overLimitPerSecond: 0.5, nearLimitPerSecond: 2 },
      ],
    },
    { ...rate('gone.k', 1), shadowMode: false },
  ];
  const own = { ...nothing, rates };
  const top = toTop([own], owners, isNotLifted, 10);
  t.deepEqual(top.rules, expected);
  const peer = toFacts({ ...top, missing: [] });
  // An older peer lists metric keys.
  const older = { ...own, rates: rates.map((each) => ({ ...each, shadowMode: false })) };
  const [merged, other] = toTop([own, peer, older], owners, isNotLifted, 10).rules;
  t.like(merged, { rule: 'd.k', hitsPerSecond: 12, overLimitPerSecond: 9 });
  t.deepEqual(
    merged?.limits?.map(({ limit, overLimitPerSecond }) => [limit, overLimitPerSecond]),
    [
      ['day', 7.5],
      ['minute', 1.5],
    ],
  );
  t.like(other, { rule: 'gone.k', overLimitPerSecond: 3 });
});

test('a value that several limits of a list have limited is one row, under its rule', (t) => {
  const limitedBy = (rule: string, count: number) => ({
    text: JSON.stringify(['d', rule, 'k', 'ada']),
    ...{ atLeast: count, atMost: count, perSecond: count, perSecondBefore: 1, workers: 1 },
  });
  const values = [limitedBy('d.k_ada.minute', 3), limitedBy('d.k_ada.day', 4)];
  const limited = { values, unlistedAtMost: 0 };
  const top = toTop([{ ...nothing, limited }], owners, isNotLifted, 10);
  t.like(top.values, [{ rule: 'd.k', atLeast: 7, atMost: 7, workers: 1 }]);
  t.is(top.values.length, 1);
});
