import test from 'ava';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { checkRules } from './checked-rules.ts';
import { type ComparedRules, compareRules } from './rule-change.ts';

const nowMs = Date.parse('2026-01-01T00:00:00Z');

function rulesWith(limit: string): ComparedRules {
  return rulesOf(
    `{key: k, ${limit.startsWith('[') ? `rate_limits: ${limit}` : `rate_limit: {${limit}}`}}`,
  );
}

function rulesOf(rules: string): ComparedRules {
  const { document } = parseRuleDocument(`domain: d\ndescriptors: [${rules}]`, 'd.yaml');
  const documents = document === undefined ? [] : [document];
  const checked = checkRules(documents, { mergeDomains: false }, nowMs);
  if (!checked.ok || document === undefined) throw new Error(rules);
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
    '9 per day -> 5 per second and 9 per day; begins to count anew: 5 per second',
  );
  t.is(
    textOf(`[{${second}}, {${day}}]`, `[{${day}}, {${second}}]`),
    '5 per second and 9 per day -> 9 per day and 5 per second',
  );
  t.is(
    textOf(second, `[{${second}}, {${day}}]`),
    '5 per second -> 5 per second and 9 per day; begins to count anew: 5 per second and 9 per day',
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
    'list_changed: 5 per second and 100 per hour and 500 per day -> 5 per second and 50 per hour; begins to count anew: 50 per hour',
  ]);
  t.deepEqual(kinds(`${hour}, ${day}`, `${day}, ${hour}`), [
    'list_changed: 5 per second and 100 per hour and 500 per day -> 5 per second and 500 per day and 100 per hour',
  ]);
  t.deepEqual(kinds(hour, day), ['lowered: 100 per hour (2,400 per day) -> 500 per day']);
});

test('a rule that ends is compared with its end, and with what stays after it', (t) => {
  const rule = 'key: k, rate_limit: {unit: day, requests_per_unit: 9}';
  const stays = `{${rule}}`;
  const until = (month: number) => `{until: 2026-0${month}-01T00:00:00Z, ${rule}}`;
  const lifted = (limit: number, month = 3) =>
    `${stays.replace('9', `${limit}`)}, ${until(month).replace(/unit:.*9/, 'unlimited: true')}`;
  const kinds = (was: string, is: string) =>
    compareRules(rulesOf(was), rulesOf(is)).map(({ kind, text }) => `${kind}: ${text}`);
  t.deepEqual(kinds(stays, until(3)), [
    'limit_removed: 9 per day -> no limit, once rules have ended',
  ]);
  const moved = ['end_changed: until 2026-03-01T00:00:00Z -> until 2026-04-01T00:00:00Z'];
  t.deepEqual(kinds(until(3), until(4)), moved);
  t.deepEqual(kinds(lifted(9), lifted(9, 4)), moved);
  t.deepEqual(kinds(lifted(9), lifted(5)), [
    'lowered: 9 per day -> 5 per day, once rules have ended',
  ]);
  t.deepEqual(kinds(stays, lifted(9)), ['unlimited: 9 per day -> unlimited']);
});
