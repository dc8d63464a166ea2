import test from 'ava';
import fc from 'fast-check';
import { parseRuleDocument } from '../document/document.ts';
import { buildRuleSet } from '../rule-set.ts';
import { explainNoMatch } from './nearest-rule.ts';
import { placeRules, toPlaceText } from './placed-rule.ts';

const limit = 'rate_limit: {unit: hour, requests_per_unit: 1}';

const shop = `domain: shop
descriptors:
  - key: customer
    ${limit}
    descriptors:
      - {key: plans, ${limit}}
  - key: generic_key
    value: checkout
    ${limit}
  - key: generic_key
    value: Search
    ${limit}
  - key: path
    value: /api/*
    ${limit}
  - key: tenant
    descriptors:
      - key: user
        value: ada
        descriptors:
          - {key: verb, ${limit}}
  - key: exempt
`;

function parse(yaml: string) {
  const { document, problems } = parseRuleDocument(yaml, 'shop.yaml');
  if (document === undefined) throw new Error(JSON.stringify(problems));
  return { document, rules: placeRules([document]).get('shop') ?? [] };
}

/** `a=1` is an entry; of `a` the value is not known. */
function explain(text: string, yaml = shop) {
  const entries = text.split(',').map((pair) => {
    const [key = '', value] = pair.split('=');
    return { key, value };
  });
  const explained = explainNoMatch('shop', parse(yaml).rules, entries);
  if (explained === undefined) return undefined;
  const { nearest, reason, hint } = explained;
  return [reason, hint, nearest && toPlaceText(nearest.rule)];
}

test('a descriptor that a rule takes, or may take, needs no explanation', (t) => {
  for (const text of [
    'customer=ada',
    'customer',
    'customer,plans=gold',
    'generic_key=checkout',
    'generic_key',
    'path=/api/x',
    'path',
    'tenant=t,user=ada,verb=GET',
    'tenant=t,user,verb',
    'exempt=1',
  ]) {
    t.is(explain(text), undefined, text);
  }
});

test('a misspelled key is told together with the one that was meant', (t) => {
  t.deepEqual(explain('custmer=ada'), [
    "no rule has the key 'custmer'",
    "did you mean 'customer'?",
    'shop.yaml:3:5',
  ]);
  t.deepEqual(explain('customer=ada,plan=gold'), [
    "rule shop.customer matches the first entry, but no rule below it has the key 'plan'",
    "did you mean 'plans'?",
    'shop.yaml:6:9',
  ]);
});

test('an unknown value is told together with the known ones', (t) => {
  t.deepEqual(explain('generic_key=chekout'), [
    "no rule has the value 'chekout' for the key 'generic_key'",
    "did you mean 'checkout'?",
    'shop.yaml:7:5',
  ]);
  t.deepEqual(explain('generic_key=search'), [
    "no rule has the value 'search' for the key 'generic_key'",
    "did you mean 'Search'? Upper and lower case are not the same",
    'shop.yaml:10:5',
  ]);
  t.deepEqual(explain('path=/web'), [
    "no rule has the value '/web' for the key 'path'",
    "there is '/api/*'",
    'shop.yaml:13:5',
  ]);
});

test('of a level with many rules the first 5,000 are looked at', (t) => {
  const { rules } = parse(`domain: shop\ndescriptors: [{key: path, value: '*', ${limit}}]\n`);
  const [rule] = rules;
  if (rule === undefined) return t.fail();
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

test('entries in another order are told with the order that matches', (t) => {
  t.deepEqual(explain('plans=gold,customer=ada'), [
    'rule shop.customer.plans has these entries in another order',
    'the order counts: send (customer)(plans)',
    'shop.yaml:6:9',
  ]);
});

test('a descriptor of another depth is told what is missing, or too much', (t) => {
  t.deepEqual(explain('tenant=t'), [
    'rule shop.tenant has no limit of its own, only rules below it, which are for descriptors with more entries',
    "give the rule a rate_limit, or send one of these keys as well: 'user'",
    'shop.yaml:16:5',
  ]);
  t.deepEqual(explain('generic_key=checkout,verb=GET'), [
    'rule shop.generic_key_checkout matches the first entry, but has no rules below it, and a rule is only for descriptors with as many entries as it has levels',
    'leave out (verb=GET), or give the rule descriptors for it',
    'shop.yaml:7:5',
  ]);
  t.deepEqual(explain('tenant=t,region=eu,user=ada,verb=GET'), [
    'rule shop.tenant.user_ada.verb has all entries but (region=eu)',
    'leave that entry out, or add a level for it to the rules',
    'shop.yaml:21:13',
  ]);
  for (const surplus of ['region=eu', 'customer=ada']) {
    t.deepEqual(explain(`${surplus},tenant=t,user=ada,verb=GET`), [
      `rule shop.tenant.user_ada.verb has all entries but (${surplus})`,
      'leave that entry out, or add a level for it to the rules',
      'shop.yaml:21:13',
    ]);
  }
  t.deepEqual(explain('verb=GET'), [
    'rule shop.tenant.user_ada.verb is for descriptors that have (tenant)(user) before it',
    undefined,
    'shop.yaml:21:13',
  ]);
});

test('where nothing resembles the descriptor, the keys that there are are told', (t) => {
  t.is(explain('customer_x')?.[0], "no rule has the key 'customer_x'");
  t.deepEqual(explain('zzz=1'), [
    "no rule has the key 'zzz'",
    "the keys there are 'customer', 'generic_key', 'path', 'tenant', 'exempt'",
    undefined,
  ]);
});

test('there is an explanation exactly where the lookup of the decision finds nothing', (t) => {
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
      const isTaken = domain?.match(entries) !== undefined || domain?.exempts(entries) === true;
      const rules = placeRules([document]).get('shop') ?? [];
      t.is(explainNoMatch('shop', rules, entries) === undefined, isTaken, text);
    }),
  );
});
