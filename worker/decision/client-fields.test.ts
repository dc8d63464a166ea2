// Tests the response fields that clients understand by themselves, parsed by a library for structured fields. Complete
// answers are in decisions.test.ts.
import test from 'ava';
import { parseList, serializeItem } from 'structured-headers';
import { ask, createWorker } from '../../test/support/decision-worker.ts';
import { toClientFields } from './client-fields.ts';
import { codes, type RateLimitRequest } from './message.ts';

const rules = `
domain: d
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 3}}
  - {key: files, value: '/a/*', share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 9}}
`;
const all = { retryAfter: true, rateLimit: true, policy: true, partitionSecret: '' };

function createAsked(options: Partial<typeof all> = {}) {
  const { decide } = createWorker(rules, { clientFields: { ...all, ...options } });
  return async (request: RateLimitRequest): Promise<Record<string, string>> => {
    const outcome = await decide(request);
    if (!outcome.ok) throw outcome.error;
    return Object.fromEntries(
      outcome.response.responseHeadersToAdd.map(({ key, value }) => [key, value]),
    );
  };
}

/** The parameters by name; bytes are in base64. */
function read(field: string | undefined): Record<string, Record<string, unknown>> {
  return Object.fromEntries(
    parseList(field ?? '').map(([name, parameters]) => [
      String(name),
      Object.fromEntries(
        [...parameters].map(([key, value]) => [
          key,
          value instanceof ArrayBuffer ? serializeItem(value) : value,
        ]),
      ),
    ]),
  );
}

test('no client is asked to retry at once, even if the window has ended meanwhile', (t) => {
  const fields = toClientFields(all, {
    request: ask('user=ada'),
    limited: [],
    statuses: [
      { code: codes.overLimit, currentLimit: undefined, limitRemaining: 0, secondsUntilReset: 0 },
    ],
    isQuota: [false],
    isRefused: true,
    nowSeconds: 0,
    findWait: () => 0,
  });
  t.deepEqual(fields, [{ key: 'retry-after', value: '1' }]);
});

test('the limits closest to being reached are reported', async (t) => {
  const many = ask(
    ...Array.from({ length: 40 }, (_, index) => ({
      of: `k${index}=x`,
      limit: { requestsPerUnit: 100 - index, unit: 2 },
    })),
  );
  const names = Object.keys(read((await createAsked()(many))['ratelimit']));
  t.is(names.length, 16);
  t.is(names[0], 'k39-minute');
});

test('a partition key distinguishes counters without revealing whose they are', async (t) => {
  const keyOf = async (secret: string, of: string): Promise<unknown> => {
    const fields = await createAsked({ partitionSecret: secret })(ask(of));
    const [limit] = Object.values(read(fields['ratelimit']));
    const [policy] = Object.values(read(fields['ratelimit-policy']));
    t.is(limit?.['pk'], policy?.['pk']);
    t.notRegex(fields['ratelimit'] ?? '', /ada/);
    return limit?.['pk'];
  };
  const ada = await keyOf('sesame', 'user=ada');
  t.regex(String(ada), /^:[\w+/]{16}:$/);
  t.is(await keyOf('sesame', 'user=ada'), ada);
  t.not(await keyOf('sesame', 'user=bob'), ada);
  t.not(await keyOf('another', 'user=ada'), ada);
  t.is(await keyOf('s', 'files=/a/1'), await keyOf('s', 'files=/a/2'), 'they share a counter');
});

test('two values under one name are two policies with partition keys', async (t) => {
  const request = ask({ of: 'user=ada', hitsAddend: 2 }, 'user=bob');
  const keyed = await createAsked({ partitionSecret: 's' })(request);
  t.is(parseList(keyed['ratelimit'] ?? '').length, 2);
});
