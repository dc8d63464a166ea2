import test from 'ava';
import { runAtOnce } from '../../shared/in-slices.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { placeRules } from '../../shared/rules/lookup/placed-rule.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import { findingSharers, findMeetingCounters } from './meeting-counters.ts';

const limit = 'rate_limit: {unit: minute, requests_per_unit: 3}';
const hour = limit.replace('minute', 'hour');

function place(descriptors: string) {
  const yaml = `domain: d\ndescriptors:\n${descriptors}`;
  const { document } = parseRuleDocument(yaml, 'd.yaml');
  const rules = document && placeRules([document]).get('d');
  if (rules === undefined) throw new Error('the rules are wrong');
  return rules;
}

const nested = (user: string, path: string, below = limit) =>
  `  - {key: user, ${user}${limit}, descriptors: [{key: path, ${path}${below}}]}\n`;

for (const [what, descriptors, isMet] of [
  ['any user, and any path of it', nested('', ''), true],
  ['any user, and one path of it', nested('', 'value: /login, '), true],
  [
    'a path that a value spells',
    `  - {key: user, value: v_path_/a, ${limit}}\n  - {key: user, descriptors: [{key: path, value: /a, ${limit}}]}\n`,
    true,
  ],
  [
    'a wildcard, and what is below another',
    `  - {key: user, value: "v*", ${limit}}\n  - {key: user, descriptors: [{key: path, ${limit}}]}\n`,
    true,
  ],
  [
    'three levels, and two',
    `  - {key: a, descriptors: [{key: b, ${limit}, descriptors: [{key: c, ${limit}}]}]}\n`,
    true,
  ],
  [
    'a key that has another one in it',
    `  - {key: user_ada_path, ${limit}}\n  - {key: user, value: ada, descriptors: [{key: path, ${limit}}]}\n`,
    true,
  ],
  ['different windows', nested('', '', hour), false],
  ['one user, and any path of it', nested('value: ada, ', ''), false],
  [
    'values of one key',
    `  - {key: user, ${limit}}\n  - {key: user, value: ada_x, ${limit}}\n`,
    false,
  ],
  ['other keys', `  - {key: user, ${limit}}\n  - {key: path, ${limit}}\n`, false],
] as const) {
  test(`${what}: ${isMet ? 'a note that they can meet' : 'they cannot meet'}`, (t) => {
    const found = findMeetingCounters('d', place(descriptors));
    t.deepEqual(
      found.map(({ severity, rule }) => [severity, rule]),
      isMet ? [['note', 'meeting-counters']] : [],
    );
  });
}

test('for a request it is found whose counter it uses as well, also that of its own rule for other values', (t) => {
  const rules = place(nested('', ''));
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
  const many = Array.from({ length: 3_000 }, (_, at) => `{key: p${at}, ${limit}}`).join(', ');
  const rules = place(`  - {key: user, descriptors: [${many}]}\n`);
  t.true(findMeetingCounters('d', rules).length <= 1);
});
