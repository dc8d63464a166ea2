// Answers, statistics and other features of rules with sliding windows, token buckets and lists of limits. Their
// arithmetic is in test/contract/limiters.test.ts.
import test from 'ava';
import { limiterAlgorithms } from '../../shared/rules/limit-shape.ts';
import { ask, createWorker, summarize } from '../../test/support/decision-worker.ts';
import { createPerSecondStore } from '../counters/redis/redis-kind.ts';

const withKey = (lines: string) => `
domain: d
descriptors:
  - key: k
${lines.replace(/^/gm, '    ')}
`;
const sliding = withKey(
  'rate_limit: {unit: minute, requests_per_unit: 4, algorithm: sliding_window}',
);
const bucket = withKey(
  'rate_limit: {unit: minute, requests_per_unit: 60, algorithm: token_bucket, burst: 10}',
);
const list = withKey(
  'rate_limits: [{unit: second, requests_per_unit: 2}, {unit: hour, requests_per_unit: 3, algorithm: sliding_window}]',
);
const statsOf = (worker: ReturnType<typeof createWorker>, key: string) =>
  ['total_hits', 'over_limit', 'near_limit', 'within_limit', 'shadow_mode'].map((name) =>
    worker.stat(`rate_limit.${key}.${name}`),
  );

test('hits are over the limit all or none, and what is over is not counted', async (t) => {
  const worker = createWorker(sliding);
  t.is(summarize(await worker.decide(ask({ of: 'k=x', hitsAddend: 3 }))), 'OK [OK 1]');
  t.is(summarize(await worker.decide(ask({ of: 'k=x', hitsAddend: 2 }))), 'OVER [OVER 1]');
  t.is(summarize(await worker.decide(ask('k=x'))), 'OK [OK 0]');
  t.deepEqual(statsOf(worker, 'd.k'), [6, 2, 1, 4, 0]);
});

test('where what is over is counted as well, nothing is left after it', async (t) => {
  const counting = sliding.replace('sliding_window', 'sliding_window, count_over_limit: true');
  const worker = createWorker(counting);
  t.is(summarize(await worker.decide(ask({ of: 'k=x', hitsAddend: 3 }))), 'OK [OK 1]');
  t.is(summarize(await worker.decide(ask({ of: 'k=x', hitsAddend: 2 }))), 'OVER [OVER 0]');
  t.is(summarize(await worker.decide(ask('k=x'))), 'OVER [OVER 0]');
});

test('a rule in shadow mode counts what is over, and refuses nobody', async (t) => {
  const worker = createWorker(bucket.replace('key: k', 'key: k\n    shadow_mode: true'));
  await worker.decide(ask({ of: 'k=x', hitsAddend: 10 }));
  t.is(summarize(await worker.decide(ask('k=x'))), 'OK [OK 0]');
  t.deepEqual(statsOf(worker, 'd.k'), [11, 1, 2, 10, 1]);
});

test('near begins at the near ratio of the bucket, not of the rate', async (t) => {
  const worker = createWorker(bucket);
  await worker.decide(ask({ of: 'k=x', hitsAddend: 8 }));
  t.is(worker.stat('rate_limit.d.k.near_limit'), 0);
  await worker.decide(ask('k=x'));
  t.is(worker.stat('rate_limit.d.k.near_limit'), 1);
});

test('tokens that are taken back can be taken again, and never more than fit', async (t) => {
  const worker = createWorker(bucket);
  await worker.decide(ask({ of: 'k=x', hitsAddend: 10 }));
  await worker.decide(ask({ of: 'k=x', hitsAddend: 4, isNegativeHits: true }));
  t.is(summarize(await worker.decide(ask({ of: 'k=x', hitsAddend: 4 }))), 'OK [OK 0]');
  await worker.decide(ask({ of: 'k=x', hitsAddend: 400, isNegativeHits: true }));
  t.is(summarize(await worker.decide(ask({ of: 'k=x', hitsAddend: 11 }))), 'OVER [OVER 10]');
});

test('the over-limit cache keeps a bucket for as long as no token comes, and no longer', async (t) => {
  const slow = withKey(
    'rate_limit: {unit: minute, requests_per_unit: 6, algorithm: token_bucket, burst: 2}',
  );
  const worker = createWorker(slow, { localCacheBytes: 1 });
  await worker.decide(ask({ of: 'k=x', hitsAddend: 2 }));
  await worker.decide(ask('k=x'));
  worker.clock.advance(9_000);
  t.is(summarize(await worker.decide(ask('k=x'))), 'OVER [OVER 0]');
  t.is(worker.stat('rate_limit.d.k.over_limit_with_local_cache'), 1);
  t.is(summarize(await worker.decide(ask({ of: 'k=x', hitsAddend: 0 }))), 'OK [OK 0]');
  worker.clock.advance(1_000);
  t.is(summarize(await worker.decide(ask('k=x'))), 'OK [OK 0]');
});

