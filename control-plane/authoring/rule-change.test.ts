import test from 'ava';
import { runAtOnce } from '../../shared/in-slices.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { locateDocuments } from '../../shared/rules/lookup/located-rule.ts';
import { pluck } from '../../test/support/pluck.ts';
import { testLines } from '../../test/support/reviewed-lines.ts';
import { checkRules } from './checked-rules.ts';
import { type ComparedRules, compareRules } from './rule-change.ts';
import { findingChangedPositions } from './wildcard-order.ts';

const nowMs = Date.parse('2026-01-01T00:00:00Z');

/** Parses rules; or, for one rule, only its limit or its list of limits. */
function rulesOf(text: string): ComparedRules {
  const block = text.startsWith('[') ? `rate_limits: ${text}` : `rate_limit: {${text}}`;
  const rules = text.startsWith('{') ? text : `{key: k, ${block}}`;
  const { document } = parseRuleDocument(`domain: d\ndescriptors: [${rules}]`, 'd.yaml');
  const documents = document === undefined ? [] : [document];
  const checked = checkRules(documents, { mergeDomains: false }, nowMs);
  if (!checked.ok || document === undefined) throw new Error(rules);
  return { ruleSet: checked.rules, documents };
}

testLines(test, new URL('rule-change.txt', import.meta.url), (given) => {
  const [before = '', after = ''] = given.split(' => ');
  const changes = compareRules(rulesOf(before), rulesOf(after));
  return changes.map(({ kind, text }) => `${kind}: ${text}`).join('; ') || 'no change';
});

test('for very many patterns that have changed places, their domain is named', (t) => {
  const rules = Array.from({ length: 150 }, (_, at) => `{key: k, value: "*${at}*"}`);
  const [one, other] = [rules, rules.toReversed()].map((all) => rulesOf(all.join(', ')));
  t.deepEqual(pluck(compareRules(one as ComparedRules, other as ComparedRules), 'kind'), [
    'order_changed',
  ]);
});

test('patterns in an unchanged order are compared in steps', (t) => {
  const rules = Array.from({ length: 150 }, (_, at) => `{key: k, value: "*${at}*"}`);
  const located = runAtOnce(locateDocuments(rulesOf(rules.join(', ')).documents));
  t.is([...findingChangedPositions(located, located)].length, 3 * rules.length);
});
