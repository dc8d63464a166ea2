// What a change is for each node, by the rules or by the groups, and what the guards make of it.
import test from 'ava';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { findingRemoval } from './admission.ts';
import { type BuiltSnapshots, buildSnapshots } from './build.ts';
import { globContains, globsMeet } from './glob-sets.ts';
import { compareForNodes, comparingForNodes } from './node-change.ts';
import { nodeGroupsFile } from './node-groups.ts';
import { judgingByPolicy } from './policy-guard.ts';

const encode = loadProtos().rateLimitConfig.serialize;
const policy = 'policies: [{domains: shop, owners: ada}]';
const domainText = (domain: string, limits: number) =>
  `domain: ${domain}\ndescriptors:\n${Array.from(
    { length: limits },
    (_, index) => `  - {key: k${index}, rate_limit: {unit: minute, requests_per_unit: 1}}\n`,
  ).join('')}`;

function build(groups: string | undefined): BuiltSnapshots {
  const files = [
    { path: 'blog.yaml', text: domainText('blog', 2) },
    ...(groups === undefined ? [] : [{ path: nodeGroupsFile, text: `groups: [${groups}]` }]),
    { path: 'policy.yaml', text: policy },
    { path: 'shop.yaml', text: domainText('shop', 12) },
  ];
  const options = { mergeDomains: false, maxResponseBytes: 1_000_000 };
  const outcome = buildSnapshots({ files, problems: [] }, options, { encode });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.built;
}

const edge = '{name: edge, match: {id: "edge-*"}, domains: "*"}';
/** By somebody who owns no domain: each switches the limits of the shop off for some nodes, or hurries what comes. */
const attacks: readonly (readonly [
  what: string,
  before: string | undefined,
  after: string,
  removes: boolean,
])[] = [
  ['a group for all nodes without domains', undefined, '{name: all, domains: []}', true],
  ['a group for all nodes with one domain', undefined, '{name: all, domains: [blog]}', true],
  [
    'a group without domains in front of another',
    edge,
    `{name: x, match: {id: "*-1"}, domains: []}, ${edge}`,
    true,
  ],
  ['fewer domains for a group', edge, edge.replace('"*"}', '[blog]}'), true],
  [
    'another condition',
    edge.replace('"*"}', '[blog]}'),
    edge.replace('"*"}', '[blog]}').replace('edge-*', '*'),
    true,
  ],
  [
    'a condition on metadata',
    edge,
    `{name: x, match: {metadata: {stage: prod}}, domains: []}, ${edge}`,
    true,
  ],
  [
    'one pattern of many, in front of which the others are in another group',
    edge,
    '{name: x, match: {id: [edge-1, edge-2, edge-3, edge-4]}, domains: "*"}, {name: y, match: {id: [edge-1, edge-2, edge-3, edge-4, "edge-*"]}, domains: []}',
    true,
  ],
  [
    'a pattern that one character in front of it hides',
    edge,
    `{name: x, match: {id: "edge-?"}, domains: "*"}, ${edge.replace('"*"}', '[]}')}`,
    true,
  ],
  [
    'a pattern of many stars',
    edge,
    `{name: x, match: {id: "${'*'.repeat(400)}"}, domains: []}, ${edge}`,
    true,
  ],
  ['no steps', edge, edge.replace('domains', 'rollout: 100%, domains'), false],
];

for (const [what, was, is, removes] of attacks) {
  // Proof of SECURITY.md: cannot remove limits of others by `node-groups.yaml`
  test(`policy, removal guard and diff see what each node gets: ${what}`, (t) => {
    const [before, after] = [build(was), build(is)];
    const changes = compareForNodes(before, after);
    t.true(
      changes.some(({ domain, kind }) => domain === 'shop' && kind.startsWith('group_')),
      JSON.stringify(changes),
    );
    const { refused } = runAtOnce(
      judgingByPolicy(before, after, {
        steps: [{ makers: [{ author: 'bob', message: undefined }], changed: undefined }],
        isUndo: false,
        comparing: comparingForNodes,
      }),
    );
    t.is(refused[0]?.message, "domain 'shop' is changed by bob, and only ada may change it");
    t.is(runAtOnce(findingRemoval(before, after)) !== undefined, removes);
  });
}

test('groups that give each node what it had change nothing', (t) => {
  for (const [was, is] of [
    [undefined, '{name: all, domains: "*"}'],
    [edge, edge.replace('name: edge', 'name: other')],
    [edge, `${edge}, {name: second, match: {id: "edge-1"}, domains: []}`],
    [edge, edge.replace('edge-*', 'e*')],
    [
      edge.replace('edge-*', 'e*').replace('"*"}', '[blog]}'),
      '{name: a, match: {id: ["e*"]}, domains: blog}, {name: b, match: {cluster: "*", id: "edge"}, domains: []}',
    ],
    [
      '{name: a, match: {id: ["e*", "f*"]}, domains: blog}',
      '{name: a, match: {id: "e*"}, domains: blog}, {name: b, match: {id: "f*"}, domains: blog}',
    ],
  ] as const) {
    const [before, after] = [build(was), build(is)];
    t.deepEqual(compareForNodes(before, after), []);
    t.is(runAtOnce(findingRemoval(before, after)), undefined);
  }
});

test('two patterns meet where a text matches both, and one contains the other where it matches all of its texts', (t) => {
  for (const [one, other, meet, contains] of [
    ['edge-*', '*-1', true, false],
    ['a?c', 'ab*', true, false],
    ['*', 'x', true, true],
    ['a*', 'b*', false, false],
    ['a', 'ab', false, false],
    ['*a*b', 'ab', true, true],
    ['a*', 'a?b*', true, true],
    ['a?', 'a*', true, false],
    ['a?', 'a?', true, true],
    ['ab', 'a?', true, false],
    [`${'*'.repeat(400)}a`, `${'?'.repeat(400)}a`, true, false],
  ] as const) {
    t.is(globsMeet(one, other), meet, `${one} ${other}`);
    t.is(globsMeet(other, one), meet, `${other} ${one}`);
    t.is(globContains(one, other), contains, `${one} ${other}`);
  }
});

test('groups that are too many to compare are taken to change everything', (t) => {
  const many = (prefix: string) =>
    Array.from({ length: 200 }, (_, group) => {
      const ids = [1, 2, 3, 4].map((each) => `"${prefix}-${group}-${each}-*"`);
      return `{name: ${prefix}${group}, match: {id: [${ids}]}, domains: "*"}`;
    }).join();
  const [before, after] = [build(many('a')), build(many('b'))];
  const changes = compareForNodes(before, after);
  t.true(changes.some(({ domain, kind }) => domain === 'shop' && kind === 'group_loses_domain'));
  t.regex(runAtOnce(findingRemoval(before, after))?.message ?? '', /no domain would be left/);
});
