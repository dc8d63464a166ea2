// Names that mean something to the language, to a file system, or to a protocol, in every place where a
// caller or an author may write one.
import test from 'ava';
import { toFileName } from '../../control-plane/admin/domain-file.ts';
import { parseControlPlaneSettings } from '../../control-plane/settings.ts';
import { parseNodeGroups } from '../../control-plane/snapshot/node-groups.ts';
import { checkChange } from '../../control-plane/store/file-change.ts';
import {
  parseGitAddress,
  reasonAgainstFolder,
  reasonAgainstRefName,
} from '../../control-plane/store/git-address.ts';
import { toTrailers } from '../../control-plane/xds/grpc-call.ts';
import { toNodeIdentity } from '../../control-plane/xds/node-identity.ts';
import { toErrorTrailers } from '../../shared/grpc/http2/answer-blocks.ts';
import { createLog } from '../../shared/log.ts';
import { createTestClient } from '../../shared/router/test-client.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { sanitizeMetricName } from '../../shared/rules/lookup/metric-key.ts';
import { formatProblem } from '../../shared/rules/problem/problem-text.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import { fromResource, toResource } from '../../shared/rules/wire/resource.ts';
import { defaultBounds } from '../../shared/rules-file.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { decodeRateLimitRequest } from '../../worker/listen/grpc/request-decoder.ts';
import { parseJsonRequest } from '../../worker/listen/proto-json-reader.ts';
import { toTagEntries } from '../../worker/metrics/metric-name.ts';
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

test('requests may name anything, and members that objects inherit are unknown', (t) => {
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

test('settings, groups and nodes may name what objects inherit', (t) => {
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

const injection = 'a\r\nx-injected: 1\r\n\r\nb\u0000\u2028';

test('text of others stays in its field: trailers, log lines, statistics', (t) => {
  const trailers = toTrailers(3, injection)['grpc-message'] ?? '';
  t.regex(trailers, /^[ -~]*$/);
  t.is(decodeURIComponent(trailers), injection);
  t.false(
    /[\r\n]/.test(
      toErrorTrailers(2, injection)
        .toString('latin1')
        .replace(/^[^%]*/, ''),
    ),
  );
  for (const format of ['text', 'json', 'terminal'] as const) {
    let written = '';
    const log = createLog({
      level: 'info',
      format,
      write(text: string) {
        written += text;
        return true;
      },
    } as never);
    log.warning(`domain ${injection}`);
    t.false(/[\r\0\u2028]/.test(written), JSON.stringify(written));
    // On a terminal a message may have lines of its own, which are indented.
    if (format !== 'terminal') t.is(written.split('\n').length, 2, written);
    t.false(/^x-injected/m.test(written) && format !== 'terminal', written);
  }
  t.regex(sanitizeMetricName(`ratelimit.${injection}:1|c`), /^[^\r\n|:\0\u2028]*$/);
  for (const [key, value] of toTagEntries({ [injection]: injection })) {
    t.regex(key + value, /^[^\r\n|:\0]*$/);
  }
});

const places = [
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

test('no change writes beside its store', (t) => {
  for (const path of places) {
    const change = { put: [{ path, text: '' }], delete: [] };
    const problems = checkChange(change, new Set(), defaultBounds);
    t.true(problems.length > 0, path);
  }
});

test('no domain becomes a file elsewhere', (t) => {
  for (const domain of [
    ...places,
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
    t.deepEqual(checkChange(change, new Set(), defaultBounds), []);
    t.not(name, 'node-groups.yaml');
  }
});

test('no ref, folder or address of a Git repository is taken for something else', (t) => {
  for (const text of [
    '--upload-pack=x',
    '-c',
    'ext::sh -c x',
    'fd::1',
    'a\nb',
    'a b',
    '',
    'rsync://x',
  ]) {
    t.false(parseGitAddress(text).ok, text);
  }
  for (const ref of [
    '--all',
    '-x',
    '@{u}',
    'a..b',
    'a:b',
    'a^',
    'a b',
    'a\0',
    '/a',
    'a.lock',
    '@',
    '*',
  ]) {
    t.not(reasonAgainstRefName(ref), undefined, ref);
  }
  for (const folder of ['..', 'a/../b', '/a', 'a\nb', 'a\\b', '.git']) {
    t.not(reasonAgainstFolder(folder), undefined, folder);
  }
});

test('paths of the router reach its own methods and nothing that they inherit', async (t) => {
  class Default {
    GET(_fields: unknown, part?: string) {
      return { part: part ?? 'none' };
    }
  }
  class Widgets {
    GET() {
      return 'widgets';
    }
  }
  const { send, reports } = await createTestClient({ '': { Default: Widgets }, shop: { Default } });
  for (const name of [...names, 'default', 'DEFAULT', 'get', 'GET', '__defineGetter__', 'then']) {
    for (const target of [`/${name}`, `/${name}/${name}`, `/shop/x/${name}`, `/shop.${name}`]) {
      const { status, text } = await send('GET', target);
      t.is(status, 404, `${target}: ${text}`);
    }
    const { status: partStatus, text } = await send('GET', `/shop/${name}`);
    const isPart = partStatus === 200 && text === JSON.stringify({ part: name });
    t.true(isPart || partStatus === 404, `${name}: ${text}`);
    const { status } = await send('GET', `/shop?${name}=1&${name}[polluted]=1`);
    t.true(status < 500, `${name}: ${status}`);
    t.true((await send(name, '/shop')).status >= 400);
  }
  for (const target of [
    '/../shop',
    '/%2e%2e/shop',
    '/shop/../../etc',
    '/shop/%2e%2e',
    '/%00',
    '/\\..',
  ]) {
    const { status } = await send('GET', target);
    t.true(status === 400 || status === 404, `${target}: ${status}`);
  }
  t.is(
    (await send('POST', '/shop', { body: '{"__proto__": {"polluted": 1}}' })).status >= 400,
    true,
  );
  t.deepEqual(reports, []);
});
