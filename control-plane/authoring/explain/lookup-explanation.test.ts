import test from 'ava';
import fc from 'fast-check';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { locateRules } from '../../../shared/rules/lookup/located-rule.ts';
import type { Entry } from '../../../shared/rules/rule.ts';
import { buildRuleSet } from '../../../shared/rules/rule-set.ts';
import { explainRequest } from './explained-request.ts';
import { explainLookup } from './lookup-explanation.ts';

function rulesOf(yaml: string) {
  const { document, problems } = parseRuleDocument(yaml, 'r.yaml');
  if (document === undefined) throw new Error(JSON.stringify(problems));
  return { document, rules: locateRules([document]).get(document.domain) ?? [] };
}

function entriesOf(text: string): Entry[] {
  return text.split(',').map((pair) => {
    const [key = '', value = ''] = pair.split('=');
    return { key, value };
  });
}

test('the first of many rules for other values are listed, and the rest are counted', (t) => {
  const values = Array.from({ length: 40 }, (_, index) => `  - {key: k, value: v${index}}`);
  const { rules } = rulesOf(['domain: d', 'descriptors:', ...values].join('\n'));
  const [level] = explainLookup(rules, entriesOf('k=v39')).levels;
  t.is(level?.candidates.length, 11);
  t.is(level?.othersCount, 29);
  t.is(level?.chosen?.rule.composite, 'k_v39');
});

test('the explanation and the decision choose the same rule', (t) => {
  const name = fc.constantFrom('a', 'a', 'b', 'a_b', 'a_', 'b*');
  const value = fc.constantFrom('', 'a', 'b', 'ab', 'b_a', '*', 'a*', '*b', 'a*b', 'b*a*');
  const { tree } = fc.letrec((tie) => ({
    tree: fc.uniqueArray(
      fc.record({
        key: name,
        value,
        rate_limit: fc.nat(3).map((number) => number > 0),
        value_to_metric: fc.boolean(),
        detailed_metric: fc.boolean(),
        descriptors: fc.oneof({ maxDepth: 3 }, fc.constant([]), tie('tree')),
      }),
      {
        minLength: 3,
        maxLength: 5,
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
      t.is(match?.limit.requestsPerUnit, explained?.requestsPerUnit, yaml);
      const [request] = runAtOnce(explainRequest('d', rules, [entries], 0));
      t.is(match?.metricKey, request?.matched?.counted[0]?.metricKey, yaml);
      if (match) found++;
    }),
    { numRuns: 400 },
  );
  t.true(found > 20, `${found} requests found a limit`);
});
