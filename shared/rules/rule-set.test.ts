import test from 'ava';
import { parseRuleDocument } from './document/document.ts';
import { formatProblems } from './problem/problem-text.ts';
import type { RuleDescriptor, RuleDocument } from './rule-document.ts';
import { buildRuleSet, createRuleSetBuilder, type RuleSetOptions } from './rule-set.ts';

const separate = { mergeDomains: false, sanitizeMetricDots: false };
const merging = { mergeDomains: true, sanitizeMetricDots: false };

function documentOf(file: string, ...lines: string[]): RuleDocument {
  const { document, problems } = parseRuleDocument(lines.join('\n'), file);
  if (!document) throw new Error(formatProblems(problems));
  return document;
}

const limit = 'rate_limit: {unit: hour, requests_per_unit: 1}';
const a1 = documentOf('a.yaml', 'domain: shop', 'descriptors:', `  - {key: user, ${limit}}`);
const a2 = documentOf('b.yaml', 'domain: shop', 'descriptors:', `  - {key: path, ${limit}}`);
const a3 = documentOf('c.yaml', 'domain: shop', 'descriptors:', '', `  - {key: user, ${limit}}`);
const other = documentOf('d.yaml', 'domain: other', 'descriptors:', `  - {key: user, ${limit}}`);

test('each domain of several documents has its own rules', (t) => {
  const built = buildRuleSet([other, a1], separate);
  t.true(built.ok);
  if (!built.ok) return;
  t.is(built.ruleSet.domains.size, 2);
  t.is(built.ruleSet.limitCount, 2);
  t.is(built.ruleSet.domains.get('shop')?.domain, 'shop');
  t.truthy(built.ruleSet.domains.get('shop')?.match([{ key: 'user', value: 'ada' }]));
  t.is(built.ruleSet.domains.get('shop')?.match([{ key: 'path', value: '/' }]), undefined);
  t.is(built.ruleSet.domains.get('Shop'), undefined);
  t.is(built.ruleSet.domains.get('constructor'), undefined);
  t.deepEqual(built.warnings, []);
});

test('no documents are a rule set without domains', (t) => {
  const built = buildRuleSet([], separate);
  t.true(built.ok && built.ruleSet.domains.size === 0 && built.ruleSet.describe().length === 0);
});

test('a domain in two files is refused, and both places are named', (t) => {
  const built = buildRuleSet([a2, a1, other], separate);
  t.is(
    built.ok ? '' : formatProblems(built.problems),
    [
      "b.yaml:1:9: error: duplicate domain 'shop' in config file",
      '    domain: shop',
      '            ^',
      '    hint: the first one is at a.yaml:1:9; to merge them, set MERGE_DOMAIN_CONFIG=true (a worker) or --merge-domains (a control plane, check)',
    ].join('\n'),
  );
});

test('merged documents are one domain', (t) => {
  const built = buildRuleSet([a2, a1], merging);
  t.true(built.ok);
  if (!built.ok) return;
  t.is(built.ruleSet.domains.size, 1);
  t.deepEqual(built.ruleSet.describe(), [
    'shop.user: unit=HOUR requests_per_unit=1, shadow_mode: false, quota_mode: false',
    'shop.path: unit=HOUR requests_per_unit=1, shadow_mode: false, quota_mode: false',
  ]);
});

test('the same descriptor in merged files is refused, and both places are named', (t) => {
  const built = buildRuleSet([a3, a1], merging);
  t.is(
    built.ok ? '' : formatProblems(built.problems),
    [
      "c.yaml:4:5: error: duplicate descriptor composite key 'shop.user'",
      `      - {key: user, ${limit}}`,
      '        ^',
      '    hint: the first one is at a.yaml:3:5; keep one of them',
    ].join('\n'),
  );
});

test('how to join the same descriptor of merged files is said as within one file', (t) => {
  const of = (file: string, rest: string) =>
    documentOf(file, 'domain: shop', 'descriptors:', `  - {key: user, ${rest}}`);
  const limitOf = (unit: string) => `rate_limit: {unit: ${unit}, requests_per_unit: 2}`;
  const nested = `descriptors: [{key: path, ${limitOf('hour')}}]`;
  const hints = [limitOf('day'), nested].map((second) => {
    const built = buildRuleSet([of('a.yaml', limitOf('hour')), of('b.yaml', second)], merging);
    return built.ok ? '' : built.problems.map(({ hint }) => hint).join();
  });
  t.deepEqual(hints, [
    'the first one is at a.yaml:3:5; keep one item, with rate_limits: [{unit: hour, requests_per_unit: 2}, {unit: day, requests_per_unit: 2}]',
    'the first one is at a.yaml:3:5; keep one item, with the descriptors and the rate_limit',
  ]);
});

test('wildcards of merged files are tried in the order of the file names', (t) => {
  const wild = (file: string, value: string, count: number) =>
    documentOf(
      file,
      'domain: shop',
      'descriptors:',
      `  - {key: k, value: ${value}, rate_limit: {unit: hour, requests_per_unit: ${count}}}`,
    );
  for (const documents of [
    [wild('1.yaml', 'x*', 1), wild('2.yaml', 'xy*', 2)],
    [wild('2.yaml', 'xy*', 2), wild('1.yaml', 'x*', 1)],
  ]) {
    const built = buildRuleSet(documents, merging);
    const rules = built.ok ? built.ruleSet.domains.get('shop') : undefined;
    t.is(rules?.match([{ key: 'k', value: 'xyz' }])?.limit.requestsPerUnit, 1);
  }
});

