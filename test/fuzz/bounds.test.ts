// Exceeds every limit: each excess is refused by naming the limit, in bounded time and memory. Times are processor
// time, since others may load a small machine, and are logged.
import test, { type ExecutionContext } from 'ava';
import { toNodeIdentity } from '../../control-plane/server/xds/protocol.ts';
import { runAtOnce } from '../../shared/in-slices.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { defaultRequestBounds, maxRequestBytes } from '../../worker/decision/request-bounds.ts';
import { decodeRateLimitRequest } from '../../worker/listen/grpc/request-decoder.ts';
import { parseJsonRequest } from '../../worker/listen/proto-json-reader.ts';
import { applyResources } from '../../worker/rules-source/ads-resources.ts';
import { callDiscovery, discoveryProtos, snapshotOf, startAds } from '../support/ads-fixture.ts';
import { cpuMs } from '../support/cpu-time.ts';
import { toAny } from '../support/scripted-ads-server.ts';
import { checkNamedProblem } from './named-problem.ts';

const { rateLimitConfig } = loadProtos();
const longestMs = 20_000;
const largestBytes = 1024 * 1024 * 1024;

/** Runs it, and logs the time. */
function measure<T>(t: ExecutionContext, what: string, run: () => T): T {
  const bytesBefore = process.memoryUsage().rss;
  const startMs = cpuMs();
  const result = run();
  const tookMs = cpuMs() - startMs;
  const grownBytes = process.memoryUsage().rss - bytesBefore;
  t.log(`${what}: ${Math.round(tookMs)} ms, ${Math.round(grownBytes / 1e6)} MB`);
  t.true(tookMs < longestMs, what);
  t.true(grownBytes < largestBytes, what);
  return result;
}

/** Includes the whole text, if it is short enough to read. */
function problemsOf(t: ExecutionContext, what: string, text: string): string {
  const { problems } = measure(t, what, () => parseRuleDocument(text, 'rules.yaml'));
  const shown = formatProblems(problems);
  if (shown !== '') checkNamedProblem(shown);
  t.true(shown.length < 300_000, `${what}: ${shown.length} characters`);
  t.true(problems.length <= 202, what);
  return shown;
}

const head = 'domain: d\ndescriptors:\n';

