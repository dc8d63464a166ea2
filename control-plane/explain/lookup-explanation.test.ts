import test from 'ava';
import fc from 'fast-check';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { placeRules } from '../../shared/rules/lookup/placed-rule.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import { explainLookup } from './lookup-explanation.ts';

function rulesOf(yaml: string) {
  const { document, problems } = parseRuleDocument(yaml, 'r.yaml');
  if (document === undefined) throw new Error(JSON.stringify(problems));
  return { document, rules: placeRules([document]).get(document.domain) ?? [] };
}

function entriesOf(text: string): Entry[] {
  return text.split(',').map((pair) => {
    const [key = '', value = ''] = pair.split('=');
    return { key, value };
  });
}

const shop = `domain: shop
descriptors:
  - key: customer
    rate_limit: {unit: hour, requests_per_unit: 100}
  - key: customer
    value: a*
    rate_limit: {unit: hour, requests_per_unit: 10}
  - key: customer
    value: ad*
    rate_limit: {unit: hour, requests_per_unit: 20}
  - key: customer
    value: ada
    descriptors:
      - key: plan
        value: free
        rate_limit: {unit: minute, requests_per_unit: 5}
  - key: exempt
  - key: plan
    value: Free
    rate_limit: {unit: hour, requests_per_unit: 1}
`;

function explain(text: string) {
  const { levels, rule, verdict } = explainLookup(rulesOf(shop).rules, entriesOf(text));
  return {
    verdict,
    path: rule?.path,
    levels: levels.map(({ candidates }) =>
      candidates.map(
        (each) =>
          `${each.isChosen ? '> ' : ''}${each.rule.composite} ${each.kind ?? '-'}: ${each.reason}`,
      ),
    ),
  };
}

test('each candidate of a level is listed in the order of the lookup with its reason', (t) => {
  t.deepEqual(explain('customer=adam'), {
    verdict: "the limit of 'customer_a*' applies",
    path: 'descriptors[1]',
    levels: [
      [
        '> customer_a* wildcard: the first wildcard that fits',
        'customer_ad* wildcard: fits, but an earlier wildcard that fits is taken',
        'customer key_only: for every value, but the wildcard comes first',
        'customer_ada -: for another value',
      ],
    ],
  });
});

test('an exact rule without a limit of its own ends the lookup, and it is said', (t) => {
  const { verdict, levels } = explain('customer=ada');
  t.is(
    verdict,
    "no limit applies: 'customer_ada' is chosen, and it only holds the rules below it, which are for requests with more entries; no other rule is tried after it",
  );
  t.deepEqual(levels[0]?.slice(0, 2), [
    '> customer_ada exact: key and value are equal',
    'customer_a* wildcard: fits, but the exact rule comes first',
  ]);
});

test('entries below the first are looked up below the rule that was chosen', (t) => {
  const { path, levels } = explain('customer=ada,plan=free');
  t.is(path, 'descriptors[3].descriptors[0]');
  t.deepEqual(levels[1], ['> plan_free exact: key and value are equal']);
});

test('a request with more entries than the rules have levels matches nothing, whatever the limit above', (t) => {
  t.is(
    explain('customer=zoe,plan=free').verdict,
    "no limit applies: 'customer' has no descriptors below it, and the request has 1 more entry; its own limit is for requests with 1 entry",
  );
});

test('a rule with neither limit nor descriptors exempts what it matches', (t) => {
  t.is(
    explain('exempt=x').verdict,
    "no limit applies: 'exempt' is chosen, and it has no rate_limit, which exempts what it matches",
  );
});

test('letter case that differs is named', (t) => {
  const { verdict, levels } = explain('plan=free');
  t.is(verdict, 'no limit applies: no rule is for entry 1, plan=free');
  t.deepEqual(levels, [['plan_Free -: differs in letter case']]);
});

test('a misspelled key leads to the nearest one', (t) => {
  const [level] = explainLookup(rulesOf(shop).rules, entriesOf('custmer=ada')).levels;
  t.is(level?.nearestKey, 'customer');
  t.is(level?.othersCount, 6);
});

test('a few of many rules for other values are listed, and the rest is counted', (t) => {
  const values = Array.from({ length: 40 }, (_, index) => `  - {key: k, value: v${index}}`);
  const { rules } = rulesOf(['domain: d', 'descriptors:', ...values].join('\n'));
  const [level] = explainLookup(rules, entriesOf('k=v39')).levels;
  t.is(level?.candidates.length, 11);
  t.is(level?.othersCount, 29);
  t.is(level?.chosen?.rule.composite, 'k_v39');
});

test('the explanation and the decision find the same rule', (t) => {
  const name = fc.constantFrom('a', 'a', 'b', 'a_b', 'a_', 'b*');
  const value = fc.constantFrom('', 'a', 'b', 'ab', 'b_a', '*', 'a*', '*b', 'a*b', 'b*a*');
  const { tree } = fc.letrec((tie) => ({
    tree: fc.uniqueArray(
      fc.record({
        key: name,
        value,
        rate_limit: fc.nat(3).map((number) => number > 0),
        descriptors: fc.oneof({ maxDepth: 3 }, fc.constant([]), tie('tree')),
      }),
      {
        minLength: 3,
        maxLength: 8,
        selector: (each) => (each.value === '' ? each.key : `${each.key}_${each.value}`),
      },
    ),
  }));
  const requestEntry = fc.record({
    key: fc.constantFrom('a', 'a', 'b', 'a_b', 'bb'),
    value: fc.constantFrom('', 'a', 'b', 'ab', 'aab', 'b_a', '*', 'ba', 'bab'),
  });
  let found = 0;
  let limitNumber = 0;
  const withLimits = (nodes: unknown): unknown[] =>
    (nodes as { rate_limit: boolean; descriptors: unknown }[]).map((node) => ({
      ...node,
      rate_limit: node.rate_limit ? { unit: 'hour', requests_per_unit: ++limitNumber } : null,
      descriptors: withLimits(node.descriptors),
    }));
  fc.assert(
    fc.property(tree, fc.array(requestEntry, { minLength: 1, maxLength: 3 }), (nodes, entries) => {
      limitNumber = 0;
      const yaml = JSON.stringify({ domain: 'd', descriptors: withLimits(nodes) });
      const { document, rules } = rulesOf(yaml);
      const built = buildRuleSet([document], { mergeDomains: false, sanitizeMetricDots: false });
      if (!built.ok) throw new Error('rules were refused');
      const match = built.ruleSet.domains.get('d')?.match(entries);
      const explained = explainLookup(rules, entries).rule?.descriptor.rateLimit;
      if (match) found++;
      return match?.limit.requestsPerUnit === explained?.requestsPerUnit;
    }),
    { numRuns: 400 },
  );
  t.true(found > 20, `${found} requests found a limit`);
});
