import test from 'ava';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { checkRules } from './checked-rules.ts';
import { type ComparedRules, compareRules } from './rule-change.ts';

function rulesWith(limit: string): ComparedRules {
  const limits = limit.startsWith('[') ? `rate_limits: ${limit}` : `rate_limit: {${limit}}`;
  const { document } = parseRuleDocument(`domain: d\ndescriptors: [{key: k, ${limits}}]`, 'd.yaml');
  const documents = document === undefined ? [] : [document];
  const checked = checkRules(documents, { mergeDomains: false });
  if (!checked.ok || document === undefined) throw new Error(limit);
  return { ruleSet: checked.rules, documents };
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

test('a changed list says which of its limits begins to count anew', (t) => {
  const day = 'unit: day, requests_per_unit: 9';
  const second = 'unit: second, requests_per_unit: 5';
  const textOf = (before: string, after: string) =>
    compareRules(rulesWith(before), rulesWith(after)).find(({ kind }) => kind === 'list_changed')
      ?.text;
  t.is(
    textOf(day, `[{${second}}, {${day}}]`),
    'none -> 9 per day; begins to count anew: 5 per second',
  );
  t.is(textOf(`[{${second}}, {${day}}]`, `[{${day}}, {${second}}]`), '9 per day -> 5 per second');
  t.is(
    textOf(second, `[{${second}}, {${day}}]`),
    'none -> 9 per day; begins to count anew: 5 per second and 9 per day',
  );
});

test('a limit of a list is compared with the one of the same window, and a list with other windows is another one', (t) => {
  const of = (list: string) => rulesWith(`[{unit: second, requests_per_unit: 5}, ${list}]`);
  const kinds = (was: string, is: string) =>
    compareRules(of(was), of(is)).map(({ kind, text }) => `${kind}: ${text}`);
  const hour = '{unit: hour, requests_per_unit: 100}';
  const half = hour.replace('100', '50');
  const day = '{unit: day, requests_per_unit: 500}';
  t.deepEqual(kinds(hour, half), ['lowered: 100 per hour -> 50 per hour']);
  t.deepEqual(kinds(`${hour}, ${day}`, `${day}, ${half}`), [
    'lowered: 100 per hour -> 50 per hour',
  ]);
  t.deepEqual(kinds(`${hour}, ${day}`, `${half}`), [
    'lowered: 100 per hour -> 50 per hour',
    'list_changed: 100 per hour and 500 per day -> 50 per hour; begins to count anew: 50 per hour',
  ]);
  t.deepEqual(kinds(`${hour}, ${day}`, `${day}, ${hour}`), [
    'list_changed: 100 per hour and 500 per day -> 500 per day and 100 per hour',
  ]);
});
