import test from 'ava';
import fc from 'fast-check';
import { parseRuleDocument } from '../document/document.ts';
import { buildRuleSet } from '../rule-set.ts';
import { locateRules } from './located-rule.ts';
import { explainNoMatch } from './nearest-rule.ts';

const limit = 'rate_limit: {unit: hour, requests_per_unit: 1}';

function parse(yaml: string) {
  const { document, problems } = parseRuleDocument(yaml, 'shop.yaml');
  if (document === undefined) throw new Error(JSON.stringify(problems));
  return { document, rules: locateRules([document]).get('shop') ?? [] };
}

test('at most the first 5,000 rules of a level are compared', (t) => {
  const { rules } = parse(`domain: shop\ndescriptors: [{key: path, value: '*', ${limit}}]\n`);
  const [rule] = rules;
  if (rule === undefined) return t.fail('no rule was found');
  const values = [...Array.from({ length: 4_999 }, () => '0'), 'checkout', 'returning'];
  const level = values.map((value) => ({
    ...rule,
    descriptor: { ...rule.descriptor, value },
    composite: `path_${value}`,
    isWildcard: false,
  }));
  const hintOf = (value: string) => explainNoMatch('shop', level, [{ key: 'path', value }])?.hint;
  t.is(hintOf('chekout'), "did you mean 'checkout'?");
  t.is(hintOf('retruning'), "there is '0', 'checkout'");
});

test('an explanation exists exactly where the lookup of the decision finds no rule', (t) => {
  const key = fc.constantFrom('a', 'b', 'a_b');
  const value = fc.constantFrom('', 'b', 'x', 'x*', 'b_x');
  const node = (children: string) =>
    fc
      .tuple(key, value, fc.boolean())
      .map(
        ([k, v, has]) =>
          `{key: ${k}, ${v === '' ? '' : `value: "${v}", `}${has ? `${limit}, ` : ''}${children}}`,
      );
  const yaml = fc
    .array(fc.oneof(node(''), node(`descriptors: [{key: a, ${limit}}, {key: b, value: x}]`)), {
      minLength: 1,
      maxLength: 4,
    })
    .map((nodes) => `domain: shop\ndescriptors: [${nodes.join(', ')}]\n`);
  const entry = fc.record({ key, value: fc.constantFrom('', 'b', 'x', 'xy', 'b_x') });
  fc.assert(
    fc.property(yaml, fc.array(entry, { minLength: 1, maxLength: 3 }), (text, entries) => {
      const { document } = parseRuleDocument(text, 'f.yaml');
      if (document === undefined) return;
      const built = buildRuleSet([document], { mergeDomains: false, sanitizeMetricDots: false });
      if (!built.ok) return;
      const domain = built.ruleSet.domains.get('shop');
      const isMatched = domain?.match(entries) !== undefined || domain?.exempts(entries) === true;
      const rules = locateRules([document]).get('shop') ?? [];
      t.is(explainNoMatch('shop', rules, entries) === undefined, isMatched, text);
    }),
  );
});
