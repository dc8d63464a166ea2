import test from 'ava';
import { runAtOnce } from '../../shared/in-slices.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { type CheckedRules, RulesChecker } from './checked-rules.ts';

const nowMs = Date.parse('2026-11-29T00:00:00Z');
const checker = new RulesChecker({ mergeDomains: true });

function parse(file: string, rules: string): RuleDocument {
  const { document } = parseRuleDocument(`domain: shop\ndescriptors:\n${rules}`, file);
  if (document === undefined) throw new Error('the rules of this test are wrong');
  return document;
}

function check(documents: readonly RuleDocument[], atMs = nowMs): CheckedRules {
  const checked = runAtOnce(checker.check(documents, atMs));
  if (!checked.ok) throw new Error('the rules of this test are wrong');
  return checked.rules;
}

const limit = 'rate_limit: {unit: minute, requests_per_unit: 5}';
const parent = parse(
  'a.yaml',
  `  - {key: k, value: x.y, ${limit}, descriptors: [{key: l, ${limit}}]}\n`,
);
const free = parse('b.yaml', '  - {key: free, rate_limit: {unlimited: true}}\n  - {key: exempt}\n');
const ending = parse('c.yaml', `  - {key: soon, until: 2026-11-29T01:00:00Z, ${limit}}\n`);

test('limits that can refuse and do not end have names, and unlimited ones are counted', (t) => {
  const { limitCount, domains } = check([parent, free, ending]);
  t.is(limitCount, 4);
  t.is(domains.get('shop')?.limitCount, 4);
  const names = [...(domains.get('shop')?.limitNames() ?? [])];
  t.deepEqual(names, ['shop.k_x.y', 'shop.k_x.y.l']);
});

test('an unchanged domain is the same object until one of its rules ends', (t) => {
  const domainAt = (atMs: number) => check([parent, ending], atMs).domains.get('shop');
  t.is(domainAt(nowMs), domainAt(nowMs + 1));
  t.not(domainAt(nowMs), domainAt(nowMs + 3_600_000));
  t.is(domainAt(nowMs + 3_600_000)?.limitCount, 2);
});

test('requests are matched as workers match them', (t) => {
  const rules = check([parent, ending]).domains.get('shop');
  if (rules === undefined) return t.fail('good rules were refused');
  const lookup = runAtOnce(rules.lookup());
  const match = lookup.match([{ key: 'k', value: 'x.y' }]);
  t.is(match?.metricKey, 'shop.k_x.y');
  t.is(match?.limit.requestsPerUnit, 5);
  t.is(runAtOnce(rules.lookup()), lookup);
});
