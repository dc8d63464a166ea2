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
import { createRuleSetBuilder } from './rule-set.ts';

const sixMs = Date.parse('2026-11-24T18:00:00Z');
const separate = { mergeDomains: false, sanitizeMetricDots: false };

function parse(...lines: string[]): RuleDocument {
  const yaml = ['domain: shop', 'descriptors:', ...lines.map((line) => `  ${line}`)].join('\n');
  const { document, problems } = parseRuleDocument(yaml, 'shop.yaml');
  if (document === undefined) throw new Error(problems.map(({ message }) => message).join());
  return document;
}

const lifted = parse(
  '- {key: user, rate_limit: {unit: hour, requests_per_unit: 10}}',
  '- {key: user, value: ada, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}',
);

test('a document without ends is the same object at all times, and all documents are between two ends', (t) => {
  const plain = parse('- {key: user, rate_limit: {unit: hour, requests_per_unit: 10}}');
  const documents = [{ ...plain, domain: 'other', file: 'other.yaml' }, lifted];
  t.is(documentsAt([plain], 0)[0], plain);
  const before = documentsAt(documents, sixMs - 5);
  t.is(before[0], documents[0]);
  t.is(documentsAt(documents, sixMs - 1), before);
  t.is(documentsAt(documents, sixMs)[0], documents[0]);
  t.is(documentsAt(documents, sixMs)[1]?.descriptors.length, 1);
  t.deepEqual([nextEndOf(documents, sixMs - 1), nextEndOf(documents, sixMs)], [sixMs, undefined]);
  const later = parse('- {key: user, until: 2026-11-24T18:00:01Z, rate_limit: {unlimited: true}}');
  t.is(nextEndOf([lifted, later], 0), sixMs);
  t.deepEqual([countEnded(documents, sixMs - 1), countEnded(documents, sixMs)], [0, 1]);
});

test('a builder rebuilds a domain only when one of its rules has ended, or applies again', (t) => {
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

test('a time needs an existing date and an offset', (t) => {
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

test('an end is shown with the remaining time, and with the date if it is more than a day ahead', (t) => {
  t.is(describeEnd(sixMs, sixMs - 42 * 60_000), 'until 18:00:00Z (in 42 min)');
  t.is(describeEnd(sixMs, sixMs - 119_000), 'until 18:00:00Z (in 119 s)');
  t.is(describeEnd(sixMs, sixMs - 3 * 3_600_000), 'until 18:00:00Z (in 3 h)');
  t.is(describeEnd(sixMs, sixMs - 48 * 3_600_000), 'until 2026-11-24T18:00:00Z (in 2 days)');
  t.is(describeEnd(sixMs, sixMs - 72 * 3_600_000), 'until 2026-11-24T18:00:00Z (in 3 days)');
});
