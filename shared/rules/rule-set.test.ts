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

test('documents without places are named by file alone', (t) => {
  const bare = (file: string): RuleDocument => ({ ...a1, file, position: undefined });
  const built = buildRuleSet([bare('x'), bare('y')], separate);
  t.is(
    built.ok ? '' : formatProblems(built.problems),
    "y: error: domain: duplicate domain 'shop' in config file\n    hint: the first one is at x; to merge them, set MERGE_DOMAIN_CONFIG=true (a worker) or --merge-domains (a control plane, check)",
  );
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

test('however many rules there are, few are read between two yields', (t) => {
  let looks = 0;
  const many = (count: number, more: Partial<RuleDescriptor> = {}): RuleDescriptor[] =>
    Array.from({ length: count }, (_, index) => ({
      ...(a1.descriptors[0] as RuleDescriptor),
      ...more,
      value: `v${index}`,
      get key() {
        looks++;
        return 'user';
      },
    }));
  const endMs = Date.now() + 60_000;
  const documents: RuleDocument[] = [
    { ...a1, descriptors: many(20_000) },
    { ...a1, domain: 'other', descriptors: many(1, { descriptors: many(20_000) }) },
    // Its counters could be those of `shop`, and its rules end.
    { ...a1, domain: 'shop_eu', descriptors: many(20_000, { untilMs: endMs }) },
  ];
  const work = createRuleSetBuilder(merging).build(documents, Date.now());
  let most = 0;
  for (;;) {
    looks = 0;
    const step = work.next();
    most = Math.max(most, looks);
    if (step.done) {
      t.true(step.value.ok);
      break;
    }
  }
  t.true(most > 0 && most <= 5_000, `${most} looks`);
});
