import test from 'ava';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { applyAllowances } from '../../../shared/rules/problem/allowance.ts';
import { advisoryRules } from '../../../shared/rules/problem/problem-rule.ts';
import { adviseOnRules } from './rule-advice.ts';

const zero = 'rate_limit: {unit: hour, requests_per_unit: 0}';

/** The problems that remain, as `line rule`, and the messages about the comments. */
function notify(...lines: readonly string[]): { reported: string[]; idle: string[] } {
  const text = lines.join('\n');
  const { document, problems } = parseRuleDocument(text, 'r.yaml');
  const advice = adviseOnRules(document ? [document] : []);
  const applied = applyAllowances([...problems, ...advice], [{ path: 'r.yaml', text }]);
  return {
    reported: applied.problems.map(({ line, rule }) => `${line} ${rule}`),
    idle: applied.idle.map(({ line, column, message }) => `${line}:${column} ${message}`),
  };
}

test('a comment before the first key applies to the complete file, and can have several names', (t) => {
  const lines = [
    '# yaml-language-server: $schema=rules.schema.json',
    '---',
    '# ratelane: allow limit-zero, no-limit',
    'domain: d',
    'descriptors:',
    `  - {key: a, ${zero}}`,
    '  - {key: b}',
    '',
  ];
  t.deepEqual(notify(...lines), { reported: [], idle: [] });
  t.deepEqual(notify(...lines.map((line) => line && `${line}\r`)), { reported: [], idle: [] });
});

test('a comment for the whole file also allows more than a hundred warnings of a kind', (t) => {
  const rules = Array.from({ length: 120 }, (_, index) => `  - {key: k${index}, ${zero}}`);
  const { reported } = notify(
    '# ratelane: allow limit-zero',
    'domain: d',
    'descriptors:',
    ...rules,
  );
  t.deepEqual(reported, []);
});

test('each line is read once, however many comments a file has', (t) => {
  const hostile = [
    '# ratelane: allow no-limit\n'.repeat(60_000),
    Array.from({ length: 30_000 }, (_, at) => `# ratelane: allow no-limit\nk${at}:\n`).join(''),
    `# ratelane: allow ${'a,'.repeat(500_000)}a\n`,
    Array.from({ length: 60_000 }, (_, at) => `# ratelane: allow no-lim${at}\n`).join(''),
  ];
  for (const text of hostile) {
    const { idle } = applyAllowances([], [{ path: 'r.yaml', text: `domain: d\n${text}` }]);
    t.true(idle.length <= 101);
  }
});

test('errors cannot be allowed', (t) => {
  const { reported } = notify('domain: d', 'descriptor: [] # ratelane: allow unknown-key');
  t.deepEqual(reported, ['2 unknown-key']);
  t.false(advisoryRules.some((rule) => rule === 'unknown-key'));
});