test('a limit in the request keeps the algorithm and the window of the rule', async (t) => {
  const worker = createWorker(
    withKey(
      'rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: 9, algorithm: sliding_window}',
    ),
  );
  const withOverride = { of: 'k=x', limit: { requestsPerUnit: 2, unit: 1 } };
  for (const expected of ['OK [OK 1]', 'OK [OK 0]', 'OVER [OVER 0]']) {
    t.is(summarize(await worker.decide(ask(withOverride))), expected);
  }
  worker.clock.advance(5_000);
  const outcome = await worker.decide(ask(withOverride));
  t.is(summarize(outcome), 'OVER [OVER 0]', 'half of them count still, in a window of 10 seconds');
});

test('a window of several units begins at a multiple of its length', async (t) => {
  // The clock begins at 12:00:15.
  const worker = createWorker(
    withKey('rate_limit: {unit: second, unit_multiplier: 30, requests_per_unit: 1}'),
  );
  await worker.decide(ask('k=x'));
  const over = await worker.decide(ask('k=x'));
  t.is(over.ok && over.response.statuses[0]?.secondsUntilReset, 15);
  worker.clock.advance(15_000);
  t.is(summarize(await worker.decide(ask('k=x'))), 'OK [OK 0]');
});

// Proof of differences.md: `unit_multiplier`, `algorithm`, `burst`, `count_over_limit`, `rate_limits`
test('a list answers with the limit that hurts most, counts each limit apart and the rule once', async (t) => {
  const worker = createWorker(list);
  t.is(summarize(await worker.decide(ask('k=x'))), 'OK [OK 1]');
  await worker.decide(ask('k=x'));
  const first = await worker.decide(ask('k=x'));
  t.is(summarize(first), 'OVER [OVER 0]');
  t.like(first, { response: { statuses: [{ currentLimit: { unit: 'second' } }] } });
  const second = await worker.decide(ask('k=x'));
  t.like(second, { response: { statuses: [{ currentLimit: { unit: 'hour' } }] } });
  t.deepEqual(statsOf(worker, 'd.k'), [4, 2, 1, 2, 0]);
  t.deepEqual(statsOf(worker, 'd.k.second'), [4, 2, 1, 2, 0]);
  t.deepEqual(statsOf(worker, 'd.k.hour'), [4, 1, 1, 3, 0]);
});

test('far from its limits a list is near none, and what it takes back is no hit', async (t) => {
  const worker = createWorker(list.replace('requests_per_unit: 2', 'requests_per_unit: 20'), {
    nearLimitRatio: 0.9,
  });
  await worker.decide(ask('k=x'));
  t.deepEqual(statsOf(worker, 'd.k'), [1, 0, 0, 1, 0]);
  await worker.decide(ask({ of: 'k=x', hitsAddend: 1, isNegativeHits: true }));
  t.deepEqual(statsOf(worker, 'd.k'), [1, 0, 0, 1, 0]);
});

test('a list counts as over when one of its limits is known to be', async (t) => {
  const worker = createWorker(list.replace('requests_per_unit: 2', 'requests_per_unit: 1'), {
    localCacheBytes: 10_000,
  });
  for (let index = 0; index < 3; index++) await worker.decide(ask('k=x'));
  t.is(worker.stat('rate_limit.d.k.over_limit'), 2);
});

test('where an over-limit stops counting, only those limits of a list count that are over', async (t) => {
  const worker = createWorker(list, { stopIncrementWhenOver: true });
  for (let index = 0; index < 5; index++) await worker.decide(ask('k=x'));
  worker.clock.advance(1_000);
  t.is(summarize(await worker.decide(ask('k=x'))), 'OK [OK 0]', 'the hour has counted two');
});

test('the limit of 0 of any kind refuses everybody', async (t) => {
  for (const algorithm of ['sliding_window', 'token_bucket']) {
    const worker = createWorker(
      withKey(`rate_limit: {unit: minute, requests_per_unit: 0, algorithm: ${algorithm}}`),
    );
    t.is(summarize(await worker.decide(ask('k=x'))), 'OVER [OVER 0]');
    worker.clock.advance(300_000);
    t.is(summarize(await worker.decide(ask('k=x'))), 'OVER [OVER 0]');
  }
});

