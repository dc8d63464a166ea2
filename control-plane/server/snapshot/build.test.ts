import test from 'ava';
import fc from 'fast-check';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../../shared/rules/problem/problem-text.ts';
import { extensionsAnnouncement } from '../../../shared/rules/wire/resource-fields.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { ruleText } from '../../../test/support/rules-folder.ts';
import {
  type BuildOptions,
  type BuiltSnapshots,
  buildSnapshots,
  defaultMaxResponseBytes,
} from './build.ts';
import { nodeGroupsFile } from './node-groups.ts';
import { selectSnapshot } from './served.ts';
import type { Snapshot } from './snapshot.ts';
import { largestResponseBytes } from './snapshot.ts';

const { rateLimitConfig } = loadProtos();
const defaults: BuildOptions = { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 };

function build(files: Readonly<Record<string, string>>, options: Partial<BuildOptions> = {}) {
  const revision = {
    files: Object.entries(files).map(([path, text]) => ({ path, text })),
    problems: [],
  };
  return buildSnapshots(
    revision,
    { ...defaults, ...options },
    { encode: rateLimitConfig.serialize },
  );
}

function builtFrom(...args: Parameters<typeof build>): BuiltSnapshots {
  const outcome = build(...args);
  if (!outcome.ok) throw new Error(formatProblems(outcome.problems));
  return outcome.built;
}

function problemsOf(...args: Parameters<typeof build>): string {
  const outcome = build(...args);
  return formatProblems(outcome.ok ? outcome.warnings : outcome.problems);
}

const node = (id: string, metadata: readonly (readonly [string, string])[] = []) => ({
  id,
  cluster: '',
  metadata: new Map(metadata),
});
const ownNode = (id: string) => node(id, [extensionsAnnouncement]);
const messagesOf = (snapshot: Snapshot | undefined) =>
  [...(snapshot?.resources.values() ?? [])].map(({ any }) =>
    rateLimitConfig.deserialize(any.subarray(any.indexOf(0x12) + toHeadLength(any))),
  );
/** Bytes before the value in an Any: its tag and its length. */
function toHeadLength(any: Buffer): number {
  let length = 2;
  for (let at = any.indexOf(0x12) + 1; (any[at] ?? 0) > 0x7f; at++) length++;
  return length;
}

test('the files of a domain are served in the order in which a worker takes files', (t) => {
  const { groups } = builtFrom(
    {
      'a.yaml': ruleText('shop', 5).replace('key: k', 'key: k\n    value: a*'),
      'a/b.yaml': ruleText('shop', 7).replace('key: k', "key: k\n    value: '*'"),
    },
    { mergeDomains: true },
  );
  const [message] = messagesOf(groups[0]?.standard);
  t.deepEqual(
    message?.descriptors?.map(({ value }) => value),
    ['*', 'a*'],
  );
});

test('each domain is a resource of its name', (t) => {
  const { groups, domains, ruleSet } = builtFrom({
    'x/shop.yaml': ruleText('shop', 5),
    'mail.yaml': ruleText('mail', 7),
  });
  t.deepEqual(domains, ['mail', 'shop']);
  t.is(ruleSet.limitCount, 2);
  const snapshot = selectSnapshot(groups, node('any'));
  t.deepEqual([...(snapshot?.resources.keys() ?? [])], ['mail', 'shop']);
  const [mail] = messagesOf(snapshot);
  t.like(mail, { name: 'mail', domain: 'mail' });
  t.is(mail?.descriptors?.[0]?.rateLimit?.requestsPerUnit, 7);
});

test('one invalid file refuses the revision, with the problems of all files', (t) => {
  const outcome = build({
    'a.yaml': ruleText('a', 1),
    'b.yaml': ruleText('b', 1).replace('year', 'yaer'),
    'c.yaml': 'domain:',
    [nodeGroupsFile]: 'groups: 1',
  });
  t.false(outcome.ok);
  const positions = outcome.ok ? [] : outcome.problems.map(({ file, line }) => `${file}:${line}`);
  t.deepEqual(positions, ['b.yaml:4', 'c.yaml:1', 'node-groups.yaml:1']);
});

