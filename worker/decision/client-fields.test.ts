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
  - {key: named, rate_limit: {unit: hour, requests_per_unit: 50}}
  - {key: bucket, rate_limit: {unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 25}}
  - {key: slow, rate_limit: {unit: minute, requests_per_unit: 10, algorithm: token_bucket}}
  - {key: several, rate_limits: [{unit: minute, requests_per_unit: 5}, {unit: day, requests_per_unit: 2}]}
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

test('a refused request also waits for a limit that it used up itself, in each field alike', async (t) => {
  const asked = createAsked();
  const request = ask({ of: 'user=ada', hitsAddend: 2 }, { of: 'named=x', hitsAddend: 25 });
  await asked(request);
  // The limit per hour is used up by the request that the limit per minute refuses.
  const fields = await asked(request);
  t.is(fields['retry-after'], '3585');
  t.deepEqual(
    Object.values(read(fields['ratelimit'])).map(({ r, t: reset }) => [r, reset]),
    [
      [0, 3_585],
      [0, 3_585],
    ],
  );
});

test('a request refused by the local cache also waits for a bucket, which is then not counted', async (t) => {
  const { decide } = createWorker(rules, {
    clientFields: { ...all, rateLimit: false, policy: false },
    stopIncrementWhenOver: 'true',
    localCacheBytes: 1,
  });
  const waits: unknown[] = [];
  for (let time = 0; time < 3; time++) {
    const outcome = await decide(
      ask({ of: 'user=ada', hitsAddend: 3 }, { of: 'slow=x', hitsAddend: 9 }),
    );
    if (outcome.ok) waits.push(...outcome.response.responseHeadersToAdd.map(({ value }) => value));
  }
  t.deepEqual(waits, ['48', '48']);
});

test('a request that can never be admitted has no time to retry', async (t) => {
  const asked = createAsked();
  for (const entries of ['user=ada', 'bucket=x', 'several=x']) {
    const fields = await asked(ask({ of: entries, hitsAddend: 60 }));
    t.is(fields['retry-after'], undefined, entries);
    t.deepEqual(Object.keys(Object.values(read(fields['ratelimit']))[0] ?? {}), ['r']);
  }
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

test('two values under one name are two policies with partition keys, and without these keys only the closer one', async (t) => {
  const request = ask({ of: 'user=ada', hitsAddend: 2 }, 'user=bob');
  t.deepEqual(read((await createAsked()(request))['ratelimit']), {
    'user-minute': { r: 1, t: 45 },
  });
  const keyed = await createAsked({ partitionSecret: 's' })(request);
  t.is(parseList(keyed['ratelimit'] ?? '').length, 2);
});
