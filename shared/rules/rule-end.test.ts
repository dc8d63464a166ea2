import test from 'ava';
import { runAtOnce } from '../in-slices.ts';
import { parseRuleDocument } from './document/document.ts';
import type { RuleDocument } from './rule-document.ts';
import {
  countEnded,
  describeEnd,
  documentsAt,
  nextEndOf,
  parseTime,
  toTimeText,
} from './rule-end.ts';
import { buildRuleSet, createRuleSetBuilder } from './rule-set.ts';

const sixMs = Date.parse('2026-11-24T18:00:00Z');
const separate = { mergeDomains: false, sanitizeMetricDots: false };
const merging = { ...separate, mergeDomains: true };

function parse(...lines: string[]): RuleDocument {
  const yaml = ['domain: shop', 'descriptors:', ...lines.map((line) => `  ${line}`)].join('\n');
  const { document, problems } = parseRuleDocument(yaml, 'shop.yaml');
  if (document === undefined) throw new Error(problems.map(({ message }) => message).join());
  return document;
}

/** The limit that ada has, and the metric key. */
function limitOfAda(documents: readonly RuleDocument[], nowMs: number, more: string[] = []) {
  const built = buildRuleSet(documents, merging, nowMs);
  if (!built.ok) throw new Error(built.problems.map(({ message }) => message).join());
  const entries = [{ key: 'user', value: 'ada' }, ...more.map((value) => ({ key: 'path', value }))];
  const match = built.ruleSet.domains.get('shop')?.match(entries);
  if (match === undefined) return 'none';
  const { unlimited, requestsPerUnit } = match.limit;
  return `${unlimited ? 'unlimited' : requestsPerUnit} ${match.metricKey}`;
}

const lifted = parse(
  '- {key: user, rate_limit: {unit: hour, requests_per_unit: 10}}',
  '- {key: user, value: ada, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}',
);

test('a rule is in force up to its end, and is as if it were not there from then on', (t) => {
  t.is(limitOfAda([lifted], sixMs - 1), 'unlimited shop.user_ada');
  t.is(limitOfAda([lifted], sixMs), '10 shop.user');
});

test('a rule that ends takes all below it along', (t) => {
  const document = parse(
    '- key: user',
    '  value: ada',
    '  until: 2026-11-24T18:00:00Z',
    '  descriptors:',
    '    - {key: path, rate_limit: {unit: hour, requests_per_unit: 3}}',
  );
  t.is(limitOfAda([document], sixMs - 1, ['/']), '3 shop.user_ada.path');
  t.is(limitOfAda([document], sixMs, ['/']), 'none');
});

test('a rule that ends stands in place of one with the same key and value, and all below that, while it lasts', (t) => {
  const document = parse(
    '- key: user',
    '  value: ada',
    '  rate_limit: {unit: hour, requests_per_unit: 5}',
    '  descriptors:',
    '    - {key: path, rate_limit: {unit: hour, requests_per_unit: 3}}',
    '- {key: user, value: ada, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}',
  );
  t.is(limitOfAda([document], sixMs - 1), 'unlimited shop.user_ada');
  t.is(limitOfAda([document], sixMs - 1, ['/']), 'none');
  t.is(limitOfAda([document], sixMs), '5 shop.user_ada');
  t.is(limitOfAda([document], sixMs, ['/']), '3 shop.user_ada.path');
});

test('the two may be in different files of a merged domain, and below another rule', (t) => {
  const usual = parse('- {key: user, value: ada, rate_limit: {unit: hour, requests_per_unit: 5}}');
  const other = parse(
    '- {key: user, value: ada, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}',
  );
  const documents = [usual, { ...other, file: 'lifts.yaml' }];
  t.is(limitOfAda(documents, sixMs - 1), 'unlimited shop.user_ada');
  t.is(limitOfAda(documents, sixMs), '5 shop.user_ada');
  const nested = parse(
    '- key: user',
    '  descriptors:',
    '    - {key: path, value: /, rate_limit: {unit: hour, requests_per_unit: 3}}',
    '    - {key: path, value: /, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}',
  );
  t.is(limitOfAda([nested], sixMs - 1, ['/']), 'unlimited shop.user.path_/');
  t.is(limitOfAda([nested], sixMs, ['/']), '3 shop.user.path_/');
});