test('metadata that is nested too deeply to be sent is an error of its file', (t) => {
  const textWith = (levels: number) =>
    `domain: d\ndescriptors:\n- key: k\n  metadata: {x: ${'{a: '.repeat(levels)}1${'}'.repeat(levels)}}\n  rate_limit: {unit: second, requests_per_unit: 2}\n`;
  t.true(build({ 'd.yaml': textWith(40) }).ok);
  t.regex(
    problemsOf({ 'a.yaml': ruleText('a', 1), 'd.yaml': textWith(100) }),
    /^d\.yaml: error: domain 'd' cannot be sent to workers: .*depth.*\n.*metadata may be nested/,
  );
});

test('a file that could not be read refuses the revision, a file that is ignored does not', (t) => {
  const of = (severity: 'error' | 'warning') =>
    buildSnapshots(
      { files: [], problems: [problemOf(severity, 'other', 'x', 'something')] },
      defaults,
      { encode: rateLimitConfig.serialize },
    );
  t.false(of('error').ok);
  t.true(of('warning').ok);
});

test('files of one domain are merged into one resource, or refused', (t) => {
  const files = {
    'a.yaml': 'domain: d\ndescriptors: [{ key: one, rate_limit: { unlimited: true } }]',
    'b.yaml': 'domain: d\ndescriptors: [{ key: two, rate_limit: { unlimited: true } }]',
  };
  const { groups } = builtFrom(files, { mergeDomains: true });
  const messages = messagesOf(groups[0]?.extended);
  t.deepEqual(
    messages.map(({ name, descriptors }) => [name, ...(descriptors ?? []).map(({ key }) => key)]),
    [['d', 'one', 'two']],
  );
  t.is(
    problemsOf(files),
    `b.yaml:1:9: error: duplicate domain 'd' in config file
    domain: d
            ^
    hint: the first one is at a.yaml:1:9; to merge them, set MERGE_DOMAIN_CONFIG=true (a worker) or --merge-domains (a control plane, check)`,
  );
});

test('versions follow from the rules, not from where and how they are written', (t) => {
  const version = (files: Readonly<Record<string, string>>) =>
    builtFrom(files, { mergeDomains: true }).groups[0]?.extended.version;
  const plain = version({ 'a.yaml': ruleText('a', 1), 'b.yaml': ruleText('b', 2) });
  t.is(version({ 'z.yaml': ruleText('a', 1), 'b/c.yaml': `# new\n${ruleText('b', 2)}` }), plain);
  t.is(version({ 'a.yaml': ruleText('b', 2), 'b.yaml': ruleText('a', 1) }), plain);
  t.not(version({ 'a.yaml': ruleText('a', 1), 'b.yaml': ruleText('b', 3) }), plain);
  const limits = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 0, max: 3 }));
  const toFiles = (of: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(of).map(([name, n]) => [`${name}.yaml`, ruleText(name, n)]));
  fc.assert(
    fc.property(limits, limits, (one, other) => {
      const isSame =
        JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort());
      return (version(toFiles(one)) === version(toFiles(other))) === isSame;
    }),
    { numRuns: 200 },
  );
});

const withExtensions = `domain: shop
descriptors:
  - {key: path, value: /a*, share_threshold: true, rate_limit: { unit: hour, requests_per_unit: 5 }}
  - {key: user, value_to_metric: true, rate_limit: { unit: hour, requests_per_unit: 5 }}
`;

test('only nodes that announce themselves get the fields that the message lacks', (t) => {
  const { groups, leftOut } = builtFrom({ 'a.yaml': withExtensions, 'b.yaml': ruleText('b', 1) });
  const own = selectSnapshot(groups, ownNode('n'));
  const others = selectSnapshot(groups, node('n'));
  t.not(own?.version, others?.version);
  t.is(own?.resources.get('b'), others?.resources.get('b'));
  const metadataOf = (snapshot: Snapshot | undefined) =>
    messagesOf(snapshot)[1]?.descriptors?.map(({ metadata }) =>
      Object.keys(metadata?.fields ?? {}),
    );
  t.deepEqual(metadataOf(own), [['ratelane.fields'], ['ratelane.fields']]);
  t.deepEqual(metadataOf(others), [[], []]);
  t.deepEqual(
    [...leftOut],
    [['shop', ['descriptors[0].share_threshold', 'descriptors[1].value_to_metric']]],
  );
  t.is(
    problemsOf({ 'a.yaml': withExtensions }),
    `a.yaml:1:9: note: share_threshold and value_to_metric of domain 'shop' (2 places) cannot be sent to workers that are not Ratelane's; they get the rules without [worker-only-field]
    domain: shop
            ^`,
  );
});

