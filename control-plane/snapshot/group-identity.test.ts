import test from 'ava';
import { loadProtos } from '../../shared/wire/protos.ts';
import { ruleText } from '../../test/support/rules-folder.ts';
import { type BuiltSnapshots, buildSnapshots } from './build.ts';
import { keepIdentities } from './group-identity.ts';
import { nodeGroupsFile } from './node-groups-file.ts';

const encode = loadProtos().rateLimitConfig.serialize;

function build(
  limit: number,
  match = 'id: edge-*',
  domains = '[shop]',
  name = 'edge',
): BuiltSnapshots {
  const groups = `groups:\n  - name: ${name}\n    match: { ${match} }\n    domains: ${domains}\n`;
  const files = [
    { path: 'shop.yaml', text: ruleText('shop', limit) },
    { path: 'mail.yaml', text: ruleText('mail', 1) },
    { path: nodeGroupsFile, text: groups },
  ];
  const options = { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 };
  const outcome = buildSnapshots({ files, problems: [] }, options, { encode });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.built;
}

test('two builds have one content exactly where every node gets the same', (t) => {
  const { content } = build(1);
  t.regex(content, /^[0-9a-f]{32}$/);
  t.is(build(1).content, content);
  t.is(build(1, undefined, undefined, 'another-name').content, content);
  const others = [
    build(2),
    build(1, 'id: edge-1'),
    build(1, 'id: [edge-*, core-*]'),
    build(1, 'cluster: edge-*'),
    build(1, 'metadata: { stage: edge-* }'),
    build(1, 'metadata: { tier: edge-* }'),
    build(1, 'metadata: { tier: core-* }'),
    build(1, undefined, '[mail]'),
    build(1, undefined, '[mail, shop]'),
  ].map((each) => each.content);
  t.is(new Set([content, ...others]).size, others.length + 1);
});

test('a snapshot of before is kept where the content is equal, in whichever group', (t) => {
  const before = build(1);
  const [edge, rest] = build(1).groups;
  const kept = keepIdentities(edge && rest ? [rest, edge] : [], before.groups);
  t.is(kept[0]?.ours, before.groups[1]?.ours);
  t.is(kept[1]?.others, before.groups[0]?.others);
  t.is(kept[0]?.group, rest?.group);
  const [changed] = keepIdentities(build(2).groups, before.groups);
  t.not(changed?.ours.version, before.groups[0]?.ours.version);
});