for (const algorithm of limiterAlgorithms) {
  const rateLimit = `rate_limit: {unit: minute, requests_per_unit: 2, algorithm: ${algorithm}}`;

  test(`${algorithm}: a request is over only when all of its quotas are`, async (t) => {
    const rules = `
domain: d
descriptors:
  - {key: a, quota_mode: true, ${rateLimit}}
  - {key: b, quota_mode: true, ${rateLimit}}
`;
    const worker = createWorker(rules);
    await worker.decide(ask({ of: 'a=x', hitsAddend: 2 }));
    t.is(summarize(await worker.decide(ask('a=x', 'b=x'))), 'OK [OVER 0, OK 1]');
    await worker.decide(ask('b=x'));
    t.is(summarize(await worker.decide(ask('a=x', 'b=x'))), 'OVER [OVER 0, OVER 0]');
  });

  test(`${algorithm}: values that share a threshold share one counter`, async (t) => {
    const worker = createWorker(
      `domain: d\ndescriptors:\n  - {key: k, value: "a*", share_threshold: true, ${rateLimit}}\n`,
    );
    t.is(summarize(await worker.decide(ask('k=a1'))), 'OK [OK 1]');
    t.is(summarize(await worker.decide(ask('k=a2'))), 'OK [OK 0]');
    t.is(summarize(await worker.decide(ask('k=a3'))), 'OVER [OVER 0]');
  });

  test(`${algorithm}: headers tell what is left and until when, and dynamic metadata what was asked`, async (t) => {
    const names = { limit: 'l', remaining: 'r', reset: 's' };
    const worker = createWorker(withKey(rateLimit), {
      dynamicMetadata: true,
      headers: { response: names, request: undefined, perUnit: undefined },
    });
    await worker.decide(ask('k=x'));
    const outcome = await worker.decide(ask('k=x'));
    if (!outcome.ok) return t.fail();
    const { responseHeadersToAdd, dynamicMetadata, statuses } = outcome.response;
    const headerNamed = (name: string) =>
      responseHeadersToAdd.find(({ key }) => key === name)?.value;
    t.is(headerNamed('r'), '0');
    t.is(headerNamed('s'), String(statuses[0]?.secondsUntilReset));
    t.like(dynamicMetadata, { domain: 'd', descriptors: [{ entries: ['k=x'] }] });
    return t.pass();
  });

  test(`${algorithm}: the over-limit cache answers until a hit fits again`, async (t) => {
    const worker = createWorker(withKey(rateLimit), { localCacheBytes: 1 });
    await worker.decide(ask({ of: 'k=x', hitsAddend: 2 }));
    const over = await worker.decide(ask('k=x'));
    t.is(summarize(over), 'OVER [OVER 0]');
    const seconds = (over.ok && over.response.statuses[0]?.secondsUntilReset) || 0;
    worker.clock.advance(seconds * 1000 - 1_000);
    t.is(summarize(await worker.decide(ask('k=x'))), 'OVER [OVER 0]');
    t.is(worker.stat('rate_limit.d.k.over_limit_with_local_cache'), 1);
    worker.clock.advance(1_000);
    t.is(summarize(await worker.decide(ask('k=x'))), 'OK [OK 0]');
  });
}

test('a list whose limits are all known to be over is answered by the local cache', async (t) => {
  const daily = withKey(
    'rate_limits: [{unit: hour, requests_per_unit: 1}, {unit: day, requests_per_unit: 1}]',
  );
  const worker = createWorker(daily, { localCacheBytes: 1_000_000 });
  for (let time = 1; time <= 2; time++) await worker.decide(ask('k=x'));
  const known = 'rate_limit.d.k.over_limit_with_local_cache';
  t.is(worker.stat(known), 0);
  await worker.decide(ask('k=x'));
  t.is(worker.stat(known), 1);
});

for (const [algorithm, reset] of [
  ['token_bucket', 60],
  ['sliding_window', 3_645],
] as const) {
  test(`${algorithm}: a request that two stores count has the reset, and is remembered, as with one`, async (t) => {
    const yaml = `
domain: d
descriptors:
  - {key: s, rate_limit: {unit: second, requests_per_unit: 100}}
  - {key: k, rate_limit: {unit: hour, requests_per_unit: 60, algorithm: ${algorithm}}}
`;
    const worker = createWorker(yaml, {
      localCacheBytes: 1,
      stopIncrementWhenOver: true,
      store: (one) => createPerSecondStore({ main: one, perSecond: one, continuesOnError: false }),
    });
    await worker.decide(ask({ of: 'k=x', hitsAddend: 60 }));
    const outcome = await worker.decide(ask('s=1', 'k=x'));
    t.is(outcome.ok && outcome.response.statuses[1]?.secondsUntilReset, reset);
    await worker.decide(ask('s=1', 'k=x'));
    t.is(worker.stat('rate_limit.d.k.over_limit_with_local_cache'), 1);
  });
}

