import test from 'ava';
import type { RateLimitResponse } from '../decision/message.ts';
import { toJsonResponse } from './proto-json-writer.ts';

const empty: RateLimitResponse = {
  overallCode: 1,
  statuses: [],
  responseHeadersToAdd: [],
  requestHeadersToAdd: [],
  dynamicMetadata: undefined,
};

test('fields are in the order of their numbers, the name of a limit first', (t) => {
  t.is(
    toJsonResponse({
      overallCode: 2,
      statuses: [
        {
          code: 2,
          currentLimit: { name: 'n', requestsPerUnit: 5, unit: 'minute' },
          limitRemaining: 4,
          secondsUntilReset: 9,
        },
      ],
      responseHeadersToAdd: [{ key: 'RateLimit-Limit', value: '5' }],
      requestHeadersToAdd: [{ key: 'x', value: 'y' }],
      dynamicMetadata: { domain: 'd', list: [1, null, { a: true }] },
    }),
    '{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"n",' +
      '"requestsPerUnit":5,"unit":"MINUTE"},"limitRemaining":4,"durationUntilReset":"9s"}],' +
      '"responseHeadersToAdd":[{"key":"RateLimit-Limit","value":"5"}],' +
      '"requestHeadersToAdd":[{"key":"x","value":"y"}],' +
      '"dynamicMetadata":{"domain":"d","list":[1,null,{"a":true}]}}',
  );
});

test('defaults are left out, but not a reset of zero seconds', (t) => {
  const currentLimit = { name: '', requestsPerUnit: 0, unit: 'week' as const };
  t.is(
    toJsonResponse({
      ...empty,
      statuses: [
        { code: 1, currentLimit, limitRemaining: 0, secondsUntilReset: 0 },
        { code: 1, currentLimit: undefined, limitRemaining: 0, secondsUntilReset: undefined },
        {
          code: 1,
          currentLimit: undefined,
          limitRemaining: 4_294_967_295,
          secondsUntilReset: undefined,
        },
      ],
    }),
    '{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"unit":"WEEK"},' +
      '"durationUntilReset":"0s"},{"code":"OK"},{"code":"OK","limitRemaining":4294967295}]}',
  );
  t.is(toJsonResponse(empty), '{"overallCode":"OK"}');
});

test('metadata with a number that JSON cannot express cannot be written', (t) => {
  t.is(toJsonResponse({ ...empty, dynamicMetadata: { a: [{ b: Number.NaN }] } }), undefined);
  t.is(toJsonResponse({ ...empty, dynamicMetadata: { a: Infinity } }), undefined);
});
