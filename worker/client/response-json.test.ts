import test from 'ava';
import { loadProtos } from '../../shared/wire/protos.ts';
import type { RateLimitResponseMessage } from '../../shared/wire/rate-limit-messages.ts';
import { toResponseJson } from './response-json.ts';

/** The response as decoded from the wire, in which every unset field has its default. */
function received(response: RateLimitResponseMessage): RateLimitResponseMessage {
  const method = loadProtos().rateLimitService.ShouldRateLimit;
  return method.responseDeserialize(method.responseSerialize(response));
}

test('a response has the names of proto3 JSON, without default values', (t) => {
  const response = received({
    overallCode: 2,
    statuses: [
      {
        code: 2,
        currentLimit: { name: 'burst', requestsPerUnit: 5, unit: 7 },
        durationUntilReset: { seconds: 51, nanos: 500_000_000 },
      },
      { code: 1, limitRemaining: 4_294_967_295 },
    ],
    responseHeadersToAdd: [{ key: 'a', value: 'b' }],
  });
  t.deepEqual(JSON.parse(toResponseJson(response)), {
    overallCode: 'OVER_LIMIT',
    statuses: [
      {
        code: 'OVER_LIMIT',
        currentLimit: { name: 'burst', requestsPerUnit: 5, unit: 'WEEK' },
        durationUntilReset: '51.5s',
      },
      { code: 'OK', limitRemaining: 4_294_967_295 },
    ],
    responseHeadersToAdd: [{ key: 'a', value: 'b' }],
  });
});

test('dynamic metadata is plain JSON of every kind of value', (t) => {
  const response = received({
    overallCode: 1,
    dynamicMetadata: {
      fields: {
        text: { stringValue: '' },
        number: { numberValue: 0 },
        yes: { boolValue: true },
        nothing: { nullValue: 0 },
        list: { listValue: { values: [{ numberValue: 1 }, { stringValue: 'b' }] } },
        struct: { structValue: { fields: { inner: { boolValue: false } } } },
      },
    },
  });
  t.deepEqual(JSON.parse(toResponseJson(response)), {
    overallCode: 'OK',
    dynamicMetadata: {
      text: '',
      number: 0,
      yes: true,
      nothing: null,
      list: [1, 'b'],
      struct: { inner: false },
    },
  });
});

test('a response is one line, also when it is empty', (t) => {
  t.is(toResponseJson(received({})), '{}');
});
