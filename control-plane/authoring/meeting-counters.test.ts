import test from 'ava';
import { runAtOnce } from '../../shared/in-slices.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { locateRules } from '../../shared/rules/lookup/located-rule.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import { testLines } from '../../test/support/reviewed-lines.ts';
import { findingSharers, findMeetingCounters } from './meeting-counters.ts';

/** `minute` and `hour` stand for rules with a limit of that window. */
function locate(descriptors: string) {
  const limits = descriptors.replaceAll(
    /\b(minute|hour)\b/g,
    'rate_limit: {unit: $1, requests_per_unit: 3}',
  );
  const { document } = parseRuleDocument(`domain: d\ndescriptors: [${limits}]`, 'd.yaml');
  const rules = document && locateRules([document]).get('d');
  if (rules === undefined) throw new Error('the rules are wrong');
  return rules;
}

testLines(test, new URL('meeting-counters.txt', import.meta.url), (given) => {
  const found = findMeetingCounters('d', locate(given));
  return found.map(({ severity, rule }) => `${severity} ${rule}`).join(', ') || 'nothing';
});

test("a rule that shares a request's counter is found, also the request's own rule for other values", (t) => {
  const rules = locate('{key: user, minute, descriptors: [{key: path, minute}]}');
  const [user] = rules;
  const path = user?.children[0];
  const sharersOf = (rule: typeof user, ...entries: Entry[]) =>
    rule &&
    runAtOnce(findingSharers({ domain: 'd', rules }, entries, rule)).map((each) => each.composite);
  t.deepEqual(sharersOf(user, { key: 'user', value: 'victim_path_/login' }), ['path']);
  const login = { key: 'path', value: '/login' };
  t.deepEqual(sharersOf(path, { key: 'user', value: 'victim' }, login), ['user']);
  const twice = { key: 'path', value: 'b_path_c' };
  t.deepEqual(sharersOf(path, { key: 'user', value: 'a' }, twice), ['user', 'path']);
  t.deepEqual(sharersOf(user, { key: 'user', value: 'victim' }), []);
});

test('many rules are compared in bounded time', (t) => {
  const many = Array.from({ length: 3_000 }, (_, at) => `{key: p${at}, minute}`).join(', ');
  const rules = locate(`{key: user, descriptors: [${many}]}`);
  t.true(findMeetingCounters('d', rules).length <= 1);
});