test.serial('a document that is too large is refused by its size', (t) => {
  t.timeout(120_000);
  t.regex(
    problemsOf(t, 'a text of 5 MB', `${head}# ${'x'.repeat(5_000_000)}`),
    /longer than 4194304 characters/,
  );
  t.regex(problemsOf(t, 'many parts', '- a\n'.repeat(1_000_000)), /more than 2000000 parts/);
  const scalar = problemsOf(
    t,
    'a value of 4 MB',
    `${head}- key: ${'x'.repeat(4_000_000)}\n  value: 1.5\n`,
  );
  t.regex(scalar, /1\.5 is neither text nor a whole number/);
  const digits = problemsOf(
    t,
    'a number of 4 MB',
    `${head}- key: k\n  rate_limit: {unit: day, requests_per_unit: ${'9'.repeat(4_000_000)}}\n`,
  );
  t.regex(digits, /requests_per_unit is '9+\.\.\.', not a whole number/);
  const zeros = problemsOf(
    t,
    'zeros of 4 MB',
    `${head}- key: k\n  value: 0.${'0'.repeat(4_000_000)}1\n`,
  );
  t.regex(zeros, /neither text nor a whole number/);
  t.regex(
    problemsOf(t, 'many documents', '---\ndomain: d\n'.repeat(200_000)),
    /only the first document/,
  );
  t.regex(
    problemsOf(t, 'many problems', `${head}${'- {kye: a}\n'.repeat(100_000)}`),
    /more errors/,
  );
  t.regex(problemsOf(t, 'many slips of syntax', `${'@a: `\n'.repeat(200_000)}`), /not valid YAML/);
  t.regex(
    problemsOf(
      t,
      'many unknown keys',
      `${head}- key: k\n${Array.from({ length: 100_000 }, (_, at) => `  a${at}: 1\n`).join('')}`,
    ),
    /unknown key 'a0'/,
  );
  t.regex(problemsOf(t, 'blanks', `${' '.repeat(4_000_000)}x`), /./);
  t.regex(problemsOf(t, 'blank lines', `${'\n'.repeat(4_000_000)}x`), /./);
});

test.serial('requests of the largest size are read or refused in time', (t) => {
  t.timeout(120_000);
  const bytes = maxRequestBytes;
  const { maxDescriptors, maxEntries } = defaultRequestBounds;
  const listOf = (item: string, count: number) => `[${Array(count).fill(item).join(',')}]`;
  const entries = listOf('{"key":"k","value":"v"}', maxEntries / maxDescriptors);
  const many = `{"descriptors":${listOf(`{"entries":${entries}}`, maxDescriptors)}}`.padEnd(bytes);
  t.true(measure(t, 'JSON: many descriptors', () => parseJsonRequest(Buffer.from(many))).ok);
  for (const [what, text] of [
    ['brackets', '{"descriptors":'.repeat(500_000)],
    ['one string', `{"domain":"${'x'.repeat(bytes)}`],
    ['escapes', `{"domain":"${'\\u0041'.repeat(bytes / 6)}`],
    ['blanks', ' '.repeat(bytes)],
    ['digits', `{"hitsAddend":${'9'.repeat(bytes)}}`],
    ['digits that are zeros by their exponent', `{"hitsAddend":${'9'.repeat(bytes)}00000e-5}`],
    ['too many descriptors', `{"descriptors":${listOf('{}', maxDescriptors + 1)}`],
    ['zeros', `{"hitsAddend":0.${'0'.repeat(bytes)}1}`],
    ['an exponent', `{"hitsAddend":1e${'9'.repeat(bytes)}}`],
    ['members', `{${'"x":1,'.repeat(bytes / 6)}`],
    ['lines', '\n'.repeat(bytes)],
  ] as const) {
    const parsed = measure(t, `JSON: ${what}`, () => parseJsonRequest(Buffer.from(text)));
    t.true(!parsed.ok && parsed.problem.length < 300, what);
  }
  const size = maxRequestBytes;
  for (const [what, unit] of [
    ['empty descriptors', '1200'],
    ['groups', '2b'],
    ['long numbers', '18ffffffffffffffffff01'],
    ['empty entries', '12020a00'],
    ['unknown fields', '7a00'],
  ] as const) {
    const piece = Buffer.from(unit, 'hex');
    const message = Buffer.alloc(Math.floor(size / piece.length) * piece.length, piece);
    const decoded = measure(t, `protobuf: ${what}`, () => decodeRateLimitRequest(message));
    if (!decoded.ok) checkNamedProblem(decoded.problem);
  }
});

test.serial('resources that are too deep or too many are refused by name, and cost little', (t) => {
  t.timeout(120_000);
  const deps = {
    decode: rateLimitConfig.deserialize,
    builder: createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false }),
  };
  const wrap = (tag: number, bytes: Buffer): Buffer => {
    const length: number[] = [];
    for (let left = bytes.length; ; left >>>= 7) {
      length.push(left < 128 ? left : (left & 127) | 128);
      if (left < 128) break;
    }
    return Buffer.concat([Buffer.of(tag, ...length), bytes]);
  };
  let nested: Buffer = Buffer.from('0a016b', 'hex');
  for (let depth = 0; depth < 5000; depth++) nested = wrap(0x22, nested);
  const value = Buffer.concat([Buffer.from('120164', 'hex'), wrap(0x1a, nested)]);
  const typeUrl = toAny({}).type_url ?? '';
  const deep = measure(t, 'descriptors in descriptors', () =>
    runAtOnce(applyResources(deps, [{ type_url: typeUrl, value }], new Map())),
  );
  t.is(deep.problems.length, 1);
  t.regex(formatProblems(deep.problems), /resource 1 of the response: .*nest|depth/);
  const many = Array.from({ length: 20_000 }, (_, at) =>
    toAny({ name: 'same', domain: `d${at % 10}`, descriptors: [{ key: '' }] }),
  );
  const result = measure(t, '20000 bad resources of one name', () =>
    runAtOnce(applyResources(deps, many, new Map())),
  );
  t.is(result.inForce.size, 0);
  const conflicts = Array.from({ length: 20_000 }, (_, at) =>
    toAny({
      name: `n${at}`,
      domain: 'd',
      descriptors: [{ key: 'k', rateLimit: { unlimited: true } }],
    }),
  );
  measure(t, '20000 resources of one domain', () =>
    runAtOnce(applyResources(deps, conflicts, new Map())),
  );
});

