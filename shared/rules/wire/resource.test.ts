import test from 'ava';
import fc from 'fast-check';
import { parse } from 'yaml';
import { everyKey } from '../../../test/support/every-key.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { loadProtos } from '../../wire/protos.ts';
import type { ConfigDescriptorMessage } from '../../wire/rate-limit-config-message.ts';
import { parseRuleDocument } from '../document/document.ts';
import { algorithms, plainShape, windowSecondsOf } from '../limit-shape.ts';
import { formatProblems } from '../problem/problem-text.ts';
import type { JsonObject, JsonValue } from '../rule.ts';
import {
  type RateLimitBlock,
  type RuleDescriptor,
  type RuleDocument,
  toCompositeKey,
} from '../rule-document.ts';
import { type DescriptorFlags, descriptorFlags } from '../rule-keys.ts';
import { units } from '../unit.ts';
import { fromResource, toResource } from './resource.ts';
import { toFlowText, toRuleObject } from './rule-object.ts';

const { rateLimitConfig } = loadProtos();

/** Sends a document over the wire and back. */
function throughWire(document: RuleDocument, withExtensions = true) {
  const { message } = toResource(document, { withExtensions });
  const received = rateLimitConfig.deserialize(rateLimitConfig.serialize(message));
  return fromResource(received, received.name ?? '');
}

function problemsOf(...descriptors: ConfigDescriptorMessage[]): string {
  const { document, problems } = fromResource({ name: 'r', domain: 'd', descriptors }, 'r');
  if (problems.some(({ severity }) => severity === 'error') && document !== undefined)
    throw new Error('a document with errors was given out');
  return formatProblems(problems);
}

const limited = { unit: 1, requestsPerUnit: 1 };

const text = fc.string({ unit: 'grapheme', maxLength: 8 });
const filledText = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });
const memberName = fc.oneof(text, fc.constantFrom('__proto__', 'ratelane.fields', 'metadata'));

const json = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    text,
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc
    .array(fc.tuple(memberName, tie('value')), { maxLength: 3 })
    .map((members) => Object.fromEntries(members)),
}));

/** Any shape with fields that are valid together. */
const shape = fc
  .record({
    algorithm: fc.constantFrom(...algorithms),
    unitMultiplier: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 100 })),
    burst: fc.option(fc.integer({ min: 1, max: 0xffff_ffff }), { nil: undefined }),
    countOverLimit: fc.boolean(),
    lease: fc.constantFrom(undefined, { share: 0.05, forMs: 100 }, { share: 0.125, forMs: 50 }),
  })
  .map((each) => ({
    ...each,
    burst: each.algorithm === 'token_bucket' ? each.burst : undefined,
    countOverLimit: each.algorithm !== 'fixed_window' && each.countOverLimit,
  }));

const rateLimit = fc
  .record({
    shape,
    unlimited: fc.boolean(),
    unit: fc.constantFrom(...units),
    requestsPerUnit: fc.nat({ max: 0xffff_ffff }),
    name: text,
    replaces: fc.array(filledText, { maxLength: 2 }),
  })
  .map(({ unit, replaces, shape: kind, ...limit }) => ({
    ...limit,
    ...(limit.unlimited ? plainShape : kind),
    // Windows shorter than ten leases have none.
    lease: limit.unlimited || unit === 'second' ? undefined : kind.lease,
    unit: limit.unlimited ? undefined : unit,
    replaces: replaces
      .filter((name) => name !== limit.name)
      .map((name) => ({ name, position: undefined })),
  }));

const anyFlags = Object.fromEntries(
  descriptorFlags.map(({ property }) => [property, fc.boolean()]),
) as { [Property in keyof DescriptorFlags]: fc.Arbitrary<boolean> };

/** Removes unlimited limits and duplicates, which a list cannot contain. */
function withoutCopies(
  first: RateLimitBlock | undefined,
  others: readonly RateLimitBlock[],
): readonly RateLimitBlock[] {
  if (first === undefined || first.unlimited || first.lease !== undefined) return [];
  const kindOf = (limit: RateLimitBlock) => `${windowSecondsOf(limit)} ${limit.algorithm}`;
  const seen = new Set([kindOf(first)]);
  return others.filter((limit) => {
    const kind = kindOf(limit);
    const isNew = !limit.unlimited && limit.lease === undefined && !seen.has(kind);
    seen.add(kind);
    return isNew;
  });
}

const { level } = fc.letrec<{ level: readonly RuleDescriptor[]; descriptor: RuleDescriptor }>(
  (tie) => ({
    descriptor: fc
      .record({
        ...anyFlags,
        key: filledText,
        value: text,
        rateLimit: fc.option(rateLimit, { nil: undefined }),
        furtherLimits: fc.array(rateLimit, { maxLength: 4 }),
        untilMs: fc.option(fc.integer({ min: 0, max: 4e12 }), { nil: undefined }),
        metadata: fc.option(json.object, { nil: undefined }),
        descriptors: tie('level'),
        position: fc.constant(undefined),
      })
      .map((each) => ({
        ...each,
        value: each.shareThreshold ? `${each.value}*` : each.value,
        furtherLimits: withoutCopies(each.rateLimit, each.furtherLimits),
      })),
    level: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constant([]),
      fc.uniqueArray(tie('descriptor'), {
        maxLength: 3,
        selector: ({ key, value }) => toCompositeKey(key, value),
      }),
    ),
  }),
);

const anyDocument = fc.record({
  file: filledText,
  domain: filledText,
  position: fc.constant(undefined),
  descriptors: level,
});

