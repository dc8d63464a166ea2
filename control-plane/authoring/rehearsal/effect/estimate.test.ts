import test from 'ava';
import { runAtOnce } from '../../../../shared/in-slices.ts';
import { parseRuleDocument } from '../../../../shared/rules/document/document.ts';
import { createRulesInTime } from '../rules-in-time.ts';
import { estimateEffect } from './estimate.ts';

const nowMs = Date.parse('2026-11-24T10:30:00Z');

function toRules(descriptors: string) {
  const { document } = parseRuleDocument(`domain: d\ndescriptors: ${descriptors}`, 'd.yaml');
  if (document === undefined) throw new Error('the rules are wrong');
  return createRulesInTime([document], { mergeDomains: false, sanitizeMetricDots: false });
}

const limit = (text: string, more = '') => `[{key: customer, ${more} rate_limit: {${text}}}]`;
const perUnit = (count: number, unit: string) => `unit: ${unit}, requests_per_unit: ${count}`;

/** `ada` was refused `refused` times in the last two minutes. */
function estimate(before: string, after: string, refused = 1_036, key = 'customer') {
  const [value] = runAtOnce(
    estimateEffect({
      domain: 'd',
      values: [
        { entries: [{ key, value: 'ada' }], atLeast: refused, atMost: refused, seconds: 120 },
      ],
      before: toRules(before),
      after: toRules(after),
      nowMs,
    }),
  );
  return value && [value.after.atLeast, value.after.atMost];
}

test('a lower limit refuses the hits that it no longer admits: in one window, or in each', (t) => {
  const before = limit(perUnit(20, 'minute'));
  t.deepEqual(estimate(before, limit(perUnit(10, 'minute'))), [1_046, 1_056]);
  t.deepEqual(estimate(before, limit(perUnit(0, 'minute'))), [1_056, 1_076]);
  t.deepEqual(estimate(before, before), [1_036, 1_036]);
});

test('a higher limit admits only the additional hits', (t) => {
  const before = limit(perUnit(20, 'minute'));
  t.deepEqual(estimate(before, limit(perUnit(120, 'minute'))), [836, 936]);
  t.deepEqual(estimate(before, limit(perUnit(5_000, 'minute'))), [0, 0]);
});

test('when a window is longer than the observed time, the counter may already be used up', (t) => {
  const before = limit(perUnit(100, 'day'));
  t.deepEqual(estimate(before, limit(perUnit(50, 'day')), 30), [30, 80]);
  t.deepEqual(estimate(before, limit(perUnit(120, 'day')), 30), [10, 30]);
});

test('shadow mode, no limit, and a rule that no longer matches refuse nothing', (t) => {
  const before = limit(perUnit(20, 'minute'));
  t.deepEqual(estimate(before, limit(perUnit(20, 'minute'), 'shadow_mode: true,')), [0, 0]);
  t.deepEqual(estimate(before, limit('unlimited: true')), [0, 0]);
  t.deepEqual(
    estimate(before, '[{key: other, rate_limit: {unit: day, requests_per_unit: 1}}]'),
    [0, 0],
  );
});

test('another algorithm is estimated as a worker decides it', (t) => {
  const before = limit(perUnit(20, 'minute'));
  const bucket = `${perUnit(60, 'minute')}, burst: 5, algorithm: token_bucket`;
  const [least = 0, most = 0] = estimate(before, limit(bucket)) ?? [];
  // In two minutes, one token a second and the initial five, where 40 passed.
  t.true(least >= 1_076 - 125 - 10 && least <= 1_076 - 125 + 10, String(least));
  t.true(most >= 1_036 && most <= 1_056, String(most));
});

test('a value that the rules in force do not refuse is omitted', (t) => {
  const rules = limit(perUnit(20, 'minute'));
  t.is(estimate(rules, rules, 5, 'nobody'), undefined);
  t.is(estimate(limit('unlimited: true'), rules), undefined);
});
