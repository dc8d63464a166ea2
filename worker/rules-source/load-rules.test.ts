import test from 'ava';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { createLoadRules } from './load-rules.ts';
import type { ParsingThread } from './parsing-thread.ts';

const load = createLoadRules(
  createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false }),
);

function file(path: string, ...lines: string[]) {
  return { path, text: `${lines.join('\n')}\n` };
}

const good = file(
  'a.yaml',
  'domain: a',
  'descriptors:',
  '  - key: k',
  '    rate_limit: { unit: second, requests_per_unit: 1 }',
);

test('good files become one set of rules', async (t) => {
  const result = await load([good, file('b.yaml', 'domain: b', 'descriptors: []')]);
  t.true(result.ok);
  if (!result.ok) return;
  t.is(result.ruleSet.domains.size, 2);
  t.is(result.ruleSet.limitCount, 1);
  t.true(result.warnings.every(({ severity }) => severity === 'warning'));
});

test('a comment in a file keeps a warning about it out of the log', async (t) => {
  const lines = [...good.text.split('\n').slice(0, -1), '  - key: idle'];
  const warned = await load([file('a.yaml', ...lines)]);
  t.deepEqual(warned.ok && warned.warnings.map(({ rule }) => rule), ['no-limit']);
  const allowed = await load([file('a.yaml', '# ratelane: allow no-limit', ...lines)]);
  t.deepEqual(allowed.ok && allowed.warnings, []);
});

test('no files make rules without domains', async (t) => {
  const result = await load([]);
  t.true(result.ok && result.ruleSet.domains.size === 0);
});

test('one bad file fails the load, and the problems of all files are reported', async (t) => {
  const result = await load([
    good,
    file('b.yaml', 'domain: ""'),
    file('c.yaml', 'domain: a', 'descriptors: []'),
  ]);
  t.false(result.ok);
  if (result.ok) return;
  const files = result.problems.filter(({ severity }) => severity === 'error').map((p) => p.file);
  t.deepEqual(files, ['b.yaml', 'c.yaml']);
});

test('the options reach the rules', async (t) => {
  const merging = createLoadRules(
    createRuleSetBuilder({ mergeDomains: true, sanitizeMetricDots: true }),
  );
  const other = file(
    'b.yaml',
    'domain: a',
    'descriptors:',
    '  - key: x.y',
    '    rate_limit: { unit: second, requests_per_unit: 1 }',
  );
  const result = await merging([good, other]);
  t.true(result.ok);
  if (!result.ok) return;
  t.is(result.ruleSet.domains.size, 1);
  const match = result.ruleSet.domains.get('a')?.match([{ key: 'x.y', value: 'v' }]);
  t.is(match?.metricKey, 'a.x_y');
});

const many = Array.from({ length: 300 }, (_, at) =>
  file(
    `${at}.yaml`,
    `domain: d${at}`,
    'descriptors:',
    ...Array.from(
      { length: 20 },
      (_, key) => `  - {key: k${key}, rate_limit: {unit: second, requests_per_unit: 1}}`,
    ),
  ),
);

test('other tasks run while many files are loaded', async (t) => {
  let turns = 0;
  let isDone = false;
  const turn = () => {
    turns++;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  await createLoadRules(createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false }))(
    many,
  );
  isDone = true;
  t.true(turns > 3, `${turns} turns`);
});

test('a file that is the same object as before is neither parsed nor built again', async (t) => {
  const reload = createLoadRules(
    createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false }),
  );
  const before = await reload(many);
  const changed = file('0.yaml', 'domain: d0', 'descriptors: []');
  const after = await reload([changed, ...many.slice(1)]);
  t.true(before.ok && after.ok);
  if (!before.ok || !after.ok) return;
  t.not(after.ruleSet.domains.get('d0'), before.ruleSet.domains.get('d0'));
  t.is(after.ruleSet.domains.get('d1'), before.ruleSet.domains.get('d1'));
  t.is(after.ruleSet.limitCount, before.ruleSet.limitCount - 20);
  t.is(after.documents[1], before.documents[1]);
});

test('after a failed load, unchanged documents are still cached', async (t) => {
  const reload = createLoadRules(
    createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false }),
  );
  const before = await reload(many);
  const failed = await reload([file('0.yaml', 'domain: ""'), ...many.slice(1)]);
  t.false(failed.ok);
  const after = await reload(many);
  t.true(before.ok && after.ok);
  if (!before.ok || !after.ok) return;
  t.is(after.ruleSet.domains.get('d1'), before.ruleSet.domains.get('d1'));
});

/** Records the files that it receives, and their previous documents. */
function createCountedThread() {
  const asked: string[] = [];
  const before: (RuleDocument | undefined)[] = [];
  return {
    asked,
    before,
    async parse(text, path, document) {
      asked.push(path);
      before.push(document);
      return parseRuleDocument(text, path);
    },
    parseResource: () => Promise.reject(new Error('files have none')),
    async close() {},
  } satisfies ParsingThread & { readonly asked: unknown; readonly before: unknown };
}

function largeFile(limit: number) {
  const rules = Array.from(
    { length: 300 },
    (_, at) => `  - {key: k${at}, rate_limit: {unit: second, requests_per_unit: ${limit}}}`,
  );
  return file('large.yaml', 'domain: large', 'descriptors:', ...rules);
}

test('after the first load, a changed large file is parsed in the thread, and no other file', async (t) => {
  const thread = createCountedThread();
  const reload = createLoadRules(
    createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false }),
    thread,
  );
  const first = largeFile(1);
  t.true((await reload([good, first])).ok);
  t.deepEqual(thread.asked, []);
  t.true((await reload([{ ...good }, first])).ok);
  t.deepEqual(thread.asked, []);
  const second = largeFile(2);
  const result = await reload([good, second]);
  t.deepEqual(thread.asked, ['large.yaml']);
  const match = result.ok
    ? result.ruleSet.domains.get('large')?.match([{ key: 'k1', value: '' }])
    : undefined;
  t.is(match?.limit.requestsPerUnit, 2);
  t.true((await reload([good, second])).ok);
  t.deepEqual(thread.asked, ['large.yaml']);
  t.false((await reload([good, file('large.yaml', 'domain:', '  '.repeat(10_000))])).ok);
  const third = await reload([good, largeFile(3)]);
  t.true(third.ok);
  const lastGood = result.ok && result.documents.at(-1);
  t.is(thread.before.length, 3);
  t.true(thread.before.slice(1).every((document) => document === lastGood));
});
