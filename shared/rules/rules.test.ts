// Tests the meaning of rules, from files to the limit of a request. The rules and the questions are in lookup.txt,
// metric-keys.txt, no-match.txt, rule-set.txt and ends.txt.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { type Outcome, testScenarios } from '../../test/support/scenarios.ts';
import { parseRuleDocument } from './document/document.ts';
import { locateRules, toPositionText } from './lookup/located-rule.ts';
import { explainNoMatch } from './lookup/nearest-rule.ts';
import { formatProblems } from './problem/problem-text.ts';
import type { RuleDocument } from './rule-document.ts';
import { buildRuleSet } from './rule-set.ts';

function readDocuments(folder: string): RuleDocument[] {
  return globSync('*.yaml', { cwd: folder })
    .sort()
    .map((file) => {
      const { document, problems } = parseRuleDocument(
        readFileSync(join(folder, file), 'utf8'),
        file,
      );
      if (document === undefined) throw new Error(formatProblems(problems));
      return document;
    });
}

/** `a=1` is an entry; the value of `a` is empty, or unknown. */
function toEntries(pairs: readonly string[]) {
  return pairs.map((pair) => {
    const [, key = '', value] = /^([^=]*)(?:=(.*))?$/.exec(pair) ?? [];
    return { key, value };
  });
}

/** Answers `match`, `why`, `describe`, `trail` and `load`, which `merge`, `sanitize` and `at TIME` may precede. */
function answer(words: readonly string[], folder: string): Outcome {
  const [first = '', second = '', ...rest] = words;
  const options = { mergeDomains: false, sanitizeMetricDots: false };
  let nowMs = 0;
  let [command, domain, pairs] = [first, second, rest];
  for (;;) {
    if (command === 'merge') options.mergeDomains = true;
    else if (command === 'sanitize') options.sanitizeMetricDots = true;
    else if (command === 'at') nowMs = Date.parse(domain);
    else break;
    const left: string[] = command === 'at' ? pairs : [domain, ...pairs];
    [command = '', domain = '', ...pairs] = left;
  }
  const documents = readDocuments(folder);
  if (command === 'why') {
    const rules = locateRules(documents).get(domain) ?? [];
    const explained = explainNoMatch(domain, rules, toEntries(pairs));
    if (explained === undefined) return { out: 'a rule matches, or can match' };
    const { nearest, reason, hint = 'no hint' } = explained;
    return { out: [reason, hint, nearest ? toPositionText(nearest.rule) : 'nowhere'].join('\n') };
  }
  const built = buildRuleSet(documents, options, nowMs);
  if (!built.ok) return { out: '', err: formatProblems(built.problems), code: 1 };
  const { ruleSet } = built;
  if (command === 'describe') return { out: [...ruleSet.describe()].join('\n') };
  if (command === 'trail') return { out: ruleSet.trail().join('\n') };
  if (command === 'load') {
    const warnings = formatProblems(built.warnings);
    return { out: `${ruleSet.domains.size} domains, ${ruleSet.limitCount} limits\n${warnings}` };
  }
  const entries = toEntries(pairs).map(({ key, value = '' }) => ({ key, value }));
  const match = ruleSet.domains.get(domain)?.match(entries);
  if (match === undefined) return { out: 'no limit' };
  const { unlimited, requestsPerUnit, unit } = match.limit;
  const shared = match.sharedValues?.map((value) => value ?? '-').join(' ');
  const of = match.metricKeyIsStatic ? 'the rule' : 'the request';
  return {
    out: [
      unlimited ? 'unlimited' : `${requestsPerUnit} per ${unit}`,
      `metric key ${match.metricKey}, of ${of}`,
      ...(shared === undefined ? [] : [`shared ${shared}`]),
    ].join('; '),
  };
}

for (const name of ['lookup', 'metric-keys', 'no-match', 'rule-set', 'ends']) {
  const file = new URL(`scenarios/${name}.txt`, import.meta.url);
  testScenarios(test, file, (words, { folder }) => answer(words, folder));
}
