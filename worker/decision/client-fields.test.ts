// The fields that clients understand by themselves, read back by a library of structured fields.
import test from 'ava';
import { parseList, serializeItem } from 'structured-headers';
import { ask, createWorker } from '../../test/support/decision-worker.ts';
import { toClientFields } from './client-fields.ts';
import { codes, type RateLimitRequest } from './message.ts';

const rules = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 3}
  - key: named
    rate_limit: {unit: hour, requests_per_unit: 50, name: 'an "hour" \\'}
  - key: ü
    rate_limit: {unit: second, requests_per_unit: 1000}
  - key: bucket
    rate_limit: {unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 25}
  - key: shut
    rate_limit: {unit: minute, requests_per_unit: 0, algorithm: token_bucket, burst: 5}
  - key: watched
    shadow_mode: true
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: several
    rate_limits:
      - {unit: minute, requests_per_unit: 5}
      - {unit: day, requests_per_unit: 2}
  - key: quota
    quota_mode: true
    rate_limit: {unit: day, requests_per_unit: 1}
  - key: files
    value: /a/*
    share_threshold: true
    rate_limit: {unit: hour, requests_per_unit: 9}
`;
const all = { retryAfter: true, rateLimit: true, policy: true, partitionSecret: '' };

function createAsked(options: Partial<typeof all> = {}, shadowMode = false) {
  const { decide } = createWorker(rules, { clientFields: { ...all, ...options }, shadowMode });
  return async (request: RateLimitRequest): Promise<Record<string, string>> => {
    const outcome = await decide(request);
    if (!outcome.ok) throw outcome.error;
    return Object.fromEntries(
      outcome.response.responseHeadersToAdd.map(({ key, value }) => [key, value]),
    );
  };
}

/** By name: the parameters, those that are bytes in base64. */
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

test('each limit of a request is a policy, and what it has left a service limit', async (t) => {
  const asked = createAsked();
  const fields = await asked(ask('user=ada', 'named=x', 'unlimited=x'));
  t.deepEqual(read(fields['ratelimit-policy']), {
    'user-minute': { q: 3, w: 60 },
    'an "hour" \\': { q: 50, w: 3600 },
  });
  t.deepEqual(read(fields['ratelimit']), {
    'user-minute': { r: 2, t: 45 },
    'an "hour" \\': { r: 49, t: 3585 },
  });
  t.is(fields['retry-after'], undefined);
  t.is(fields['ratelimit'], '"user-minute";r=2;t=45, "an \\"hour\\" \\\\";r=49;t=3585');
});

test('each field is there where it is wanted', async (t) => {
  const none = { retryAfter: false, rateLimit: false, policy: false };
  const namesWith = async (options: Partial<typeof all>) => {
    const asked = createAsked({ ...none, ...options });
    return Object.keys(await asked(ask('user=ada'))).join(' ');
  };
  t.is(await namesWith({}), '');
  t.is(await namesWith({ rateLimit: true }), 'ratelimit');
  t.is(await namesWith({ policy: true }), 'ratelimit-policy');
});

test('a refused request is told when to come again: when the last limit that refuses it lets pass', async (t) => {
  const asked = createAsked();
  t.is((await asked(ask({ of: 'user=ada', hitsAddend: 9 })))['retry-after'], '45');
  const both = ask(
    { of: 'user=ada', hitsAddend: 9 },
    { of: 'named=x', hitsAddend: 99 },
    'bucket=x',
  );
  t.is((await asked(both))['retry-after'], '3585');
});

test('nobody is told to come again at once, also where the window has ended meanwhile', (t) => {
  const fields = toClientFields(all, {
    request: ask('user=ada'),
    limited: [],
    statuses: [
      {
        code: codes.overLimit,
        currentLimit: undefined,
        limitRemaining: 0,
        secondsUntilReset: 0,
      },
    ],
    isQuota: [false],
    isRefused: true,
  });
  t.deepEqual(fields, [{ key: 'retry-after', value: '1' }]);
});

test('quotas that refuse together let pass when the first of them does', async (t) => {
  const asked = createAsked();
  const fields = await asked(ask({ of: 'quota=x', hitsAddend: 2 }));
  t.is(fields['retry-after'], String(12 * 3600 - 15));
});

test('nobody is told to wait who is let through by shadow mode', async (t) => {
  const asked = createAsked({}, true);
  t.is((await asked(ask({ of: 'user=ada', hitsAddend: 9 })))['retry-after'], undefined);
  t.deepEqual(await createAsked()(ask({ of: 'watched=x', hitsAddend: 9 })), {}, 'nor of the rule');
});

test('a bucket is told by what it holds, and by the time in which it fills', async (t) => {
  const fields = await createAsked()(ask('bucket=x'));
  t.deepEqual(read(fields['ratelimit-policy']), { 'bucket-second': { q: 25, w: 3 } });
  t.like(read(fields['ratelimit'])['bucket-second'], { r: 24 });
  const never = await createAsked()(ask('shut=x'));
  t.deepEqual(read(never['ratelimit-policy']), { 'shut-minute': { q: 5, w: 60 } });
});

test('the closest limit of a list is told', async (t) => {
  const fields = await createAsked()(ask('several=x'));
  t.deepEqual(read(fields['ratelimit-policy']), { 'several-day': { q: 2, w: 86_400 } });
});

test('characters that no structured field can have are replaced, and long names are cut', async (t) => {
  const fields = await createAsked()(ask('ü=x'));
  t.deepEqual(Object.keys(read(fields['ratelimit'])), ['_-second']);
  const long = ask(
    { of: 'user=ada' },
    { of: `${'k'.repeat(999)}=x`, limit: { requestsPerUnit: 1, unit: 1 } },
  );
  t.deepEqual(Object.keys(read((await createAsked()(long))['ratelimit'])), [
    'user-minute',
    'k'.repeat(64),
  ]);
});

test('the closest of many limits are told', async (t) => {
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

test('a partition key tells counters apart without telling whose they are', async (t) => {
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

test('two values under one name are two policies with partition keys, and the closer one without', async (t) => {
  const request = ask({ of: 'user=ada', hitsAddend: 2 }, 'user=bob');
  t.deepEqual(read((await createAsked()(request))['ratelimit']), {
    'user-minute': { r: 1, t: 45 },
  });
  const keyed = await createAsked({ partitionSecret: 's' })(request);
  t.is(parseList(keyed['ratelimit'] ?? '').length, 2);
});
