// The effect of a change on each node, whether made by rules or by groups, and the guards' verdicts on it.
import test from 'ava';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { type BuiltSnapshots, buildSnapshots } from './build.ts';
import { findingRemoval } from './large-removal.ts';
import { compareForNodes, globContains, globsMeet } from './node-change.ts';
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

/** Groups before and after a change by an author who owns no domain; `-` for no file of groups. */
// Proof of SECURITY.md: cannot remove limits of others by `node-groups.yaml`
testLines(test, new URL('node-change.txt', import.meta.url), (given) => {
  const [before, after] = given.split(' => ').map((text) => build(text === '-' ? undefined : text));
  if (before === undefined || after === undefined) throw new Error('no change');
  const changes = compareForNodes(before, after);
  const { refused } = runAtOnce(
    judgingByPolicy(before, after, {
      steps: [{ makers: [{ author: 'bob', message: undefined }], changed: undefined }],
      isUndo: false,
    }),
  );
  const seen = [
    ...changes.map(({ domain, kind, text }) => `${domain} ${kind}: ${text}`),
    ...refused.map(({ message }) => message),
    ...(runAtOnce(findingRemoval(before, after)) === undefined ? [] : ['a removal']),
  ];
  return seen.join('; ') || 'nothing changes';
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

test('a change of too many groups to compare counts as a change of everything', (t) => {
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