test('a document is received as it was sent', (t) => {
  let fieldsSeen = 0;
  fc.assert(
    fc.property(anyDocument, (document) => {
      const { document: received, problems } = throughWire(document);
      t.is(formatProblems(problems.filter(({ severity }) => severity === 'error')), '');
      t.deepEqual(received, document);
      if (document.descriptors.some((each) => each.valueToMetric)) fieldsSeen++;
    }),
    { numRuns: 300 },
  );
  t.true(fieldsSeen > 10);
});

test('for other workers extensions are left out and named, and the metadata is as the author wrote it', (t) => {
  const { document } = parseRuleDocument(
    'domain: d\ndescriptors: [{key: a, value_to_metric: true, metadata: {ratelane.fields: 1}, rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: b, value: c*, share_threshold: true, value_to_metric: true, rate_limit: {unit: day, requests_per_unit: 1}}]}]',
    'd.yaml',
  );
  if (document === undefined) throw new Error('the document is not good');
  const { message, leftOut } = toResource(document, { withExtensions: false });
  t.deepEqual(leftOut, [
    'descriptors[0].value_to_metric',
    'descriptors[0].descriptors[0].value_to_metric',
    'descriptors[0].descriptors[0].share_threshold',
  ]);
  t.deepEqual(message.descriptors?.[0]?.metadata, {
    fields: { 'ratelane.fields': { numberValue: 1 } },
  });
  t.is(message.descriptors?.[0]?.descriptors?.[0]?.metadata, undefined);
});

test('a field with its default value is not sent', (t) => {
  const { document } = parseRuleDocument('domain: d\ndescriptors: [{key: a}]', 'd.yaml');
  if (document === undefined) throw new Error('the document is not good');
  const resource = toResource(document, { withExtensions: true });
  t.deepEqual(resource, {
    message: { name: 'd.yaml', domain: 'd', descriptors: [{ key: 'a' }] },
    leftOut: [],
  });
});

testLines(
  test,
  new URL('resource.txt', import.meta.url),
  (given) => problemsOf(...JSON.parse(given)).replaceAll('\n', ' / ') || 'no problem',
);

test('a missing requests_per_unit is 0 and only noted', (t) => {
  const { document, problems } = fromResource(
    { domain: 'd', descriptors: [{ key: 'a', rateLimit: { unit: 2 } }] },
    'r',
  );
  t.is(document?.descriptors[0]?.rateLimit?.requestsPerUnit, 0);
  t.is(
    formatProblems(problems),
    'r: note: descriptors[0].rate_limit.requests_per_unit: requests_per_unit is 0, so every matching request is rejected [limit-zero]',
  );
});

test('a resource is checked like a file, with every problem at once', (t) => {
  t.is(
    formatProblems(fromResource({}, 'r').problems),
    "r: error: domain: config file cannot have empty domain\n    hint: name the domain: 'domain: <name>'",
  );
  const found = problemsOf(
    { rateLimit: limited },
    { key: 'a', value: 'b', rateLimit: limited },
    { key: 'a_b', rateLimit: { ...limited, name: 'n', replaces: [{}, { name: 'n' }] } },
    { key: 'c', metadata: { fields: { x: { numberValue: Number.NaN } } }, rateLimit: limited },
  );
  t.is(
    found.replaceAll(/\n +hint: .*/g, ''),
    [
      'r: error: descriptors[0].key: descriptor has empty key',
      "r: error: descriptors[2]: duplicate descriptor composite key 'd.a_b'",
      'r: error: descriptors[2].rate_limit.replaces[0].name: should not have an empty replaces entry',
      "r: error: descriptors[2].rate_limit.replaces[1].name: replaces should not contain name of same descriptor ('n')",
      'r: error: descriptors[3].metadata.x: error parsing metadata: NaN is not a finite number',
    ].join('\n'),
  );
  t.regex(found, /hint: the first one is at descriptors\[1\]/);
});

test('the number of problems of one resource is bounded', (t) => {
  const descriptors = Array.from({ length: 1000 }, () => ({ key: '' }));
  const { problems } = fromResource({ domain: 'd', descriptors }, 'r');
  t.true(problems.length <= 202);
});

test('a rule written as YAML is complete', (t) => {
  const written: JsonObject = {
    ...{ key: 'path', value: '/web*', until: '2099-01-02T03:04:05Z', shadow_mode: true },
    metadata: { team: 'web' },
    rate_limit: {
      ...{ unit: 'hour', requests_per_unit: 10, algorithm: 'token_bucket', burst: 5 },
      ...{ name: 'web', replaces: [{ name: 'other' }] },
    },
    descriptors: [
      { key: 'user', descriptors: [{ key: 'plan_0-9/a.b', rate_limit: { unlimited: true } }] },
      {
        key: 'method',
        rate_limits: [
          { unit: 'second', requests_per_unit: 1 },
          { unit: 'day', requests_per_unit: 100 },
        ],
      },
    ],
  };
  const yaml = JSON.stringify({ domain: 'd', descriptors: [written] });
  const { document, problems } = parseRuleDocument(yaml, 'd.yaml');
  const [descriptor] = document?.descriptors ?? [];
  const rule = descriptor && toRuleObject(descriptor);
  t.deepEqual(rule, written, formatProblems(problems));
  const all = parseRuleDocument(everyKey, 'd.yaml').document?.descriptors.map(toRuleObject);
  t.deepEqual(all, parse(everyKey).descriptors, 'rule-object.ts writes each key');
  const on = ['yes', '9', 'plan_0-9/a.b'];
  t.is(
    toFlowText({ ...written, on, rate_limit: null, descriptors: [] }),
    '{key: path, value: "/web*", until: 2099-01-02T03:04:05Z, shadow_mode: true, metadata: {team: web}, rate_limit: null, descriptors: [], "on": ["yes", "9", plan_0-9/a.b]}',
  );
});
