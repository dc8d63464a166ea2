import test from 'ava';
import fc from 'fast-check';
import { runAtOnce } from '../../in-slices.ts';
import { parseRuleDocument } from '../document/document.ts';
import { plainShape } from '../limit-shape.ts';
import type { Entry, Match } from '../rule.ts';
import type { RuleDescriptor } from '../rule-document.ts';
import { noFlags, noModes } from '../rule-keys.ts';
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
  const { rules } = runAtOnce(createDomainTree('d', document.descriptors, sanitizeMetricDots));
  return (...texts: string[]) => rules.match(entriesOf(...texts));
}

const hourly = (count: number) => `rate_limit: {unit: hour, requests_per_unit: ${count}}`;

test('a request matches only rules of its own depth', (t) => {
  const match = matcherOf(`
  - key: host
    ${hourly(8)}
    descriptors:
      - {key: path, ${hourly(2)}}
  - key: b
    descriptors:
      - {key: c, ${hourly(6)}}
`);
  t.is(match('host=h')?.limit.requestsPerUnit, 8);
  t.is(match('host=h', 'path=/')?.limit.requestsPerUnit, 2);
  t.is(match('host=h', 'path=/', 'q=1'), undefined);
  t.is(match('host=h', 'verb=GET'), undefined);
  t.is(match('b=x'), undefined);
  t.is(match('c=x'), undefined);
  t.is(match(), undefined);
});

test('a value goes before a wildcard, and a wildcard before the key alone', (t) => {
  const match = matcherOf(`
  - {key: n, ${hourly(1)}}
  - {key: n, value: ab*, ${hourly(2)}}
  - {key: n, value: abc, ${hourly(3)}}
`);
  t.is(match('n=abc')?.limit.requestsPerUnit, 3);
  t.is(match('n=abcd')?.limit.requestsPerUnit, 2);
  t.is(match('n=b')?.limit.requestsPerUnit, 1);
  t.is(match('n')?.limit.requestsPerUnit, 1);
  t.is(match('N=abc'), undefined);
});

test('of several matching wildcards the first in the configuration is taken', (t) => {
  const match = matcherOf(`
  - {key: n, value: x*, ${hourly(1)}}
  - {key: n, value: xy*, ${hourly(2)}}
`);
  t.is(match('n=xy1')?.limit.requestsPerUnit, 1);
});

test('a more specific rule without a limit hides the key alone, also below it', (t) => {
  const match = matcherOf(`
  - key: svc
    value: pay
    descriptors:
      - {key: op, value: refund, ${hourly(3)}}
  - key: svc
    ${hourly(30)}
    descriptors:
      - {key: op, ${hourly(300)}}
`);
  t.is(match('svc=pay'), undefined);
  t.is(match('svc=pay', 'op=charge'), undefined);
  t.is(match('svc=pay', 'op=refund')?.limit.requestsPerUnit, 3);
  t.is(match('svc=web', 'op=charge')?.limit.requestsPerUnit, 300);
});

test('key and value are matched as one text joined by an underscore', (t) => {
  const match = matcherOf(`
  - {key: a_b, ${hourly(3)}}
  - {key: c, value: d_e, ${hourly(4)}}
`);
  for (const text of ['a=b', 'a_b=c', 'a_b']) t.is(match(text)?.limit.requestsPerUnit, 3, text);
  for (const text of ['c=d_e', 'c_d=e']) t.is(match(text)?.limit.requestsPerUnit, 4, text);
});

test('a name with many underscores is found by every split of it', (t) => {
  const key = 'k_'.repeat(50);
  const match = matcherOf(`
  - {key: ${key}, value: v, ${hourly(3)}}
  - {key: ${key}, ${hourly(4)}}
`);
  t.is(match(`${key}=v`)?.limit.requestsPerUnit, 3);
  t.is(match(`${'k_'.repeat(49)}k=_v`)?.limit.requestsPerUnit, 3);
  t.is(match(`k=${'k_'.repeat(49)}_v`)?.limit.requestsPerUnit, 3);
  t.is(match(`${key}=w`)?.limit.requestsPerUnit, 4);
});

test('names of built-in properties are names like others', (t) => {
  const match = matcherOf(`
  - {key: __proto__, value: constructor, ${hourly(1)}}
  - {key: toString, ${hourly(2)}}
`);
  t.is(match('__proto__=constructor')?.limit.requestsPerUnit, 1);
  t.is(match('toString=x')?.limit.requestsPerUnit, 2);
  t.is(match('constructor=x'), undefined);
  t.is(match('hasOwnProperty'), undefined);
});

test('a match whose metric key needs nothing of the request is one shared object', (t) => {
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
    limit: {
      requestsPerUnit: 2,
      unit: 'hour',
      unlimited: false,
      name: '',
      replaces: [],
      ...plainShape,
      limiter: undefined,
      counterTag: '',
      ...noModes,
      metadata: undefined,
    },
    metricKey: 'd.path_/img/.user',
    metricKeyIsStatic: true,
    sharedValues: ['/img/*', undefined],
    parts: undefined,
    listedAs: undefined,
  });
});

// Proof of differences.md: Metadata of a rule is kept when its metric key depends on the request
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
    requestsPerUnit: 2,
    unit: 'week',
    unlimited: false,
    ...plainShape,
    limiter: undefined,
    counterTag: '',
    name: 'n',
    replaces: ['a', 'b'],
    ...noModes,
    shadowMode: true,
    quotaMode: true,
    metadata: { tier: 'gold' },
  });
});

