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

test('metadata of a single key is told', (t) => {
  const rules = [limit({ plan: 'gold' })];
  const answer = toDynamicMetadata(ask([descriptor()]), rules, [status(codes.ok)]);
  t.is(JSON.stringify(answer['metadata']), '{"plan":"gold"}');
});

test('of two writers of a key the first wins, unless both have objects', (t) => {
  const rules = [
    limit({ list: [1], object: { a: 1 }, empty: null }),
    limit({ list: { b: 2 }, object: [2], empty: { b: 2 } }),
  ];
  const statuses = [status(codes.ok), status(codes.ok)];
  const answer = toDynamicMetadata(ask([descriptor(), descriptor()]), rules, statuses);
  t.is(JSON.stringify(answer['metadata']), '{"list":[1],"object":{"a":1},"empty":null}');
});

test('each unit of an own limit has its name, and one that is unknown its number', (t) => {
  const texts = [1, 2, 3, 4, 5, 6, 9].map((unit) => {
    const request = ask([descriptor({ limit: { requestsPerUnit: 1, unit } })]);
    const { descriptors } = toDynamicMetadata(request, [undefined], [status(codes.ok)]);
    return JSON.stringify(descriptors).replace(/.*unit:(\w+)"}]$/, '$1');
  });
  t.deepEqual(texts, ['SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', '9']);
});

test('a metadata key named __proto__ is a key like any other', (t) => {
  const hostile: JsonObject = JSON.parse('{"__proto__": {"polluted": true}}');
  toDynamicMetadata(ask([descriptor()]), [limit(hostile)], [status(codes.ok)]);
  t.false('polluted' in {});
});
