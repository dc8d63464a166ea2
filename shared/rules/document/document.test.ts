import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { cpuMs } from '../../../test/support/cpu-time.ts';
import { everyKey } from '../../../test/support/every-key.ts';
import { allKeys, readExpectedText } from '../../../test/support/expected-text.ts';
import { plainShape } from '../limit-shape.ts';
import { isError } from '../problem/problem.ts';
import { formatProblems } from '../problem/problem-text.ts';
import { buildRuleSet } from '../rule-set.ts';
import { parseRuleDocument } from './document.ts';

const fixtures = new URL('../../../test/fixtures/rules/', import.meta.url);

/** Each `.yaml` of a folder with the expected text beside it. */
function readFixtures(folder: string): { file: string; yaml: string; expected: string }[] {
  const names = readdirSync(new URL(folder, fixtures)).filter((name) => name.endsWith('.yaml'));
  return names.sort().map((file) => ({
    file,
    yaml: readFileSync(new URL(`${folder}/${file}`, fixtures), 'utf8'),
    expected: readExpectedText(new URL(`${folder}/${file}`, fixtures)),
  }));
}

function problemsOf(yaml: string): string[] {
  return parseRuleDocument(yaml, 'r.yaml').problems.map(
    (problem) => `${problem.line}:${problem.column} ${problem.severity} ${problem.message}`,
  );
}

function withDescriptor(...lines: string[]): string {
  return ['domain: d', 'descriptors:', '  - key: k', ...lines.map((line) => `    ${line}`)].join(
    '\n',
  );
}

for (const { file, yaml, expected } of readFixtures('bad')) {
  // Proof of migrating.md: `share_threshold` is only for values that end in `*`
  // Proof of migrating.md: A missing `requests_per_unit` in YAML is an error; over xDS it is 0
  // Proof of migrating.md: All problems of all files are reported at once, each with file, line and column
  test(`bad/${file} is refused with the whole text that stands beside it`, (t) => {
    const { document, problems } = parseRuleDocument(yaml, file);
    t.is(`${formatProblems(problems)}\n`, expected);
    t.is(document, undefined);
    t.true(problems.some((problem) => problem.severity === 'error'));
  });
}

for (const { file, yaml, expected } of readFixtures('warned')) {
  test(`warned/${file} is accepted with the warnings that stand beside it`, (t) => {
    const { document, problems } = parseRuleDocument(yaml, file);
    t.is(`${formatProblems(problems)}\n`, expected);
    t.truthy(document);
    t.true(problems.every((problem) => !isError(problem)));
  });
}

for (const { file, yaml, expected } of readFixtures('good')) {
  // Proof of migrating.md: In a mapping an explicit key has precedence over `<<`, wherever that stands
  test(`good/${file} becomes the rules that stand beside it, without a problem`, (t) => {
    const { document, problems } = parseRuleDocument(yaml, file);
    t.deepEqual(problems, []);
    const built = buildRuleSet(document ? [document] : [], {
      mergeDomains: false,
      sanitizeMetricDots: false,
    });
    t.is(`${built.ok ? [...built.ruleSet.describe()].join('\n') : ''}\n`, expected);
  });
}

test('the document is a deeply immutable tree with the place of each descriptor', (t) => {
  const yaml = withDescriptor(
    'value: v*',
    'share_threshold: true',
    'metadata: {tier: gold, list: [1, 0x10, 1.5, yes, ~, 2024-05-06], 1: {deep: x}}',
    'rate_limit: {unit: HOUR, requests_per_unit: 5, name: n, replaces: [{name: m}]}',
    'descriptors:',
    '  - key: inner',
    '    detailed_metric: true',
    '    rate_limit: {unlimited: true}',
  );
  const { document } = parseRuleDocument(yaml, 'r.yaml');
  const [outer] = document?.descriptors ?? [];
  t.deepEqual(outer?.rateLimit, {
    ...plainShape,
    unit: 'hour',
    requestsPerUnit: 5,
    unlimited: false,
    name: 'n',
    replaces: [{ name: 'm', position: { line: 7, column: 79, sourceLine: yaml.split('\n')[6] } }],
  });
  t.deepEqual(outer?.metadata, {
    tier: 'gold',
    list: [1, 16, 1.5, true, null, '2024-05-06'],
    1: { deep: 'x' },
  });
  t.deepEqual(outer?.position, { line: 3, column: 5, sourceLine: '  - key: k' });
  t.like(outer?.descriptors[0], {
    key: 'inner',
    value: '',
    detailedMetric: true,
    shadowMode: false,
    rateLimit: { unlimited: true, unit: undefined, requestsPerUnit: 0 },
    position: { line: 9, column: 9 },
  });
  t.true(isDeeplyFrozen(document));
});

function isDeeplyFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return Object.isFrozen(value) && Object.values(value).every(isDeeplyFrozen);
}

test('a path names the position in the document', (t) => {
  const yaml = withDescriptor('descriptors:', '  - key: i', '    rate_limit: {unit: x}');
  const { problems } = parseRuleDocument(yaml, 'r.yaml');
  t.deepEqual(
    problems.map((problem) => problem.path),
    [
      'descriptors[0].descriptors[0].rate_limit.unit',
      'descriptors[0].descriptors[0].rate_limit.requests_per_unit',
    ],
  );
});

test('an invalid unit is accepted on an unlimited rule, as is a number', (t) => {
  t.deepEqual(
    problemsOf(withDescriptor('rate_limit: {unlimited: yes, unit: moment, requests_per_unit: 7}')),
    [],
  );
});

test('a byte order mark and CRLF line ends do not shift lines and columns', (t) => {
  const yaml = '\ufeffdomian: d\r\ndescriptors:\r\n  - key: k\r\n    rate_limt: {}\r\n';
  const { problems } = parseRuleDocument(yaml, 'r.yaml');
  t.deepEqual(
    problems.map(({ line, column, sourceLine }) => ({ line, column, sourceLine })),
    [
      { line: 1, column: 1, sourceLine: 'domian: d' },
      { line: 4, column: 5, sourceLine: '    rate_limt: {}' },
    ],
  );
});

test('an error in a later document of the file is ignored', (t) => {
  const yaml = `${withDescriptor('rate_limit: {unit: hour, requests_per_unit: 1}')}\n---\n{[\n`;
  t.deepEqual(problemsOf(yaml), [
    '5:1 warning only the first document of a file is read: all from here on is lost',
  ]);
});

test('a document end and an empty rest cause no warning', (t) => {
  const yaml = `${withDescriptor('rate_limit: {unit: hour, requests_per_unit: 1}')}\n---\n# end\n`;
  t.deepEqual(problemsOf(yaml), []);
});

test('comparisons of unknown aliases with anchors are bounded', (t) => {
  const anchors = Array.from(
    { length: 100 },
    (_, index) => `  - &limit_${index} {key: k${index}}\n`,
  );
  const aliases = Array.from({ length: 5_000 }, (_, index) => `  - *limti_${index % 100}\n`);
  const { problems } = parseRuleDocument(
    `domain: d\ndescriptors:\n${[...anchors, ...aliases].join('')}`,
    'r.yaml',
  );
  const guesses = problems.filter(({ hint }) => hint?.startsWith('did you mean'));
  t.is(guesses.length, 20, 'of 2,000 comparisons each alias takes 100');
});

test('a misspelt key is one problem, whichever key it is', (t) => {
  t.deepEqual(problemsOf(everyKey), []);
  const keys = [...everyKey.matchAll(/\b([a-z_]+):/g)].filter(([, name]) => name !== 'tier');
  const written = new Set(keys.map(([, name]) => name));
  t.deepEqual([...written].sort(), [...allKeys].sort(), 'add the key to test/support/every-key.ts');
  for (const { 1: name = '', index } of keys) {
    const typo = `${name.slice(0, -1)}x${name.slice(-1)}`;
    const yaml = everyKey.slice(0, index) + typo + everyKey.slice(index + name.length);
    const found = parseRuleDocument(yaml, 'r.yaml').problems;
    t.deepEqual(
      found.map(({ message, hint }) => [message, hint]),
      [[`unknown key '${typo}'`, `did you mean '${name}'?`]],
      name,
    );
  }
});

