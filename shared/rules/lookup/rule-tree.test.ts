import test from 'ava';
import fc from 'fast-check';
import { plainDescriptor, plainLimit, plainRateLimit } from '../../../test/support/plain-rules.ts';
import { runAtOnce } from '../../in-slices.ts';
import { parseRuleDocument } from '../document/document.ts';
import type { Entry, Match } from '../rule.ts';
import type { RuleDescriptor } from '../rule-document.ts';
import { createDomainTree } from './rule-tree.ts';

/** `a=1` is an entry; `a` has an empty value. */
function entriesOf(...texts: string[]): Entry[] {
  return texts.map((text) => {
    const [key = '', value = ''] = text.split('=');
    return { key, value };
  });
}

function matcherOf(yaml: string, sanitizeMetricDots = false) {
  const { document, problems } = parseRuleDocument(`domain: d\ndescriptors:\n${yaml}`, 'r.yaml');
  if (!document) throw new Error(problems.map((problem) => problem.message).join('\n'));
  const { rules } = runAtOnce(createDomainTree('d', [document.descriptors], sanitizeMetricDots));
  return (...texts: string[]) => rules.match(entriesOf(...texts));
}

const hourly = (count: number) => `rate_limit: {unit: hour, requests_per_unit: ${count}}`;

test('a match whose metric key does not depend on the request is one shared object', (t) => {
  const match = matcherOf(`
  - key: path
    value: /img/*
    share_threshold: true
    descriptors:
      - {key: user, ${hourly(2)}}
`);
  const first = match('path=/img/a', 'user=1');
  t.is(first, match('path=/img/b', 'user=2'));
  t.true(Object.isFrozen(first));
  t.deepEqual(first, {
    limit: { ...plainLimit, requestsPerUnit: 2, unit: 'hour' },
    metricKey: 'd.path_/img/.user',
    metricKeyIsStatic: true,
    sharedValues: ['/img/*', undefined],
    parts: undefined,
    listedAs: undefined,
  });
});

// Proof of migrating.md: Metadata of a rule is kept when its metric key depends on the request
test('flags and metadata of a descriptor are part of its limit', (t) => {
  const match = matcherOf(`
  - key: k
    shadow_mode: true
    quota_mode: true
    detailed_metric: true
    metadata: {tier: gold}
    rate_limit: {unit: week, requests_per_unit: 2, name: n, replaces: [{name: a}, {name: b}]}
`);
  t.deepEqual(match('k=v')?.limit, {
    ...plainLimit,
    ...{ requestsPerUnit: 2, unit: 'week', name: 'n', replaces: ['a', 'b'] },
    ...{ shadowMode: true, quotaMode: true, metadata: { tier: 'gold' } },
  });
});

/** The algorithm step by step, without prepared data (behaviour: lookup-order, metric-keys). */
function matchNaively(
  descriptors: readonly RuleDescriptor[],
  entries: readonly Entry[],
): Pick<Match, 'metricKey' | 'sharedValues'> | undefined {
  let level = descriptors;
  const shared: (string | undefined)[] = [];
  const plain: string[] = [];
  let last: RuleDescriptor | undefined;
  for (const { key, value } of entries) {
    const nameOf = (rule: RuleDescriptor) => rule.key + (rule.value && `_${rule.value}`);
    const isWild = (rule: RuleDescriptor) => nameOf(rule).includes('*');
    const text = `${key}_${value}`;
    const exact = level.find((rule) => nameOf(rule) === text);
    const wild = level.find((rule) => isWild(rule) && toRegExp(nameOf(rule)).test(text));
    const alone = level.find((rule) => nameOf(rule) === key);
    last = exact ?? wild ?? alone;
    if (!last) return undefined;
    let part = last.valueToMetric ? value : '';
    let sharedValue: string | undefined;
    if (last === exact && !isWild(last)) part = value;
    else if (last === exact || last === wild) {
      const name = nameOf(last);
      const pattern = name.startsWith(`${key}_`) ? name.slice(key.length + 1) : name;
      part = last.valueToMetric ? value : pattern;
      if (last.shareThreshold) {
        sharedValue = pattern;
        part = pattern.split('*')[0] ?? '';
      }
    }
    shared.push(sharedValue);
    plain.push(part === '' ? key : `${key}_${part}`);
    level = last.descriptors;
  }
  if (!last?.rateLimit) return undefined;
  const isShared = shared.some((each) => each !== undefined);
  const detailed = entries.map(({ key, value }, index) => {
    if (shared[index] !== undefined) return plain[index];
    return isShared && value === '' ? key : `${key}_${value}`;
  });
  return {
    metricKey: ['d', ...(last.detailedMetric ? detailed : plain)].join('.'),
    sharedValues: isShared ? shared : undefined,
  };
}

function toRegExp(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[^a-z_]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

const ruleName = fc.tuple(
  fc.constantFrom('a', 'b', 'a_b', 'a_', 'a_b_c', '_', 'a*'),
  fc.constantFrom('', '', 'b', 'b_c', 'x', 'x*', '*', 'x*y*', 'b*c', '_'),
);

const mostly = fc.integer({ min: 0, max: 3 }).map((number) => number > 0);

function descriptorsArbitrary(depth: number): fc.Arbitrary<RuleDescriptor[]> {
  const children = depth === 0 ? fc.constant([]) : descriptorsArbitrary(depth - 1);
  const descriptor = fc
    .tuple(ruleName, mostly, fc.boolean(), fc.boolean(), fc.boolean(), children)
    .map(([[key, value], isLimited, detailed, valueToMetric, share, descriptors]) => ({
      ...plainDescriptor,
      ...{ key, value, rateLimit: isLimited ? plainRateLimit : undefined, valueToMetric },
      ...{ detailedMetric: detailed, shareThreshold: share && value.endsWith('*'), descriptors },
    })) satisfies fc.Arbitrary<RuleDescriptor>;
  return fc.uniqueArray(descriptor, {
    minLength: 2,
    maxLength: 6,
    selector: ({ key, value }) => key + (value && `_${value}`),
  });
}

const requestEntry = fc.record({
  key: fc.constantFrom('a', 'a', 'b', 'a_b', 'a_', 'ab', '', 'a*'),
  value: fc.constantFrom('', 'b', 'c', 'b_c', 'x', 'xy', 'xzy', 'x*', '*', '_b', 'bbc'),
});

test('every request finds the same rule as the step-by-step algorithm', (t) => {
  let found = 0;
  fc.assert(
    fc.property(
      descriptorsArbitrary(1),
      fc.array(fc.array(requestEntry, { minLength: 1, maxLength: 3 }), {
        minLength: 10,
        maxLength: 10,
      }),
      (descriptors, requests) => {
        const { rules } = runAtOnce(createDomainTree('d', [descriptors], false));
        for (const entries of requests) {
          const match = rules.match(entries);
          const expected = matchNaively(descriptors, entries);
          if (match) found++;
          t.is(match?.metricKey, expected?.metricKey, JSON.stringify(entries));
          t.deepEqual(match?.sharedValues, expected?.sharedValues);
          const steps = rules.traceLookup(entries);
          const isFound = steps.length === entries.length && steps.at(-1)?.hasLimit === true;
          t.is(isFound, match !== undefined, JSON.stringify(entries));
        }
      },
    ),
    { numRuns: 1500 },
  );
  t.log(`${found} requests found a rule`);
  t.true(found > 500);
});
