import test from 'ava';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../../shared/rules/problem/problem-text.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { matchesNode, parseNodeGroups } from './node-groups.ts';

const domains = ['mail', 'shop'];
const node = (id: string, cluster = '', metadata: Readonly<Record<string, string>> = {}) => ({
  id,
  cluster,
  metadata: new Map(Object.entries(metadata)),
});

function groupOf(text: string | undefined, ...args: Parameters<typeof node>): string | undefined {
  const { groups } = parseNodeGroups(text, domains);
  return groups.find(({ match }) => matchesNode(match, node(...args)))?.name;
}

const text = `
groups:
  - name: edge
    match:
      id: edge-*
      cluster: [eu-*, us-1]
      metadata: { stage: production, tier: 1 }
    domains: [shop]
  - name: tests
    match: { id: ['test-?', 'ci'] }
    domains: '*'
`;

// Proof of SECURITY.md: reads the rules of every node group
test('a node is in the first group all of whose conditions it meets', (t) => {
  const production = { stage: 'production', tier: '1' };
  t.deepEqual(parseNodeGroups(text, domains).problems, []);
  t.is(groupOf(text, 'edge-7', 'eu-west', production), 'edge');
  t.is(groupOf(text, 'edge-7', 'us-1', production), 'edge');
  t.is(groupOf(text, 'edge-7', 'us-2', production), 'default');
  t.is(groupOf(text, 'edge-7', 'us-1', { stage: 'production' }), 'default');
  t.is(groupOf(text, 'test-1'), 'tests');
  t.is(groupOf(text, 'ci'), 'tests');
  t.is(groupOf(text, ''), 'default');
});

test('without the file all nodes are in one group that gets everything', (t) => {
  const { groups } = parseNodeGroups(undefined, domains);
  t.deepEqual(
    groups.map(({ name, domains: patterns }) => [name, ...patterns.map((pattern) => pattern.text)]),
    [['default', '*']],
  );
  t.is(groupOf(undefined, 'any'), 'default');
});

test('two hundred groups are taken, and no more', (t) => {
  const textOf = (count: number) =>
    `groups:\n${Array.from({ length: count }, (_, index) => `  - {name: g${index}, match: {id: '${index}'}, domains: []}\n`).join('')}`;
  t.deepEqual(parseNodeGroups(textOf(200), domains).problems, []);
  const [first] = formatProblems(parseNodeGroups(textOf(201), domains).problems).split('\n');
  t.is(first, 'node-groups.yaml:2:3: error: more than 200 groups');
});

testLines(test, new URL('node-groups.txt', import.meta.url), (given) => {
  const { groups, problems } = parseNodeGroups(given.replaceAll('\\n', '\n'), domains);
  const steps = groups.map(({ name, rollout }) => {
    const texts = rollout?.map(({ percent, holdMs }) => `${percent}% for ${holdMs} ms`);
    return `${name}: ${texts?.join(', ') ?? 'steps of all'}`;
  });
  const means = problems.some(isError) ? [] : steps;
  return [formatProblems(problems), ...means].filter(Boolean).join('; ').replaceAll('\n', ' / ');
});
