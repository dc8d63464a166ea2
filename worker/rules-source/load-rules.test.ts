import test from 'ava';
import { createLoadRules } from './load-rules.ts';

const load = createLoadRules({ mergeDomains: false, sanitizeMetricDots: false });

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

test('good files become one set of rules', (t) => {
  const result = load([good, file('b.yaml', 'domain: b', 'descriptors: []')]);
  t.true(result.ok);
  if (!result.ok) return;
  t.is(result.ruleSet.domainCount, 2);
  t.is(result.ruleSet.limitCount, 1);
  t.true(result.warnings.every(({ severity }) => severity === 'warning'));
});

test('no files are rules without domains', (t) => {
  const result = load([]);
  t.true(result.ok && result.ruleSet.domainCount === 0);
});

test('one bad file fails the load, and the problems of all files are told', (t) => {
  const result = load([
    good,
    file('b.yaml', 'domain: ""'),
    file('c.yaml', 'domain: a', 'descriptors: []'),
  ]);
  t.false(result.ok);
  if (result.ok) return;
  const files = result.problems.filter(({ severity }) => severity === 'error').map((p) => p.file);
  t.deepEqual(files, ['b.yaml', 'c.yaml']);
});

test('the options reach the rules', (t) => {
  const merging = createLoadRules({ mergeDomains: true, sanitizeMetricDots: true });
  const other = file(
    'b.yaml',
    'domain: a',
    'descriptors:',
    '  - key: x.y',
    '    rate_limit: { unit: second, requests_per_unit: 1 }',
  );
  const result = merging([good, other]);
  t.true(result.ok);
  if (!result.ok) return;
  t.is(result.ruleSet.domainCount, 1);
  const match = result.ruleSet.domain('a')?.match([{ key: 'x.y', value: 'v' }]);
  t.is(match?.metricKey, 'a.x_y');
});
