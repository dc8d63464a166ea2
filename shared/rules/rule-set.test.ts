import test from 'ava';
import { createRandom } from '../../test/support/random.ts';
import { runAtOnce } from '../in-slices.ts';
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

test('documents without positions are named by file alone', (t) => {
  const bare = (file: string): RuleDocument => ({ ...a1, file, position: undefined });
  const built = buildRuleSet([bare('x'), bare('y')], separate);
  t.is(
    built.ok ? '' : formatProblems(built.problems),
    "y: error: domain: duplicate domain 'shop' in config file\n    hint: the first one is at x; to merge them, set MERGE_DOMAIN_CONFIG=true (a worker) or --merge-domains (a control plane, check)",
  );
});

test('a limit that a memory cache cannot count is refused by the path of its field', (t) => {
  const pathOf = (limits: string) => {
    const rule = documentOf('a.yaml', 'domain: shop', `descriptors: [{key: user, ${limits}}]`);
    const built = buildRuleSet([rule], { ...separate, fixedWindowsOnly: true });
    return built.ok ? undefined : built.problems[0]?.path;
  };
  const bucket = '{unit: hour, requests_per_unit: 1, algorithm: token_bucket}';
  t.is(pathOf(`rate_limit: ${bucket}`), 'descriptors[0].rate_limit.algorithm');
  t.is(
    pathOf(`rate_limits: [${bucket}, ${bucket.replace('hour', 'day')}]`),
    'descriptors[0].rate_limits',
  );
});

/**
 * Returns how many steps a build takes, and the most descriptors read between two of them, beyond the ends and children
 * of each.
 */
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

