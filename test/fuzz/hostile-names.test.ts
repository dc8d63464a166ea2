// Uses names with a meaning in the language, in a file system, or in a protocol, in every place where a caller or an
// author can write one.
import test from 'ava';
import { toFileName } from '../../control-plane/server/admin/domain-file.ts';
import { parseControlPlaneSettings } from '../../control-plane/server/settings.ts';
import { parseNodeGroups } from '../../control-plane/server/snapshot/node-groups.ts';
import { checkingChange } from '../../control-plane/server/store/file-change.ts';
import { toNodeIdentity } from '../../control-plane/server/xds/protocol.ts';
import { runAtOnce } from '../../shared/in-slices.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { formatProblem } from '../../shared/rules/problem/problem-text.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import { fromResource, toResource } from '../../shared/rules/wire/resource.ts';
import { defaultBounds } from '../../shared/rules-file.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { decodeRateLimitRequest } from '../../worker/listen/grpc/request-decoder.ts';
import { parseJsonRequest } from '../../worker/listen/proto-json-reader.ts';
import { parseWorkerSettings } from '../../worker/settings.ts';

const names = ['__proto__', 'constructor', 'prototype', 'hasOwnProperty', 'toString', 'valueOf'];
const { rateLimitConfig, rateLimitService } = loadProtos();

test.afterEach('nothing was added to what all objects inherit', (t) => {
  t.deepEqual(Object.keys(Object.prototype), []);
  t.is(({} as Record<string, unknown>)['polluted'], undefined);
  t.false('shadow_mode' in {});
});

test('keys of a rules document that objects inherit are unknown keys', (t) => {
  for (const name of names) {
    for (const text of [
      `domain: d\n${name}: {polluted: true}\ndescriptors:\n- key: k\n`,
      `domain: d\ndescriptors:\n- key: k\n  ${name}: {shadow_mode: true}\n`,
      `domain: d\ndescriptors:\n- key: k\n  rate_limit: {unlimited: true, ${name}: 1}\n`,
      `domain: d\n<<: {${name}: {polluted: true}}\ndescriptors:\n- key: k\n`,
    ]) {
      const { document, problems } = parseRuleDocument(text, 'f');
      t.is(document, undefined);
      t.regex(problems.map(formatProblem).join('\n'), new RegExp(`unknown key '${name}'`));
    }
  }
});

test('names that objects inherit are domains, keys, values and metadata like any others', (t) => {
  for (const name of names) {
    const text = `domain: ${name}
descriptors:
  - key: ${name}
    value: ${name}
    rate_limit: {unit: year, requests_per_unit: 1, name: ${name}}
    metadata: {${name}: {polluted: ${name}}}
`;
    const { document } = parseRuleDocument(text, 'f');
    if (document === undefined) {
      t.fail(name);
      continue;
    }
    const built = buildRuleSet([document], { mergeDomains: true, sanitizeMetricDots: false });
    const rules = built.ok ? built.ruleSet.domains.get(name) : undefined;
    t.is(rules?.match([{ key: name, value: name }])?.limit.requestsPerUnit, 1);
    t.is(rules?.match([{ key: 'k', value: 'v' }]), undefined);
    t.is(built.ok ? built.ruleSet.domains.get('other') : undefined, undefined);
    const metadata = document.descriptors[0]?.metadata ?? {};
    t.deepEqual(Object.keys(metadata), [name]);
    // Over the wire and back.
    const { message } = toResource(document, { withExtensions: true });
    const back = fromResource(rateLimitConfig.deserialize(rateLimitConfig.serialize(message)), 'f');
    t.deepEqual(Object.keys(back.document?.descriptors[0]?.metadata ?? {}), [name], name);
  }
});

test('requests may contain any names, and members that objects inherit are unknown', (t) => {
  for (const name of names) {
    const request = {
      domain: name,
      descriptors: [{ entries: [{ key: name, value: name }] }],
      hitsAddend: 0,
    };
    const json = parseJsonRequest(Buffer.from(JSON.stringify(request)));
    t.true(json.ok && json.request.descriptors[0]?.entries[0]?.key === name);
    const bytes = rateLimitService.ShouldRateLimit.requestSerialize(request);
    const binary = decodeRateLimitRequest(bytes);
    t.true(binary.ok && binary.message.domain === name);
    const refused = parseJsonRequest(Buffer.from(`{"${name}": {"polluted": true}}`));
    t.regex(refused.ok ? '' : refused.problem, /unknown field/);
  }
});

test('settings, groups and nodes may have names that objects inherit', (t) => {
  for (const name of names) {
    const tags = { TAGGED_TAGS: `${name}:a` };
    t.deepEqual(parseWorkerSettings({ [name]: 'true', ...tags }), parseWorkerSettings(tags));
    const directory = { RATELANE_CONFIG_DIR: '/x' };
    const settings = parseControlPlaneSettings({ ...directory, [name]: 'true' });
    t.deepEqual(settings, parseControlPlaneSettings(directory));
    const groups = parseNodeGroups(
      `groups: [{name: ${name}, match: {metadata: {${name}: a}}, domains: ['*']}]\n`,
      ['d'],
    );
    t.is(groups.groups[0]?.name, name, groups.problems.map(formatProblem).join('\n'));
    t.regex(
      parseNodeGroups(`groups: []\n${name}: 1\n`, []).problems.map(formatProblem).join('\n'),
      new RegExp(`unknown key '${name}'`),
    );
    const fields = Object.fromEntries([[name, { kind: 'stringValue', stringValue: 'a' }]]);
    t.is(toNodeIdentity({ metadata: { fields } } as never)?.metadata.get(name), 'a');
  }
});

const positions = [
  '../a.yaml',
  'a/../../b.yaml',
  '/etc/a.yaml',
  'a//b.yaml',
  './a.yaml',
  '.git/config.yaml',
  'a\\..\\b.yaml',
  'a\0.yaml',
  'a\n.yaml',
  'C:\\a.yaml',
  `${'a/'.repeat(40)}b.yaml`,
  `${'a'.repeat(2000)}.yaml`,
  '',
  '.',
];

test('no change writes outside of its store', (t) => {
  for (const path of positions) {
    const change = { put: [{ path, text: '' }], delete: [] };
    const problems = runAtOnce(checkingChange(change, new Set(), defaultBounds));
    t.true(problems.length > 0, path);
  }
});

test('no domain becomes a file elsewhere', (t) => {
  for (const domain of [
    ...positions,
    ...names,
    'node-groups',
    'CON',
    '-rf',
    '..%2f',
    '/',
    'é',
    '\ud800',
  ]) {
    const name = toFileName(domain);
    t.regex(name, /^[A-Za-z0-9_][\w-]*\.yaml$/, domain);
    const change = { put: [{ path: name, text: '' }], delete: [] };
    t.deepEqual(runAtOnce(checkingChange(change, new Set(), defaultBounds)), []);
    t.not(name, 'node-groups.yaml');
  }
});
