import test from 'ava';
import { parseRuleDocument } from './document/document.ts';
import { formatProblems } from './problem/problem-text.ts';
import { buildRuleSet } from './rule-set.ts';
import { toSymbols } from './shared-counters.ts';

const limit = 'rate_limit: {unit: minute, requests_per_unit: 3}';

function problemsOf(files: Record<string, string>): string {
  const documents = Object.entries(files).flatMap(([file, descriptor]) => {
    const domain = file.replace('.yaml', '');
    const yaml = `domain: ${domain}\ndescriptors:\n  - {${descriptor}, ${limit}}\n`;
    return parseRuleDocument(yaml, file).document ?? [];
  });
  const built = buildRuleSet(documents, { mergeDomains: false, sanitizeMetricDots: false });
  return formatProblems(built.ok ? built.warnings : built.problems);
}

// Proof of SECURITY.md: makes counters of two domains meet (key `eu_user` of `shop`, `user` of `shop_eu`): `check` warns
test('rules of two domains that can count under one key are reported with both positions', (t) => {
  t.is(
    problemsOf({ 'shop.yaml': 'key: eu_user', 'shop_eu.yaml': 'key: user' }),
    [
      "shop_eu.yaml:3:5: warning: this rule of domain 'shop_eu' and one of domain 'shop' can count under one key, and use up each other's limit [shared-counter]",
      '      - {key: user, rate_limit: {unit: minute, requests_per_unit: 3}}',
      '        ^',
      "    hint: the other one is at shop.yaml:3:5; rename a key or a domain so that they differ in more than where a '_' stands",
    ].join('\n'),
  );
});

const collisions: readonly (readonly [string, string])[] = [
  ['key: eu, value: user_ada', 'key: user, value: ada'],
  ['key: eu', 'key: user'],
  ['key: eu, value: "user_*"', 'key: user'],
  ['key: eu_user, value: ada', 'key: user'],
  ['key: eu_user, value: "a*"', 'key: user, value: ada'],
];
for (const [shop, shopEu] of collisions) {
  test(`(${shop}) of shop and (${shopEu}) of shop_eu can meet`, (t) => {
    t.regex(problemsOf({ 'shop.yaml': shop, 'shop_eu.yaml': shopEu }), /can count under one key/);
  });
}

const apart: readonly (readonly [string, string])[] = [
  ['key: user', 'key: user'],
  ['key: eu_user, value: bob', 'key: user, value: ada'],
  ['key: eu_users', 'key: user, value: ada'],
  ['key: eu_user, value: "a*", share_threshold: true', 'key: user, value: ada'],
  ['key: eu_user, value: ada', 'key: user, value: "b*", share_threshold: true'],
];
for (const [shop, shopEu] of apart) {
  test(`(${shop}) of shop and (${shopEu}) of shop_eu cannot meet`, (t) => {
    t.is(problemsOf({ 'shop.yaml': shop, 'shop_eu.yaml': shopEu }), '');
  });
}

test('names of domains that are only similar are not compared', (t) => {
  t.is(problemsOf({ 'shop.yaml': 'key: eu_user', 'shopeu.yaml': 'key: user' }), '');
});

test('many rules with long keys are compared in bounded time, and reported or left out', (t) => {
  const long = 'a_'.repeat(450);
  const rows = (domain: string) =>
    Array.from({ length: 200 }, (_, at) => `  - {key: ${long}${domain}${at}, ${limit}}`).join('\n');
  const documents = ['d', 'd_a', 'd_a_a'].flatMap(
    (domain) =>
      parseRuleDocument(`domain: ${domain}\ndescriptors:\n${rows(domain)}\n`, domain).document ??
      [],
  );
  const options = { mergeDomains: false, sanitizeMetricDots: false };
  t.true(buildRuleSet(documents, options).ok);
  const shareThreshold = false;
  t.is(toSymbols(['d', '_'], { key: 'k', value: 'x'.repeat(1_000), shareThreshold }), undefined);
  const value = 'x'.repeat(100 * 1024 * 1024);
  t.is(toSymbols(['d', '_'], { key: 'k', value, shareThreshold }), undefined);
});