test.serial('a worker cannot make the control plane keep much', async (t) => {
  t.timeout(120_000);
  const long = 'x'.repeat(20_000);
  t.is(toNodeIdentity({ id: long }), undefined);
  const ads = await startAds(t, { snapshot: snapshotOf({ a: 'x' }) });
  const { aggregated } = discoveryProtos;
  for (const [request, status] of [
    [{ node: { id: long } }, /the node is too large/],
    [{ resourceNames: [long] }, /a resource name or a version is too long/],
    [
      { resourceNames: Array.from({ length: 10_001 }, (_, at) => `n${at}`) },
      /too many resource names/,
    ],
  ] as const) {
    const caller = callDiscovery(t, ads.port, aggregated.StreamAggregatedResources);
    caller.send(request);
    t.regex((await caller.status()).details, status);
    caller.close();
  }
  // The versions that a client reports to hold are kept until there is something to compare them with.
  const versions = Object.fromEntries(
    Array.from({ length: 100_000 }, (_, at) => [`n${at}`, '1'] as const),
  );
  const empty = await startAds(t);
  const hoarder = callDiscovery(t, empty.port, aggregated.DeltaAggregatedResources);
  hoarder.send({ resourceNamesSubscribe: ['nothing'], initialResourceVersions: versions });
  t.regex((await hoarder.status()).details, /too many resource names/);
  hoarder.close();
  const follower = callDiscovery(t, ads.port, aggregated.DeltaAggregatedResources);
  follower.send({ initialResourceVersions: versions });
  t.is((await follower.next()).resources?.length, 1);
});

test.serial('a worker cannot make the control plane keep unsubscribed names', async (t) => {
  t.timeout(120_000);
  // Without a snapshot nothing is sent, so that pending answers are never sent.
  const ads = await startAds(t);
  const namesOf = (part: number) => Array.from({ length: 6_000 }, (_, at) => `n${part}-${at}`);
  const caller = callDiscovery(t, ads.port, discoveryProtos.aggregated.DeltaAggregatedResources);
  caller.send({ resourceNamesSubscribe: ['*'] });
  for (let part = 0; part < 3; part++) {
    caller.send({ resourceNamesSubscribe: namesOf(part) });
    caller.send({ resourceNamesUnsubscribe: namesOf(part) });
  }
  t.regex((await caller.status()).details, /too many resource names/);
  caller.close();
  // Names that it never subscribed to are not kept at all, however many there are.
  const stranger = callDiscovery(t, ads.port, discoveryProtos.aggregated.DeltaAggregatedResources);
  stranger.send({ resourceNamesSubscribe: ['*'] });
  for (let part = 0; part < 3; part++) stranger.send({ resourceNamesUnsubscribe: namesOf(part) });
  ads.set(snapshotOf({ a: 'x' }));
  const { resources, removedResources } = await stranger.next();
  t.is(resources?.length, 1);
  t.deepEqual(removedResources, []);
});
