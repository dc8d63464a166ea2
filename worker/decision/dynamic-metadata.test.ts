import test from 'ava';
import { plainShape } from '../../shared/rules/limit-shape.ts';
import type { JsonObject, Limit } from '../../shared/rules/rule.ts';
import { noModes } from '../../shared/rules/rule-keys.ts';
import { toDynamicMetadata } from './dynamic-metadata.ts';
import { type Code, codes, type DescriptorStatus, type RequestDescriptor } from './message.ts';

const status = (code: Code): DescriptorStatus => ({
  code,
  currentLimit: undefined,
  limitRemaining: 0,
  secondsUntilReset: undefined,
});
const limit = (metadata: JsonObject): Limit => ({
  requestsPerUnit: 1,
  unit: 'hour',
  unlimited: false,
  name: '',
  replaces: [],
  ...plainShape,
  limiter: undefined,
  counterTag: '',
  ...noModes,
  metadata,
});
const descriptor = (more: Partial<RequestDescriptor> = {}): RequestDescriptor => ({
  entries: [{ key: 'k', value: 'v' }],
  limit: undefined,
  hitsAddend: undefined,
  isNegativeHits: false,
  ...more,
});
const ask = (descriptors: RequestDescriptor[], hitsAddend = 0) => ({
  domain: 'd',
  descriptors,
  hitsAddend,
});

test('domain and entries are told, and nothing that was not given', (t) => {
  const metadata = toDynamicMetadata(ask([descriptor()]), [undefined], [status(codes.ok)]);
  t.deepEqual(metadata, { domain: 'd', descriptors: [{ entries: ['k=v'] }] });
});

test('an own limit of nothing is told by its unit alone', (t) => {
  const request = ask([descriptor({ limit: { requestsPerUnit: 0, unit: 4 } })]);
  t.like(toDynamicMetadata(request, [undefined], [status(codes.ok)]), {
    descriptors: [{ limit: 'unit:DAY' }],
  });
});

test('an own limit and the hits are told where the request has them', (t) => {
  const request = ask([descriptor({ limit: { requestsPerUnit: 5, unit: 2 }, hitsAddend: 0 })], 3);
  t.deepEqual(toDynamicMetadata(request, [undefined], [status(codes.ok)]), {
    domain: 'd',
    descriptors: [{ entries: ['k=v'], limit: 'requests_per_unit:5 unit:MINUTE', hitsAddend: 0 }],
    hitsAddend: 3,
  });
});

test('metadata of the rules that let the request pass is merged, the first writer winning', (t) => {
  const rules = [
    limit({ plan: 'gold', deep: { a: 1 } }),
    limit({ plan: 'over' }),
    limit({ plan: 'iron', deep: { a: 2, b: 3 } }),
  ];
  const statuses = [status(codes.ok), status(codes.overLimit), status(codes.ok)];
  const request = ask([descriptor(), descriptor(), descriptor()]);
  const { metadata } = toDynamicMetadata(request, rules, statuses);
  t.is(JSON.stringify(metadata), '{"plan":"gold","deep":{"a":1,"b":3}}');
  t.is(JSON.stringify(rules[0]?.metadata), '{"plan":"gold","deep":{"a":1}}', 'rules are untouched');
});

test('a metadata key named __proto__ is a key like any other', (t) => {
  const hostile: JsonObject = JSON.parse('{"__proto__": {"polluted": true}}');
  toDynamicMetadata(ask([descriptor()]), [limit(hostile)], [status(codes.ok)]);
  t.false('polluted' in {});
});
