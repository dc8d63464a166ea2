import test from 'ava';
import { isError } from '../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
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

test('without the file everybody is in one group that gets everything', (t) => {
  const { groups } = parseNodeGroups(undefined, domains);
  t.deepEqual(
    groups.map(({ name, domains: patterns }) => [name, ...patterns.map((pattern) => pattern.text)]),
    [['default', '*']],
  );
  t.is(groupOf(undefined, 'any'), 'default');
});

test('a group may have steps of its own for rollouts', (t) => {
  const { groups, problems } = parseNodeGroups(
    'groups:\n  - {name: tests, domains: "*", rollout: 100%:10m}\n  - {name: live, domains: "*", rollout: "5%, 100%"}\n',
    domains,
  );
  t.deepEqual(problems.filter(isError), []);
  t.deepEqual(
    groups.map(({ rollout }) => rollout),
    [
      [{ percent: 100, holdMs: 600_000 }],
      [
        { percent: 5, holdMs: 60_000 },
        { percent: 100, holdMs: 60_000 },
      ],
      undefined,
    ],
  );
  const refusalOf = (rollout: string) =>
    formatProblems(
      parseNodeGroups(`groups:\n  - name: a\n    domains: '*'\n    rollout: ${rollout}\n`, domains)
        .problems,
    ).split('\n')[0];
  t.is(refusalOf('5'), "node-groups.yaml:4:14: error: rollout: '5' is no step, such as '5%:30s'");
  t.regex(refusalOf('5%:30s,2%:5s') ?? '', /each step has to be larger than the one before/);
  t.regex(refusalOf('[5%]') ?? '', /rollout is a list, not text/);
});

test('every mistake is told, with its place and what to do', (t) => {
  const { problems } = parseNodeGroups(
    `group: 1
groups:
  - name: a
    domain: shop
  - name: a
    match: { ids: x, id: [], cluster: { a: b }, metadata: no }
    domains: []
  - name: default
    domains: shop
  - [shop]
  - name:
    domains: [[x], sohp]
`,
    domains,
  );
  t.is(
    formatProblems(problems),
    `node-groups.yaml:1:1: error: unknown key 'group'
    group: 1
    ^
    hint: did you mean 'groups'?
node-groups.yaml:4:5: error: unknown key 'domain'
        domain: shop
        ^
    hint: did you mean 'domains'?
node-groups.yaml:6:14: error: unknown key 'ids'
        match: { ids: x, id: [], cluster: { a: b }, metadata: no }
                 ^
    hint: did you mean 'id'?
node-groups.yaml:6:39: error: cluster is a mapping, not text
        match: { ids: x, id: [], cluster: { a: b }, metadata: no }
                                          ^
node-groups.yaml:6:59: error: metadata is 'no', not a mapping
        match: { ids: x, id: [], cluster: { a: b }, metadata: no }
                                                              ^
node-groups.yaml:10:5: error: a group is a list, not a mapping
      - [shop]
        ^
node-groups.yaml:11:10: error: name is empty, not text
      - name:
             ^
node-groups.yaml:12:15: error: domains is a list, not text
        domains: [[x], sohp]
                  ^
node-groups.yaml:8:5: error: the name 'default' is taken
      - name: default
        ^
    hint: it stands for the nodes that match no group; take another name`,
  );
});

test('a quotation mark that is none is told, with what to write in its place', (t) => {
  const { problems } = parseNodeGroups('groups:\n  - “name”: a\n    domains: []\n', domains);
  t.is(
    formatProblems(problems),
    `node-groups.yaml:2:5: error: unknown key '“name”'
      - “name”: a
        ^
    hint: it has the quotation mark “ (U+201C): write 'name'`,
  );
});

test('a misspelt key is told once, and not again as one that is missing', (t) => {
  const { problems } = parseNodeGroups('grups:\n  - name: a\n', domains);
  t.is(
    formatProblems(problems),
    `node-groups.yaml:1:1: error: unknown key 'grups'
    grups:
    ^
    hint: did you mean 'groups'?`,
  );
});

test('a group without a name or domains is told what to write', (t) => {
  const { problems } = parseNodeGroups('groups:\n  - {}\n', domains);
  t.deepEqual(
    problems.map(({ message, hint }) => [message, hint]),
    [
      ['the group has no name', 'give each group a name'],
      ['the group has no domains', "write 'domains: []' for a group without any"],
    ],
  );
});

test('two hundred groups are taken, and no more', (t) => {
  const textOf = (count: number) =>
    `groups:\n${Array.from({ length: count }, (_, index) => `  - {name: g${index}, match: {id: '${index}'}, domains: []}\n`).join('')}`;
  t.deepEqual(parseNodeGroups(textOf(200), domains).problems, []);
  t.deepEqual(
    parseNodeGroups(textOf(201), domains).problems.map(({ message }) => message),
    ['more than 200 groups'],
  );
});

test('names that are taken or repeated are refused', (t) => {
  const { problems } = parseNodeGroups(
    `groups:
  - { name: a, match: { id: x }, domains: shop }
  - { name: a, match: { id: y }, domains: shop }
  - { name: default, match: { id: z }, domains: shop }
`,
    domains,
  );
  t.is(
    formatProblems(problems),
    `node-groups.yaml:3:5: error: duplicate group name 'a'
      - { name: a, match: { id: y }, domains: shop }
        ^
    hint: the first one is at 2:5
node-groups.yaml:4:5: error: the name 'default' is taken
      - { name: default, match: { id: z }, domains: shop }
        ^
    hint: it stands for the nodes that match no group; take another name`,
  );
});

test('a legal group that is surely wrong is a warning', (t) => {
  const { problems } = parseNodeGroups(
    `groups:
  - { name: all, domains: sohp }
  - { name: edge, match: { id: e }, domains: shop }
`,
    domains,
  );
  t.is(
    formatProblems(problems),
    `node-groups.yaml:3:5: warning: no node gets to group 'edge', as group 'all' before it takes all [node-groups]
      - { name: edge, match: { id: e }, domains: shop }
        ^
    hint: put the group that takes all last
node-groups.yaml:2:27: warning: 'sohp' matches no domain [node-groups]
      - { name: all, domains: sohp }
                              ^
    hint: did you mean 'shop'?`,
  );
});

test('a file that is no mapping, or empty, is refused', (t) => {
  const of = (yaml: string) =>
    formatProblems(parseNodeGroups(yaml, domains).problems).split('\n')[0];
  t.is(of(''), 'node-groups.yaml:1:1: error: the document is empty, not a mapping');
  t.is(of('- a'), 'node-groups.yaml:1:1: error: the document is a list, not a mapping');
  t.is(of('{}'), 'node-groups.yaml:1:1: error: there are no groups');
  t.is(of('groups: {a: b}'), 'node-groups.yaml:1:9: error: groups is a mapping, not a list');
  t.regex(of('groups: [') ?? '', /^node-groups.yaml:1:10: error: not valid YAML: /);
  t.is(of('groups:\n  - match: {}'), 'node-groups.yaml:2:5: error: the group has no name');
  t.is(
    of(`groups:\n${'  - {name: x, domains: y}\n'.repeat(201)}`),
    'node-groups.yaml:2:3: error: more than 200 groups',
  );
});
