import test from 'ava';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { cpuMs } from '../../../test/support/cpu-time.ts';
import { createIsOfDomain, findingRuleOwners, namingRules } from './rule-owners.ts';

const { document } = parseRuleDocument(
  `domain: d
descriptors:
  - key: user
    rate_limits:
      - {unit: minute, requests_per_unit: 5}
      - {unit: hour, unit_multiplier: 2, requests_per_unit: 50}
    descriptors:
      - {key: plan, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 5}}
      - {key: minute, rate_limit: {unit: day, requests_per_unit: 5}}
  - {key: path, value: /a/*, rate_limit: {unit: day, requests_per_unit: 5}}
  - {key: path, value: /b/*, share_threshold: true, rate_limit: {unit: day, requests_per_unit: 5}}
  - {key: host, value: a.example:80, rate_limit: {unit: day, requests_per_unit: 5}}
`,
  'd.yaml',
);
const owners = runAtOnce(findingRuleOwners(document ? [document] : []));

const namesOf = (metricKeys: readonly string[]) =>
  runAtOnce(
    namingRules(
      metricKeys.map((rule) => ({ rule, hits: [1], overLimit: [], nearLimit: [] })),
      owners,
    ),
  ).map(({ rule }) => rule);

test('counts are attributed to the rule with the longest name that begins their metric key', (t) => {
  t.deepEqual(namesOf(['d.user', 'd.user_ada', 'd.user.plan_free', 'd.path_/a/*']), [
    'd.user',
    'd.user',
    'd.user.plan',
    'd.path_/a/*',
  ]);
  const others = ['d.username', 'other.user'];
  t.deepEqual(namesOf(others), others);
});

test('the counts of single limits of a list are not added to those of their rule', (t) => {
  const keys = ['d.user', 'd.user.2_hour', 'd.user_ada', 'd.user_ada.minute', 'd.user_ada.2_hour'];
  t.deepEqual(namesOf(keys), ['d.user', 'd.user']);
  t.deepEqual(namesOf(['d.user.minute']), ['d.user.minute'], 'a rule of that name');
  t.deepEqual(namesOf(['d.user.plan_minute']), ['d.user.plan'], 'a value');
});

test('a rule is found by its metric key: without the star of a shared counter, and with replaced characters', (t) => {
  t.deepEqual(namesOf(['d.path_/b/', 'd.host_a.example_80', 'd.host_a_example_80']), [
    'd.path_/b/*',
    'd.host_a.example:80',
    'd.host_a.example:80',
  ]);
});

test('finding no rule for thousands of long metric keys costs next to nothing', (t) => {
  // The most and the longest keys that links may report; comparing one by one took fifteen seconds.
  const keys = Array.from({ length: 20_000 }, (_, index) => `d.${index}`.padEnd(1_024, '._'));
  const beforeMs = cpuMs();
  const found = keys.filter((key) => owners.find(key) !== undefined);
  t.deepEqual(found, []);
  t.true(cpuMs() - beforeMs < 3_000);
});

test('a value of megabytes above other rules is not copied into their names', (t) => {
  const below = Array.from({ length: 60 }, (_, index) => `{key: k${index}}`).join(', ');
  const text = `domain: d\ndescriptors: [{key: k, value: ${'v'.repeat(3_000_000)}, descriptors: [${below}]}]\n`;
  const long = parseRuleDocument(text, 'd.yaml').document;
  const beforeMs = cpuMs();
  runAtOnce(findingRuleOwners(long ? [long] : []));
  t.true(cpuMs() - beforeMs < 700, 'it took 1,450');
});

test('a domain has none of the metric keys of one whose name continues after a dot', (t) => {
  const documents = ['shop', 'shop.eu', 'shopping'].map((domain) => ({
    ...{ file: `${domain}.yaml`, domain, position: undefined, descriptors: [] },
  }));
  const keys = ['shop.a', 'shop.eu.a', 'shop.europe.a', 'shopping.a', 'shop.eu'];
  const of = (domain: string) => keys.filter(createIsOfDomain(domain, documents));
  t.deepEqual(of('shop'), ['shop.a', 'shop.europe.a', 'shop.eu']);
  t.deepEqual(of('shop.eu'), ['shop.eu.a']);
});
