import test from 'ava';
import { parseRuleDocument } from '../shared/rules/document/document.ts';
import { buildRuleSet } from '../shared/rules/rule-set.ts';
import { type ComparedRules, compareRules } from './rule-change.ts';

function rulesWith(limit: string): ComparedRules {
  const { document } = parseRuleDocument(
    `domain: d\ndescriptors: [{key: k, rate_limit: {${limit}}}]`,
    'd.yaml',
  );
  const documents = document === undefined ? [] : [document];
  const built = buildRuleSet(documents, { mergeDomains: false, sanitizeMetricDots: false });
  if (!built.ok || document === undefined) throw new Error(limit);
  return { ruleSet: built.ruleSet, documents };
}

function kindsOf(before: string, after: string): string[] {
  return compareRules(rulesWith(before), rulesWith(after)).map(({ kind }) => kind);
}

const bucket = 'unit: minute, requests_per_unit: 100, algorithm: token_bucket';

test('a changed burst is a change of its own', (t) => {
  t.deepEqual(kindsOf(bucket, `${bucket}, burst: 150`), ['burst_changed']);
  t.deepEqual(kindsOf(`${bucket}, burst: 150`, `${bucket}, burst: 50`), ['burst_changed']);
});

test('a burst that follows another rate is none, nor is one that says what held before', (t) => {
  t.deepEqual(kindsOf(bucket, bucket.replace('100', '200')), ['raised']);
  t.deepEqual(kindsOf(bucket, `${bucket}, burst: 100`), []);
});