test('a replaced name that no rule of the domain has is a warning, with the nearest name', (t) => {
  const document = documentOf(
    'a.yaml',
    'domain: shop',
    'descriptors:',
    '  - {key: a, rate_limit: {unit: hour, requests_per_unit: 1, name: base_limit}}',
    '  - key: b',
    '    rate_limit: {unit: hour, requests_per_unit: 1, replaces: [{name: base_limit},',
    '        {name: base_limt}]}',
  );
  const elsewhere = documentOf(
    'b.yaml',
    'domain: other',
    'descriptors:',
    '  - {key: a, rate_limit: {unit: hour, requests_per_unit: 1, name: base_limt}}',
  );
  const built = buildRuleSet([document, elsewhere], separate);
  t.true(built.ok);
  t.is(
    built.ok ? formatProblems(built.warnings) : '',
    [
      "a.yaml:6:16: warning: replaces names 'base_limt', which no rule of domain 'shop' has [unknown-replaced-name]",
      '            {name: base_limt}]}',
      '                   ^',
      "    hint: did you mean 'base_limit'?",
    ].join('\n'),
  );
});

test('each rule with a limit is described, parents before their children', (t) => {
  const document = documentOf(
    'a.yaml',
    'domain: d',
    'descriptors:',
    '  - key: z',
    '    shadow_mode: true',
    '    rate_limit: {unit: week, requests_per_unit: 5}',
    '    descriptors:',
    '      - key: a',
    '        descriptors:',
    '          - {key: wild, value: pre.*, quota_mode: true, rate_limit: {unlimited: true}}',
    '  - {key: b, rate_limit: {unit: year, requests_per_unit: 4294967295}}',
  );
  const built = buildRuleSet([document], { mergeDomains: false, sanitizeMetricDots: true });
  t.deepEqual(built.ok && built.ruleSet.describe(), [
    'd.z: unit=WEEK requests_per_unit=5, shadow_mode: true, quota_mode: false',
    'd.z.a.wild_pre.*: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: true',
    'd.b: unit=YEAR requests_per_unit=4294967295, shadow_mode: false, quota_mode: false',
  ]);
});

test('documents without places are named by file alone', (t) => {
  const bare = (file: string): RuleDocument => ({ ...a1, file, position: undefined });
  const built = buildRuleSet([bare('x'), bare('y')], separate);
  t.is(
    built.ok ? '' : formatProblems(built.problems),
    "y: error: domain: duplicate domain 'shop' in config file\n    hint: the first one is at x; to merge them, set MERGE_DOMAIN_CONFIG=true (a worker) or --merge-domains (a control plane, check)",
  );
});

test('the trail of a load names each domain and each descriptor', (t) => {
  const nested = documentOf(
    'e.yaml',
    'domain: other',
    'descriptors:',
    '  - key: user',
    '    value: ada',
    '    descriptors:',
    '      - {key: path, rate_limit: {unlimited: true}}',
  );
  const built = buildRuleSet([a1, a2, nested], merging);
  t.deepEqual(built.ok && built.ruleSet.trail(), [
    'loading domain: shop',
    'patching domain: shop',
    'loading domain: other',
    'loading descriptor: key=shop.user ratelimit={requests_per_unit=1, unit=HOUR, unlimited=false, shadow_mode=false, quota_mode=false}',
    'loading descriptor: key=shop.path ratelimit={requests_per_unit=1, unit=HOUR, unlimited=false, shadow_mode=false, quota_mode=false}',
    'loading descriptor: key=other.user_ada',
    'loading descriptor: key=other.user_ada.path ratelimit={requests_per_unit=0, unit=UNKNOWN, unlimited=true, shadow_mode=false, quota_mode=false}',
  ]);
});

/** Of how many descriptors more than its end and its children is read at most between two places where others have
 * their turn, and how many steps there are. */
function countSteps(document: RuleDocument, options: RuleSetOptions) {
  const touched = new Set<RuleDescriptor>();
  const watched = (all: readonly RuleDescriptor[]): RuleDescriptor[] =>
    all.map(
      (descriptor) =>
        new Proxy(
          { ...descriptor, descriptors: watched(descriptor.descriptors) },
          {
            get(target, name) {
              if (name !== 'untilMs' && name !== 'descriptors') touched.add(target);
              return Reflect.get(target, name);
            },
          },
        ),
    );
  const copy = { ...document, descriptors: watched(document.descriptors) };
  const building = createRuleSetBuilder(options).build([copy], 0);
  let most = 0;
  for (let steps = 1; ; steps++) {
    touched.clear();
    const { done } = building.next();
    most = Math.max(most, touched.size);
    if (done) return { most, steps };
  }
}

test('however many rules a document has, and wherever, others have their turn while it is built', (t) => {
  const rules = (length: number, indent: string) =>
    Array.from(
      { length },
      (_, at) => `${indent}- {key: k${at}, rate_limit: {unit: second, requests_per_unit: 1}}`,
    );
  const flat = ['domain: d', 'descriptors:', ...rules(5_000, '  ')];
  const nested = [
    'domain: d',
    'descriptors:',
    '  - key: top',
    '    descriptors:',
    ...rules(5_000, '      '),
  ];
  for (const lines of [flat, nested]) {
    const { document } = parseRuleDocument(lines.join('\n'), 'large.yaml');
    if (document === undefined) throw new Error('not a document');
    for (const options of [separate, merging, { ...separate, fixedWindowsOnly: true }]) {
      const { most, steps } = countSteps(document, options);
      t.true(most <= 1_100, `${most} descriptors in one step`);
      t.true(steps <= 200, `${steps} steps`);
    }
  }
});
