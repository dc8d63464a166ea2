import test from 'ava';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../shared/rules/rule.ts';
import { unitNumbers, units } from '../../../shared/rules/unit.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import type { StructMessage, ValueMessage } from '../../../shared/wire/struct-message.ts';
import type { DescriptorStatus, Header, RateLimitResponse } from '../../decision/message.ts';
import { encodeRateLimitResponse } from './response-encoder.ts';

const { rateLimitService } = loadProtos();
const { responseDeserialize } = rateLimitService.ShouldRateLimit;

const text = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.constant('x'.repeat(300)));
const uint32 = fc.oneof(fc.constantFrom(0, 1, 127, 128, 2 ** 32 - 1), fc.nat());
const unset = fc.constant(undefined);
const code = fc.constantFrom(1 as const, 2 as const);
const status: fc.Arbitrary<DescriptorStatus> = fc.record({
  code,
  currentLimit: fc.oneof(
    unset,
    fc.record({ name: text, requestsPerUnit: uint32, unit: fc.constantFrom(...units) }),
  ),
  limitRemaining: uint32,
  secondsUntilReset: fc.oneof(unset, fc.nat()),
});
const headers: fc.Arbitrary<Header[]> = fc.array(fc.record({ key: text, value: text }), {
  maxLength: 3,
});
const metadata = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constant(null),
    fc.boolean(),
    fc.double(),
    text,
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.dictionary(fc.string(), tie('value'), { maxKeys: 3, noNullPrototype: true }),
})).object;
const anyResponse: fc.Arbitrary<RateLimitResponse> = fc.record({
  overallCode: code,
  statuses: fc.array(status, { maxLength: 4 }),
  responseHeadersToAdd: headers,
  requestHeadersToAdd: headers,
  dynamicMetadata: fc.oneof(unset, metadata),
});

/** Copies the bytes, which are only valid until the next call. */
function encode(response: RateLimitResponse): Buffer {
  const { bytes, length } = encodeRateLimitResponse(response);
  return Buffer.from(bytes.subarray(0, length));
}

/** The response as the library decodes it, converted to our types. */
function decodeByLibrary(bytes: Buffer): unknown {
  const message = responseDeserialize(bytes);
  const unitOf = (number: number | undefined) => units.find((unit) => unitNumbers[unit] === number);
  return {
    overallCode: message.overallCode,
    statuses: message.statuses?.map((item) => ({
      code: item.code,
      currentLimit: item.currentLimit
        ? {
            name: item.currentLimit.name,
            requestsPerUnit: item.currentLimit.requestsPerUnit,
            unit: unitOf(item.currentLimit.unit),
          }
        : undefined,
      limitRemaining: item.limitRemaining,
      secondsUntilReset: item.durationUntilReset
        ? Number(item.durationUntilReset.seconds)
        : undefined,
    })),
    responseHeadersToAdd: message.responseHeadersToAdd?.map(({ key, value }) => ({ key, value })),
    requestHeadersToAdd: message.requestHeadersToAdd?.map(({ key, value }) => ({ key, value })),
    dynamicMetadata: message.dynamicMetadata ? toObject(message.dynamicMetadata) : undefined,
  };
}

function toObject(struct: StructMessage): JsonObject {
  const members = Object.entries(struct.fields ?? {}).map(([name, value]) => [
    name,
    toValue(value),
  ]);
  return Object.fromEntries(members) as JsonObject;
}

function toValue(value: ValueMessage): JsonValue {
  switch (value.kind) {
    case 'nullValue':
      return null;
    case 'numberValue':
      return value.numberValue ?? 0;
    case 'stringValue':
      return value.stringValue ?? '';
    case 'boolValue':
      return value.boolValue ?? false;
    case 'structValue':
      return toObject(value.structValue ?? {});
    case 'listValue':
      return (value.listValue?.values ?? []).map(toValue);
    default:
      throw new Error(`a value without kind: ${JSON.stringify(value)}`);
  }
}

test('the library decodes what was encoded', (t) => {
  fc.assert(
    fc.property(anyResponse, (response) => {
      t.deepEqual(decodeByLibrary(encode(response)), response);
    }),
    { numRuns: 300 },
  );
  t.pass();
});

test('defaults are left out, and an empty duration is not', (t) => {
  const bytes = encode({
    overallCode: 1,
    statuses: [
      {
        code: 1,
        currentLimit: { name: '', requestsPerUnit: 0, unit: 'week' },
        limitRemaining: 0,
        secondsUntilReset: 0,
      },
    ],
    responseHeadersToAdd: [],
    requestHeadersToAdd: [],
    dynamicMetadata: undefined,
  });
  t.is(bytes.toString('hex'), '0801120808011202100722' + '00');
});

test('half a surrogate pair becomes a replacement character', (t) => {
  const bytes = encode({
    overallCode: 1,
    statuses: [],
    responseHeadersToAdd: [{ key: 'k', value: '\ud800' }],
    requestHeadersToAdd: [],
    dynamicMetadata: undefined,
  });
  t.is(responseDeserialize(bytes).responseHeadersToAdd?.[0]?.value, '\ufffd');
});