test('calendar months of a limiter are not even, all its other windows are', async (t) => {
  const evenOf = async (unit: string, calendarMonths: boolean) => {
    const seen: (boolean | undefined)[] = [];
    const yaml = withKey(
      `rate_limit: {unit: ${unit}, requests_per_unit: 4, algorithm: sliding_window}`,
    );
    const worker = createWorker(yaml, {
      calendarMonths,
      store: (inner) => ({
        ...inner,
        count(request) {
          seen.push(...request.hits.map(({ limiter }) => limiter?.window.isEven));
          inner.count(request);
        },
      }),
    });
    await worker.decide(ask('k=x'));
    return seen;
  };
  t.deepEqual(await evenOf('month', true), [false]);
  t.deepEqual(await evenOf('month', false), [true]);
  t.deepEqual(await evenOf('day', true), [true]);
});

const raised: readonly (readonly [name: string, from: string, to: string])[] = [
  ['fixed window', '{unit: day, requests_per_unit: 2}', '{unit: day, requests_per_unit: 50}'],
  [
    'sliding window',
    '{unit: day, requests_per_unit: 2, algorithm: sliding_window}',
    '{unit: day, requests_per_unit: 50, algorithm: sliding_window}',
  ],
  [
    'bucket whose rate alone is raised',
    '{unit: day, requests_per_unit: 1, burst: 2, algorithm: token_bucket}',
    '{unit: day, requests_per_unit: 86400, burst: 2, algorithm: token_bucket}',
  ],
];
for (const [name, from, to] of raised) {
  test(`a ${name} that the local cache has as over its limit is asked for again under another limit`, async (t) => {
    const worker = createWorker(withKey(`rate_limit: ${from}`), { localCacheBytes: 1 });
    for (let hit = 0; hit < 4; hit++) await worker.decide(ask('k=x'));
    t.is(worker.stat('rate_limit.d.k.over_limit_with_local_cache'), 1);
    worker.useRules(withKey(`rate_limit: ${to}`));
    // A bucket at the new rate fills in two seconds.
    await worker.decide(ask('k=x'));
    worker.clock.advance(2_000);
    t.regex(summarize(await worker.decide(ask('k=x'))), /^OK/);
    worker.useRules(withKey(`rate_limit: ${from}`));
    for (let hit = 0; hit < 3; hit++) await worker.decide(ask('k=x'));
    t.is(worker.stat('rate_limit.d.k.over_limit_with_local_cache'), name.startsWith('b') ? 2 : 4);
  });
}

test('a limit that comes with a request is not answered from what the local cache knows of another one', async (t) => {
  const worker = createWorker('domain: d', { localCacheBytes: 1 });
  const of = (requestsPerUnit: number) =>
    ask({ of: 'k=x', limit: { requestsPerUnit, unit: 4 }, hitsAddend: 3 });
  t.is(summarize(await worker.decide(of(2))), 'OVER [OVER 0]');
  t.is(summarize(await worker.decide(of(50))), 'OK [OK 44]');
  t.is(summarize(await worker.decide(of(2))), 'OVER [OVER 0]');
  t.is(summarize(await worker.decide(of(50))), 'OK [OK 41]');
});

test('the local cache keeps a bucket no longer when the worker’s clock is set back, and its reset is the store’s', async (t) => {
  const worker = createWorker(
    withKey('rate_limit: {unit: minute, requests_per_unit: 1, algorithm: token_bucket}'),
    { localCacheBytes: 1 },
  );
  const resetOf = async (hitsAddend = 1) => {
    const outcome = await worker.decide(ask({ of: 'k=x', hitsAddend }));
    return outcome.ok && outcome.response.statuses[0]?.secondsUntilReset;
  };
  await resetOf();
  worker.clock.advance(500);
  t.deepEqual([await resetOf(), await resetOf()], [60, 60]);
  worker.clock.setWall(worker.clock.wallMs() - 600_000);
  worker.clock.advance(59_000);
  t.is(await resetOf(), 1);
  worker.clock.advance(1_000);
  t.is(summarize(await worker.decide(ask('k=x'))), 'OK [OK 0]');
});