test('problems beyond a hundred are counted, not stored', (t) => {
  const yaml = `domain: d\ndescriptors:\n${'  - text\n'.repeat(250)}`;
  const { document, problems } = parseRuleDocument(yaml, 'r.yaml');
  t.is(document, undefined);
  t.is(problems.length, 101);
  t.like(problems[100], { severity: 'error', message: 'and 150 more errors', file: 'r.yaml' });
});

test('an error after more than a hundred notes is still reported', (t) => {
  const zero = '  - {key: K, rate_limit: {unit: hour, requests_per_unit: 0}}\n';
  const rules = Array.from({ length: 120 }, (_, index) => zero.replace('K', `k${index}`));
  const { document, problems } = parseRuleDocument(
    `domain: d\ndescriptors:\n${rules.join('')}  - {key: x}\nunknown: 1\n`,
    'r.yaml',
  );
  t.is(document, undefined);
  t.is(problems.filter((problem) => problem.severity === 'error').length, 1);
  t.is(problems.filter(({ rule }) => rule === 'no-limit').length, 1);
  t.like(problems.at(-1), { message: 'and 20 more notes', rule: 'limit-zero' });
});

const laughs = Array.from({ length: 40 }, (_, level) => {
  const items =
    level === 0
      ? '{a: 1}'
      : Array(9)
          .fill(`*a${level - 1}`)
          .join(', ');
  return `a${level}: &a${level} [${items}]\n`;
});
const nestedRules = Array.from({ length: 40 }, (_, level) => {
  const child = `*d${level - 1}`;
  const children = level === 0 ? '[]' : `[${[child, child, child].join(', ')}]`;
  return `  - &d${level} {key: k${level}, descriptors: ${children}}\n`;
});
const merges = Array.from({ length: 40 }, (_, level) => {
  const items =
    level === 0
      ? '{a: 1}'
      : Array(9)
          .fill(`*m${level - 1}`)
          .join(', ');
  return `metadata: &m${level} {<<: [${items}]}\n`;
});

const hostile: [title: string, yaml: string, message: RegExp][] = [
  ['aliases that expand to billions', `domain: d\n${laughs.join('')}`, /aliases expand to more/],
  [
    'descriptors that repeat themselves by alias',
    `domain: d\ndescriptors:\n${nestedRules.join('')}`,
    /aliases expand to more/,
  ],
  [
    'a long text that aliases repeat',
    `domain: d\ndescriptors:\n  - {key: k, value: &x ${'x'.repeat(1_000_000)}}\n${'  - {key: k, value: *x}\n'.repeat(5)}`,
    /aliases expand to more than 4194304 characters/,
  ],
  ['merges of merges', `domain: d\n${merges.join('')}`, /aliases expand to more/],
  ['brackets 10,000 deep', `domain: ${'['.repeat(10_000)}${']'.repeat(10_000)}`, /nested more/],
  ['mappings 10,000 deep', `domain: ${'{a: '.repeat(10_000)}`, /nested more/],
  ['lists on one line 10,000 deep', '- '.repeat(10_000), /nested more/],
  ['a scalar of 5 MB', `domain: ${'a'.repeat(5_000_000)}`, /longer than 4194304 characters/],
  ['a key of 1 MB', `${'a'.repeat(1_000_000)}: b`, /1024 chars/],
  [
    'a long unknown key in a wrong place',
    `domain: d\nkey: {${'a'.repeat(1000)}: b}`,
    /unknown key/,
  ],
  ['half a million slips of syntax', `domain: "${'\\z'.repeat(500_000)}"`, /invalid escape/],
  ['a NUL byte', 'domain: a\0b', /character U\+0000/],
  ['bytes that are not UTF-8', Buffer.from([0x61, 0x3a, 0x20, 0xff]).toString(), /not valid UTF-8/],
  ['half a surrogate pair', 'domain: \ud800', /character U\+D800/],
];
for (const [title, yaml, message] of hostile) {
  test(`${title}: refused soon, with a short text`, (t) => {
    const before = cpuMs();
    const { document, problems } = parseRuleDocument(yaml, 'r.yaml');
    t.is(document, undefined);
    t.regex(problems.map((problem) => problem.message).join('\n'), message);
    t.true(formatProblems(problems).length < 100_000);
    t.true(cpuMs() - before < 20_000);
  });
}