test('one field that the message lacks is reported with its domain', (t) => {
  const text = withExtensions.replace('    value_to_metric: true\n', '');
  t.deepEqual([...builtFrom({ 'a.yaml': text }).leftOut.keys()], ['shop']);
});

test('notes that only matter for valid rules are not reported of a revision with errors', (t) => {
  const problems = problemsOf({ 'a.yaml': withExtensions, 'b.yaml': 'domain:' });
  t.regex(problems, /^b\.yaml:1/);
  t.notRegex(problems, /a\.yaml/);
});

test('names of limits keep the dots of their keys', (t) => {
  const text = ruleText('shop', 1).replace('key: k', 'key: k.x');
  const { domains } = builtFrom({ 'a.yaml': text }).ruleSet;
  t.deepEqual([...(domains.get('shop')?.limitNames() ?? [])], ['shop.k.x']);
});

test('where it makes no difference, both kinds of nodes share one snapshot', (t) => {
  const { groups } = builtFrom({ 'a.yaml': ruleText('a', 1) });
  t.is(groups[0]?.extended, groups[0]?.standard);
});

test('a group gets the domains that it is given', (t) => {
  const { groups } = builtFrom({
    'a.yaml': ruleText('shop', 1),
    'b.yaml': ruleText('mail-in', 1),
    'c.yaml': ruleText('mail-out', 1),
    [nodeGroupsFile]: `groups:
  - { name: mailers, match: { id: mail-* }, domains: mail-* }
  - { name: none, match: { id: x }, domains: [] }
`,
  });
  const of = (id: string) => [...(selectSnapshot(groups, node(id))?.resources.keys() ?? [])];
  t.deepEqual(of('mail-1'), ['mail-in', 'mail-out']);
  t.deepEqual(of('x'), []);
  t.deepEqual(of('y'), ['mail-in', 'mail-out', 'shop']);
});

test('groups of the same domains share one snapshot', (t) => {
  const { groups } = builtFrom({
    'a.yaml': ruleText('shop', 1),
    [nodeGroupsFile]: 'groups: [{ name: a, match: { id: a }, domains: shop }]',
  });
  t.is(groups.length, 2);
  t.is(groups[0]?.extended, groups[1]?.extended);
});

test('a response larger than workers take is refused, for the group that it is for', (t) => {
  const files = {
    'a.yaml': ruleText('a', 1),
    'b.yaml': ruleText('b', 1),
    [nodeGroupsFile]: 'groups: [{ name: small, match: { id: s }, domains: a }]',
  };
  const problems = problemsOf(files, { maxResponseBytes: 300 });
  t.regex(
    problems,
    /^\(all files\): error: the rules for node group 'default' are a response of \d+ bytes, more than the 300 that its workers take\n {4}hint: give the group fewer domains in node-groups\.yaml, or raise/,
  );
  t.notRegex(problems, /small/);
  t.is(problemsOf(files), '');
});

test('a response of exactly the bytes that workers take is not too large', (t) => {
  const files = { 'a.yaml': ruleText('a', 1) };
  const [group] = builtFrom(files).groups;
  if (group === undefined) throw new Error('there is always one');
  const bytes = largestResponseBytes(group.extended);
  t.true(build(files, { maxResponseBytes: bytes }).ok);
  t.false(build(files, { maxResponseBytes: bytes - 1 }).ok);
});

test('the larger of the two kinds of responses must be one that workers accept', (t) => {
  const files = { 'a.yaml': withExtensions };
  const [group] = builtFrom(files).groups;
  if (group === undefined) throw new Error('there is always one');
  const [ours, others] = [group.extended, group.standard].map(largestResponseBytes);
  t.true((ours ?? 0) > (others ?? 0));
  t.false(build(files, { maxResponseBytes: others ?? 0 }).ok);
});