const metricCases: [title: string, yaml: string, request: string[], key: string, fixed: boolean][] =
  [
    ['key only', `  - {key: k, ${hourly(1)}}`, ['k=v'], 'd.k', true],
    ['an explicit value', `  - {key: k, value: v, ${hourly(1)}}`, ['k=v'], 'd.k_v', true],
    ['a wildcard', `  - {key: k, value: v*, ${hourly(1)}}`, ['k=vw'], 'd.k_v*', true],
    [
      'value_to_metric',
      `  - {key: k, value_to_metric: true, ${hourly(1)}}`,
      ['k=v'],
      'd.k_v',
      false,
    ],
    [
      'value_to_metric without a value',
      `  - {key: k, value_to_metric: true, ${hourly(1)}}`,
      ['k'],
      'd.k',
      false,
    ],
    [
      'value_to_metric with an explicit value',
      `  - {key: k, value: v, value_to_metric: true, ${hourly(1)}}`,
      ['k=v'],
      'd.k_v',
      true,
    ],
    [
      'value_to_metric with a wildcard',
      `  - {key: k, value: v*, value_to_metric: true, ${hourly(1)}}`,
      ['k=vw'],
      'd.k_vw',
      false,
    ],
    [
      'value_to_metric with a shared wildcard',
      `  - {key: k, value: v*, value_to_metric: true, share_threshold: true, ${hourly(1)}}`,
      ['k=vw'],
      'd.k_v',
      true,
    ],
    [
      'detailed_metric',
      `  - {key: k, detailed_metric: true, ${hourly(1)}}`,
      ['k=v'],
      'd.k_v',
      false,
    ],
    [
      'detailed_metric without a value',
      `  - {key: k, detailed_metric: true, ${hourly(1)}}`,
      ['k'],
      'd.k_',
      false,
    ],
    [
      'detailed_metric with an explicit value',
      `  - {key: k, value: v, detailed_metric: true, ${hourly(1)}}`,
      ['k=v'],
      'd.k_v',
      true,
    ],
    [
      'detailed_metric with a wildcard',
      `  - {key: k, value: v*, detailed_metric: true, ${hourly(1)}}`,
      ['k=vw'],
      'd.k_vw',
      false,
    ],
    [
      'detailed_metric below a shared wildcard',
      `  - {key: k, value: v*, share_threshold: true, descriptors: [{key: l, detailed_metric: true, ${hourly(1)}}]}`,
      ['k=vw', 'l=x'],
      'd.k_v.l_x',
      false,
    ],
    [
      'detailed_metric below a shared wildcard, without a value',
      `  - {key: k, value: v*, share_threshold: true, descriptors: [{key: l, detailed_metric: true, ${hourly(1)}}]}`,
      ['k=vw', 'l'],
      'd.k_v.l',
      false,
    ],
    [
      'a shared lone star',
      `  - {key: k, value: '*', share_threshold: true, ${hourly(1)}}`,
      ['k=v'],
      'd.k',
      true,
    ],
    [
      'detailed_metric of a parent has no effect',
      `  - {key: k, detailed_metric: true, descriptors: [{key: l, ${hourly(1)}}]}`,
      ['k=v', 'l=x'],
      'd.k.l',
      true,
    ],
    ['a star in the key', `  - {key: g*, ${hourly(1)}}`, ['gooo=v'], 'd.gooo_g*', false],
  ];
for (const [title, yaml, request, metricKey, isStatic] of metricCases) {
  test(`metric key: ${title}`, (t) => {
    const found = matcherOf(yaml)(...request);
    t.is(found?.metricKey, metricKey);
    t.is(found?.metricKeyIsStatic, isStatic);
  });
}

test('sanitised dots change metric keys, not matching and not shared values', (t) => {
  const match = matcherOf(
    `
  - {key: a.b, value: c.d, ${hourly(1)}}
  - {key: e.f, value: 'g.*', share_threshold: true, ${hourly(2)}}
  - {key: h.i, detailed_metric: true, ${hourly(3)}}
`,
    true,
  );
  t.is(match('a.b=c.d')?.metricKey, 'd.a_b_c_d');
  t.is(match('a_b=c_d'), undefined);
  t.like(match('e.f=g.1'), { metricKey: 'd.e_f_g_', sharedValues: ['g.*'] });
  t.is(match('h.i=1.2')?.metricKey, 'd.h_i_1_2');
});

/** The algorithm step by step, with nothing prepared (behaviour: lookup-order, metric-keys). */
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
      key,
      value,
      rateLimit: isLimited
        ? {
            ...plainShape,
            unit: 'hour',
            requestsPerUnit: 1,
            unlimited: false,
            name: '',
            replaces: [],
          }
        : undefined,
      furtherLimits: [],
      untilMs: undefined,
      ...noFlags,
      detailedMetric: detailed,
      valueToMetric,
      shareThreshold: share && value.endsWith('*'),
      metadata: undefined,
      descriptors,
      position: undefined,
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

test('every request finds what the algorithm finds step by step', (t) => {
  let found = 0;
  fc.assert(
    fc.property(
      descriptorsArbitrary(1),
      fc.array(fc.array(requestEntry, { minLength: 1, maxLength: 3 }), {
        minLength: 10,
        maxLength: 10,
      }),
      (descriptors, requests) => {
        const { rules } = runAtOnce(createDomainTree('d', descriptors, false));
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