test('two rules with the same key and value that both end are refused in a merged domain, also after they have ended', (t) => {
  const lift = parse(
    '- {key: user, value: ada, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}',
  );
  const documents = [lift, { ...lift, file: 'lifts.yaml' }];
  for (const nowMs of [sixMs - 1, sixMs + 1]) {
    const built = buildRuleSet(documents, merging, nowMs);
    t.deepEqual(built.ok ? [] : built.problems.map(({ message }) => message), [
      "duplicate descriptor composite key 'shop.user_ada'",
    ]);
  }
});

test('a document without ends, and all of them between two ends, stay the same objects', (t) => {
  const plain = parse('- {key: user, rate_limit: {unit: hour, requests_per_unit: 10}}');
  const documents = [{ ...plain, domain: 'other', file: 'other.yaml' }, lifted];
  t.is(documentsAt([plain], 0)[0], plain);
  const before = documentsAt(documents, sixMs - 5);
  t.is(before[0], documents[0]);
  t.is(documentsAt(documents, sixMs - 1), before);
  t.is(documentsAt(documents, sixMs)[0], documents[0]);
  t.is(documentsAt(documents, sixMs)[1]?.descriptors.length, 1);
  t.deepEqual([nextEndOf(documents, sixMs - 1), nextEndOf(documents, sixMs)], [sixMs, undefined]);
  t.deepEqual([countEnded(documents, sixMs - 1), countEnded(documents, sixMs)], [0, 1]);
});

test('a builder builds a domain anew only when one of its rules has ended, or is in force again', (t) => {
  const other = { ...parse('- {key: user, rate_limit: {unlimited: true}}'), domain: 'other' };
  const documents = [lifted, { ...other, file: 'other.yaml' }];
  const builder = createRuleSetBuilder(separate);
  const build = (nowMs: number) => {
    const built = runAtOnce(builder.build(documents, nowMs));
    return built.ok ? ['shop', 'other'].map((name) => built.ruleSet.domains.get(name)) : [];
  };
  const [shop, rest] = build(sixMs - 2);
  t.deepEqual(
    build(sixMs - 1).map((rules, at) => rules === [shop, rest][at]),
    [true, true],
  );
  const after = build(sixMs);
  t.deepEqual([after[0] === shop, after[1] === rest], [false, true]);
  t.not(build(sixMs - 1)[0], after[0]);
});

test('a rule may end 366 days ahead, and not later', (t) => {
  const mostMs = sixMs - 366 * 86_400_000;
  t.true(buildRuleSet([lifted], separate, mostMs).ok);
  const built = buildRuleSet([lifted], separate, mostMs - 1);
  t.deepEqual(
    built.ok ? [] : built.problems.map(({ line, path, message }) => ({ line, path, message })),
    [
      {
        line: 4,
        path: 'descriptors[1].until',
        message: 'until is 2026-11-24T18:00:00Z, more than 366 days ahead',
      },
    ],
  );
});

test('a time needs a date that there is and an offset', (t) => {
  t.is(parseTime('2026-11-24T19:00:00+01:00'), sixMs);
  t.is(parseTime('2026-11-24 18:00:00.25z'), sixMs + 250);
  t.is(parseTime('2028-02-29T00:00:00Z'), Date.parse('2028-02-29'));
  for (const text of [
    '',
    '2026-11-24',
    '2026-11-24T18:00:00',
    '2026-02-29T18:00:00Z',
    '2026-11-24T24:00:00Z',
    '2026-11-24T18:00:60Z',
    '2026-11-24T18:00:00+25:00',
    '2026-11-24T18:00Z',
    '+002026-11-24T18:00:00Z',
    'Tue Nov 24 2026 18:00:00 GMT',
  ]) {
    t.is(parseTime(text), undefined, text);
  }
  t.is(toTimeText(sixMs + 5), '2026-11-24T18:00:00.005Z');
});

test('an end is told with what is left, and with the date where it is far', (t) => {
  t.is(describeEnd(sixMs, sixMs - 42 * 60_000), 'until 18:00:00Z (in 42 min)');
  t.is(describeEnd(sixMs, sixMs - 90_000), 'until 18:00:00Z (in 90 s)');
  t.is(describeEnd(sixMs, sixMs - 3 * 3_600_000), 'until 18:00:00Z (in 3 h)');
  t.is(describeEnd(sixMs, sixMs - 48 * 3_600_000), 'until 2026-11-24T18:00:00Z (in 2 days)');
  t.is(describeEnd(sixMs, sixMs - 72 * 3_600_000), 'until 2026-11-24T18:00:00Z (in 3 days)');
});
