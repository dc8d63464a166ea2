import test from 'ava';
import { ask } from '../../test/support/decision-worker.ts';
import { toRequestText, toResponseText } from './message-text.ts';

test('every field that a request sets is in its text, and no other', (t) => {
  t.is(
    toRequestText({
      domain: 'shop "A"',
      hitsAddend: 3,
      descriptors: [
        {
          entries: [{ key: 'k', value: '' }],
          limit: { requestsPerUnit: 7, unit: 2 },
          hitsAddend: 0,
          isNegativeHits: true,
        },
      ],
    }),
    'domain:"shop \\"A\\"" descriptors:{entries:{key:"k" value:""} limit:{requests_per_unit:7 unit:2} hits_addend:{value:0} is_negative_hits:true} hits_addend:3',
  );
  t.is(toRequestText({ domain: '', hitsAddend: 0, descriptors: [] }), 'domain:""');
});

test('every field that a response sets is in its text, and no other', (t) => {
  const header = { key: 'RateLimit-Limit', value: '5' };
  t.is(
    toResponseText({
      overallCode: 2,
      statuses: [
        {
          code: 2,
          currentLimit: { name: 'n', requestsPerUnit: 5, unit: 'week' },
          limitRemaining: 0,
          secondsUntilReset: 9,
        },
      ],
      responseHeadersToAdd: [header],
      requestHeadersToAdd: [header],
      dynamicMetadata: { domain: 'd' },
    }),
    'overall_code:OVER_LIMIT statuses:{code:OVER_LIMIT current_limit:{name:"n" requests_per_unit:5 unit:WEEK} limit_remaining:0 duration_until_reset:{seconds:9}} response_headers_to_add:{key:"RateLimit-Limit" value:"5"} request_headers_to_add:{key:"RateLimit-Limit" value:"5"} dynamic_metadata:{"domain":"d"}',
  );
});

test('a long text is cut at its bound, and further items are counted', (t) => {
  const request = (domain: string, items: readonly string[] = []) =>
    toRequestText({ ...ask(...items.map((value) => `k=${value}`)), domain });
  const longest = 'x'.repeat(16_384);
  t.is(request(longest), `domain:"${longest}"`);
  t.is(request(`${longest}y`), `domain:"${longest}..."`);
  const [, tail] = request('', [longest, 'a', 'b', 'c']).split('xx"}}');
  t.is(tail, ' ... (3 more)');
  const around = request('', ['']).length - 'domain:"" '.length;
  t.regex(request('', ['x'.repeat(16_384 - around), 'a', 'b']), /value:"a"}} \.\.\. \(1 more\)$/);
});