test('other work has its turn while a document is built, however many rules it has, on whatever level', (t) => {
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

test('however many rules there are, few are read between two yields', (t) => {
  let reads = 0;
  const many = (count: number, more: Partial<RuleDescriptor> = {}): RuleDescriptor[] =>
    Array.from({ length: count }, (_, index) => ({
      ...(a1.descriptors[0] as RuleDescriptor),
      ...more,
      value: `v${index}`,
      get key() {
        reads++;
        return 'user';
      },
    }));
  const endMs = Date.now() + 60_000;
  const documents: RuleDocument[] = [
    { ...a1, descriptors: many(20_000) },
    { ...a1, domain: 'other', descriptors: many(1, { descriptors: many(20_000) }) },
    // A domain whose counters could collide with those of `shop`, and whose rules end.
    { ...a1, domain: 'shop_eu', descriptors: many(20_000, { untilMs: endMs }) },
  ];
  const work = createRuleSetBuilder(merging).build(documents, Date.now());
  let most = 0;
  for (;;) {
    reads = 0;
    const step = work.next();
    most = Math.max(most, reads);
    if (step.done) {
      t.true(step.value.ok);
      break;
    }
  }
  t.true(most > 0 && most <= 5_000, `${most} reads`);
});

/** The set's answers to every descriptor of these names with at most two entries, and its pages. */
function describeSet(built: ReturnType<typeof buildRuleSet>) {
  if (!built.ok) return built.problems;
  const rules = built.ruleSet.domains.get('d');
  const entries = ['a', 'b', 'c'].flatMap((key) =>
    ['', 'x', 'y', 'xz'].map((value) => ({ key, value })),
  );
  const asked = entries.flatMap((one) => [[one], ...entries.map((other) => [one, other])]);
  const answers = asked.map((each) => [rules?.match(each), rules?.exempts(each)]);
  const { limitCount } = built.ruleSet;
  return [
    answers,
    limitCount,
    [...built.ruleSet.describe()],
    built.ruleSet.trail(),
    built.warnings,
  ];
}

test('a set that reuses unchanged rules equals a set built from scratch', (t) => {
  const random = createRandom(48);
  const bits = [
    '{key: a, value: x, rate_limit: {unit: day, requests_per_unit: 3}}',
    '{key: a}',
    "{key: a, value: 'x*', share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 2}}",
    "{key: a, value: 'x*', detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 2}}",
    '{key: b, until: 2030-01-01T00:00:00Z, rate_limit: {unlimited: true}}',
    '{key: b, value_to_metric: true, rate_limits: [{unit: day, requests_per_unit: 9}, {unit: hour, requests_per_unit: 4}]}',
    '{key: c, value: y, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 3, name: n}}',
  ].flatMap((text) => documentOf('f.yaml', `domain: d\ndescriptors: [${text}]`).descriptors);
  const nameOf = ({ key, value }: RuleDescriptor) => `${key}_${value}`;

  /** Changes, adds or removes one of the rules, on this level or below. */
  function edit(all: readonly RuleDescriptor[], depth: number): readonly RuleDescriptor[] {
    const at = random.below(all.length + 1);
    const found = all[at];
    if (found !== undefined && depth < 2 && random.below(2) === 0)
      return all.with(at, { ...found, descriptors: edit(found.descriptors, depth + 1) });
    if (found !== undefined && random.chance(0.2)) {
      return all.with(at, {
        ...found,
        shareThreshold: found.value.includes('*') && random.chance(0.5),
      });
    }
    const rest = random.below(3) === 0 ? all : all.toSpliced(at, 1);
    const added = random.pick(bits);
    const retained = rest.filter((each) => nameOf(each) !== nameOf(added));
    const index = random.below(retained.length + 1);
    return random.below(4) === 0
      ? rest
      : retained.toSpliced(index, 0, { ...added, descriptors: found?.descriptors ?? [] });
  }

  const builder = createRuleSetBuilder(merging);
  const atMs = Date.parse('2029-12-01T00:00:00Z');
  let all: readonly RuleDescriptor[] = [];
  for (let step = 0; step < 400; step++) {
    all = edit(all, 0);
    const middle = random.below(all.length + 1);
    const documents = [all.slice(0, middle), all.slice(middle)].map((descriptors, at) => ({
      ...a1,
      ...{ file: `${at}`, domain: 'd', descriptors },
    }));
    const built = runAtOnce(builder.build(documents, atMs));
    t.true(built.ok);
    t.deepEqual(describeSet(built), describeSet(buildRuleSet(documents, merging, atMs)), `${step}`);
  }
});

test('an unchanged rule keeps its limit object, also when another rule on or above its level changed', (t) => {
  const builder = createRuleSetBuilder(separate);
  const rule = (key: string, amount: number, more = '') =>
    `{key: ${key}, rate_limit: {unit: day, requests_per_unit: ${amount}}${more}}`;
  const parsed = documentOf(
    'f.yaml',
    `domain: shop\ndescriptors: [${rule('a', 1, `, descriptors: [${rule('b', 2)}, ${rule('c', 3)}]`)}, ${rule('z', 4)}]`,
  );
  const [a, z] = parsed.descriptors as [RuleDescriptor, RuleDescriptor];
  const [b, c] = a.descriptors as [RuleDescriptor, RuleDescriptor];
  const matchesOf = (descriptors: readonly RuleDescriptor[]) => {
    const built = runAtOnce(builder.build([{ ...parsed, descriptors }], 0));
    if (!built.ok) throw new Error(formatProblems(built.problems));
    const rules = built.ruleSet.domains.get('shop');
    return (...keys: string[]) => rules?.match(keys.map((key) => ({ key, value: '' })));
  };
  const before = matchesOf([a, z]);
  const another = { ...b, shadowMode: true };
  const after = matchesOf([{ ...z, key: 'first' }, { ...a, descriptors: [another, c] }, z]);
  t.is(after('z'), before('z'));
  t.is(after('a', 'c'), before('a', 'c'));
  t.true(after('a', 'b')?.limit.shadowMode);
  t.is(matchesOf([a])('z'), undefined);
});