test('by default a response may have the four MiB that the reference worker takes', (t) => {
  const buildWith = (bytes: number, maxResponseBytes = defaultMaxResponseBytes) =>
    buildSnapshots(
      { files: [{ path: 'a.yaml', text: ruleText('a', 1) }], problems: [] },
      { ...defaults, maxResponseBytes },
      { encode: () => Buffer.alloc(bytes) },
    );
  const near = 4_194_304 - 1_000;
  const probe = buildWith(near, Number.POSITIVE_INFINITY);
  const [group] = probe.ok ? probe.built.groups : [];
  if (group === undefined) throw new Error('there is always one');
  const most = 4_194_304 - (largestResponseBytes(group.extended) - near);
  t.true(buildWith(most).ok);
  t.false(buildWith(most + 1).ok);
});

test('steps of a rollout are warned of where revisions are not rolled out', (t) => {
  const files = {
    'a.yaml': ruleText('a', 1),
    [nodeGroupsFile]: "groups: [{ name: live, domains: a, rollout: '5%' }]",
  };
  t.is(
    problemsOf(files, { rollsOut: false }),
    "node-groups.yaml: warning: group 'live' has steps of a rollout, but revisions reach all workers at once here [node-groups]\n    hint: start the control plane with --rollout",
  );
  t.is(problemsOf(files, { rollsOut: true }), '');
  t.is(problemsOf(files), '');
});

test('no rules at all are a revision as well, with a warning', (t) => {
  t.is(builtFrom({}).groups[0]?.extended.resources.size, 0);
  t.is(
    problemsOf({}),
    '(all files): warning: no file named *.yaml or *.yml; no limit applies [no-rules-file]',
  );
});

test('a rule that ends goes only to workers that can end it, whether or not it has ended', (t) => {
  const limit = 'rate_limit: {unit: hour, requests_per_unit: 5}';
  const usual = `domain: shop
descriptors:
  - {key: user, value_to_metric: true, ${limit}}
`;
  const lift =
    '  - {key: user, value: ada, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}\n';
  const older = node('older', [['ratelane.fields', 'value_to_metric share_threshold']]);
  const otherNode = node('other');
  const plain = builtFrom({ 'shop.yaml': usual }).groups;
  const built = builtFrom({ 'shop.yaml': `${usual}${lift}` });
  const versionOf = (groups: typeof plain, of: typeof older) => selectSnapshot(groups, of)?.version;
  const [message] = messagesOf(selectSnapshot(built.groups, ownNode('own')));
  t.deepEqual(
    message?.descriptors?.map(({ value }) => value ?? ''),
    ['', 'ada'],
  );
  t.is(versionOf(built.groups, older), versionOf(plain, ownNode('own')));
  t.is(versionOf(built.groups, otherNode), versionOf(plain, otherNode));
  t.not(versionOf(plain, ownNode('own')), versionOf(plain, otherNode));
  t.deepEqual(built.leftOut.get('shop'), [
    'descriptors[0].value_to_metric',
    'descriptors[1].until',
  ]);
  t.regex(
    problemsOf({ 'shop.yaml': `${usual}${lift}` }),
    /until and value_to_metric of domain 'shop' \(2 places\) cannot be sent to workers that are not Ratelane's; they get the rules without them, and no rule with until/,
  );
});

test('two builds have one content exactly where every node gets the same', (t) => {
  const contentOf = (limit: number, match = 'id: edge-*', domains = '[shop]', name = 'edge') =>
    builtFrom({
      'shop.yaml': ruleText('shop', limit),
      'mail.yaml': ruleText('mail', 1),
      [nodeGroupsFile]: `groups:\n  - name: ${name}\n    match: { ${match} }\n    domains: ${domains}\n`,
    }).content;
  const content = contentOf(1);
  t.regex(content, /^[0-9a-f]{32}$/);
  t.is(contentOf(1), content);
  t.is(contentOf(1, undefined, undefined, 'another-name'), content);
  const others = [
    contentOf(2),
    contentOf(1, 'id: edge-1'),
    contentOf(1, 'id: [edge-*, core-*]'),
    contentOf(1, 'cluster: edge-*'),
    contentOf(1, 'metadata: { stage: edge-* }'),
    contentOf(1, 'metadata: { tier: edge-* }'),
    contentOf(1, 'metadata: { tier: core-* }'),
    contentOf(1, undefined, '[mail]'),
    contentOf(1, undefined, '[mail, shop]'),
  ];
  t.is(new Set([content, ...others]).size, others.length + 1);
});
