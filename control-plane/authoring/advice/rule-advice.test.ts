import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { locateRules } from '../../../shared/rules/lookup/located-rule.ts';
import { formatProblem } from '../../../shared/rules/problem/problem-text.ts';
import { buildRuleSet } from '../../../shared/rules/rule-set.ts';
import { cpuMs } from '../../../test/support/cpu-time.ts';
import { explainLookup } from '../explain/lookup-explanation.ts';
import { adviseOnRules } from './rule-advice.ts';

const fixtures = new URL('../../../test/fixtures/check/', import.meta.url);
const files = readdirSync(fixtures).filter((name) => name.endsWith('.yaml'));

for (const file of files.sort()) {
  test(`check/${file} produces the advice written beside it`, (t) => {
    const read = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');
    const { document, problems } = parseRuleDocument(read(file), file);
    t.deepEqual(problems, []);
    const advice = adviseOnRules(document ? [document] : []);
    t.is(
      advice.map((problem) => `${formatProblem(problem)}\n`).join(''),
      read(file.replace(/yaml$/, 'txt')),
    );
    t.true(advice.every(({ rule }) => rule !== 'other'));
  });
}

function advise(...texts: string[]): string[] {
  const documents = texts.flatMap(
    (text, index) => parseRuleDocument(text, `${index}.yaml`).document ?? [],
  );
  return adviseOnRules(documents).map(({ file, line, message }) => `${file}:${line} ${message}`);
}

test('decisions, advice and explanations apply files in the same order', (t) => {
  const rule = (value: string, count: number) =>
    `domain: d\ndescriptors:\n  - {key: k, value: "${value}", rate_limit: {unit: day, requests_per_unit: ${count}}}\n`;
  // Sorted by characters, `a.yaml` would come first.
  const texts = [
    ['a.yaml', rule('a*', 1)],
    ['a/b.yaml', rule('*', 2)],
  ] as const;
  const documents = texts.flatMap(([file, text]) => parseRuleDocument(text, file).document ?? []);
  const built = buildRuleSet(documents, { mergeDomains: true, sanitizeMetricDots: false });
  const entries = [{ key: 'k', value: 'ab' }];
  const decided = built.ok ? built.ruleSet.domains.get('d')?.match(entries) : undefined;
  t.is(decided?.limit.requestsPerUnit, 2);
  const { rule: explained } = explainLookup(locateRules(documents).get('d') ?? [], entries);
  t.is(explained?.document.file, 'a/b.yaml');
  t.deepEqual(
    adviseOnRules(documents).map(({ rule, file }) => `${rule} ${file}`),
    ['unreachable-rule a.yaml'],
  );
});

test('a level with very many wildcards is checked in bounded time', (t) => {
  const rules = Array.from({ length: 20_000 }, (_, index) => `  - {key: k, value: "v${index}*x"}`);
  const before = cpuMs();
  t.notThrows(() => advise(['domain: d', 'descriptors:', ...rules].join('\n')));
  t.true(cpuMs() - before < 30_000);
});

test('a wildcard is unreachable exactly when no request finds it', (t) => {
  const pattern = fc
    .array(fc.constantFrom('a', 'b', '*'), { minLength: 1, maxLength: 4 })
    .map((parts) => parts.join(''))
    .filter((text) => text.includes('*'));
  const value = fc
    .array(fc.constantFrom('a', 'b', 'x'), { maxLength: 6 })
    .map((all) => all.join(''));
  let unreachable = 0;
  fc.assert(
    fc.property(
      fc.uniqueArray(pattern, { minLength: 2, maxLength: 5 }),
      fc.array(value, { minLength: 10, maxLength: 10 }),
      (patterns, values) => {
        const rules = patterns.map(
          (text, index) =>
            `  - {key: k, value: "${text}", rate_limit: {unit: day, requests_per_unit: ${index + 1}}}`,
        );
        const text = ['domain: d', 'descriptors:', ...rules].join('\n');
        const { document } = parseRuleDocument(text, 'r.yaml');
        if (document === undefined) throw new Error('refused');
        const warned = new Set(adviseOnRules([document]).map(({ line }) => (line ?? 0) - 2));
        const built = buildRuleSet([document], { mergeDomains: false, sanitizeMetricDots: false });
        const find = (each: string) =>
          built.ok
            ? built.ruleSet.domains.get('d')?.match([{ key: 'k', value: each }])?.limit
                .requestsPerUnit
            : undefined;
        unreachable += warned.size;
        const neverFound = values.every((each) => !warned.has(find(each) ?? 0));
        const elseFound = patterns.every((each, index) =>
          warned.has(index + 1) ? true : find(each.replaceAll('*', 'y')) === index + 1,
        );
        return neverFound && elseFound;
      },
    ),
    { numRuns: 300 },
  );
  t.true(unreachable > 30, `${unreachable} rules`);
});

function parse(...lines: string[]) {
  const yaml = ['domain: shop', 'descriptors:', ...lines.map((line) => `  ${line}`)].join('\n');
  return [parseRuleDocument(yaml, 'shop.yaml').document ?? []].flat();
}

test('a rule that has ended is noted with its position', (t) => {
  const lifted = parse(
    '- {key: user, rate_limit: {unit: hour, requests_per_unit: 10}}',
    '- {key: user, value: ada, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}',
  );
  const endMs = Date.parse('2026-11-24T18:00:00Z');
  const ended = (nowMs: number) =>
    adviseOnRules(lifted, nowMs)
      .filter(({ rule }) => rule === 'ended-rule')
      .map(({ severity, line, message, hint }) => `${severity} ${line}: ${message}: ${hint}`);
  t.deepEqual(ended(endMs - 1), []);
  t.deepEqual(ended(endMs), [
    'note 4: this rule ended at 2026-11-24T18:00:00Z, it has no effect: remove it',
  ]);
});

test('a wildcard that ends is not reported as hiding its successor', (t) => {
  const documents = parse(
    '- {key: user, value: a*, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}',
    '- {key: user, value: a*, rate_limit: {unit: hour, requests_per_unit: 5}}',
  );
  const rules = adviseOnRules(documents, 0).map(({ rule }) => rule);
  t.deepEqual(rules, ['worker-only-field']);
});
