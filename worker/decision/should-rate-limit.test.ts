// Tests decisions at their boundaries to store, caller and clock; their answers are in decisions.test.ts.
import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import {
  ask,
  buildRules,
  createWorker,
  defaults,
  OpenDecision,
  start,
  summarize,
} from '../../test/support/decision-worker.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { withCount } from '../../test/support/with-count.ts';
import type { CounterStore, CountRequest } from '../counters/store.ts';
import { createRegistry } from '../metrics/registry.ts';
import { createShouldRateLimit } from './should-rate-limit.ts';
import { createUnmatchedSampler } from './unmatched-sampler.ts';

const twoLimits = `
domain: d
descriptors:
  - {key: a, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: b, rate_limit: {unit: hour, requests_per_unit: 5}}
`;

/** A store that shows its requests before it counts them. */
const watched = (see: (request: CountRequest) => void) => (inner: CounterStore) => ({
  ...inner,
  count(request: CountRequest) {
    see(request);
    inner.count(request);
  },
});

test('a long counter key is sent to the store unchanged, and looked up by a short one', async (t) => {
  const asked: (readonly [string, string])[] = [];
  const { decide, stat } = createWorker(twoLimits, {
    localCacheBytes: 1,
    storesLongKeys: true,
    store: watched(
      ({ hits }) => void asked.push(...hits.map(({ key, mapKey }) => [key, mapKey] as const)),
    ),
  });
  const value = 'x'.repeat(70_000);
  for (let times = 0; times < 4; times++) await decide(ask(`a=${value}`));
  t.is(asked.length, 3);
  for (const [key, mapKey] of asked) {
    t.is(key, `d_a_${value}_${Math.floor(start / 60_000) * 60}`);
    t.true(mapKey.length <= 1024);
  }
  t.is(stat('rate_limit.d.a.over_limit_with_local_cache'), 1);
});

test('without rules every decision fails', async (t) => {
  const { decide } = createWorker(undefined);
  t.is(summarize(await decide(ask('a=x'))), 'not_ready: no rate limit configuration loaded');
});

test('a failing store fails the call, with its text, and is counted as a store error', async (t) => {
  const { decide, memory, stat } = createWorker(twoLimits);
  await memory.close();
  const outcome = await decide(ask('a=x'));
  t.is(outcome.ok ? '' : outcome.error.code, 'store');
  t.is(stat('call.should_rate_limit.redis_error'), 1);
  t.is(stat('rate_limit.d.a.total_hits'), 1, 'asked for, although not counted');
});

test("the deadline is the caller's or the store's from the request's arrival, whichever is earlier", async (t) => {
  const deadlines: number[] = [];
  const { decide, clock } = createWorker(twoLimits, {
    store: watched(({ deadlineMs }) => void deadlines.push(deadlineMs)),
  });
  await decide(ask('a=x'), undefined, 0);
  await decide(ask('a=x'), 50, 0);
  await decide(ask('a=x'), 5_000, 0);
  clock.advance(400);
  const waited = await decide(ask('a=x'), undefined, 100);
  const waitedTooLong = await decide(ask('a=x'), undefined, -600);
  t.deepEqual(deadlines, [1_000, 50, 1_000, 1_100, 400]);
  t.true(waited.ok);
  t.is(
    summarize(waitedTooLong),
    'store: in-process counters: the deadline passed before the hits were counted',
  );
});

test('an answer that a refund has overtaken does not change the local cache', async (t) => {
  const pending: (() => void)[] = [];
  const { decide } = createWorker(twoLimits, {
    localCacheBytes: 1,
    store: (inner) => ({
      ...inner,
      // Counts at once, but answers late, as when another part of the request is on a slower server.
      count(request) {
        const isSlow = request.hits.length > 1;
        const settle: CountRequest['settle'] = (error) =>
          isSlow ? pending.push(() => request.settle(error)) : request.settle(error);
        inner.count({ ...request, settle });
      },
    }),
  });
  const slow = decide({ ...ask('a=x', 'b=x'), hitsAddend: 3 });
  await decide(ask({ of: 'a=x', isNegativeHits: true, hitsAddend: 2 }));
  for (const settle of pending) settle();
  t.is(summarize(await slow), 'OVER [OVER 0, OK 2]');
  t.is(summarize(await decide(ask('a=x'))), 'OK [OK 0]');
});

test('an answer after the end of a calendar month has the end of the next one', async (t) => {
  const pending: (() => void)[] = [];
  const month =
    'domain: d\ndescriptors: [{key: a, rate_limit: {unit: month, requests_per_unit: 2}}]';
  const { decide, clock } = createWorker(month, {
    calendarMonths: true,
    store: (inner) => ({
      ...inner,
      count: (request) =>
        inner.count({
          ...request,
          settle: (error) => void pending.push(() => request.settle(error)),
        }),
    }),
  });
  const resetOf = async (answeredAt: string) => {
    clock.setWall(Date.parse('2027-02-28T23:59:59Z'));
    const decision = decide(ask('a=x'));
    await new Promise((resolve) => setImmediate(resolve));
    clock.setWall(Date.parse(answeredAt));
    pending.pop()?.();
    const outcome = await decision;
    return outcome.ok ? outcome.response.statuses[0]?.secondsUntilReset : outcome.error.message;
  };
  t.is(await resetOf('2027-02-28T23:59:59Z'), 1);
  t.is(await resetOf('2027-03-01T00:00:00Z'), 31 * 86_400);
  t.is(await resetOf('2027-03-01T00:00:01Z'), 31 * 86_400 - 1);
  // The clock was set back meanwhile.
  t.is(await resetOf('2027-01-31T23:59:58Z'), 2);
});

test('a caller that disconnects cancels its request to the store, which is not a store error', async (t) => {
  const cancelled: boolean[] = [];
  const { clock, memory } = createWorker(twoLimits);
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 1, log });
  const rules = buildRules(twoLimits);
  const shouldRateLimit = createShouldRateLimit({
    rules: { current: rules },
    store: withCount(memory, (request) =>
      queueMicrotask(() => {
        cancelled.push(request.cancelled);
        request.settle(new AppError('store', 'left out'));
      }),
    ),
    overLimitCache: undefined,
    metrics,
    unmatched: createUnmatchedSampler(metrics, () => {}),
    clock,
    options: defaults,
  });
  await new Promise<void>((resolve) => {
    const decision = new OpenDecision(ask('a=x'), clock.monotonicMs(), () => resolve());
    shouldRateLimit(decision);
    decision.cancel();
  });
  t.deepEqual(cancelled, [true]);
  t.is(metrics.counter('ratelimit.service.call.should_rate_limit.redis_error').value, 0);
});

test('descriptors without a limit are counted by domain, and a few of them are sampled', async (t) => {
  const { decide, samples, stat, clock } = createWorker(`
domain: d
descriptors:
  - {key: a, value: x, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: exempt}
  - {key: b, descriptors: [{key: c, rate_limit: {unit: hour, requests_per_unit: 2}}]}
`);
  const noMatch = () => stat('no_match.d');
  await decide(
    ask('a=x', 'free=1', 'exempt=1', { of: 'z=1', limit: { requestsPerUnit: 1, unit: 1 } }),
  );
  t.is(noMatch(), 0, 'what has a limit, or was meant to have none, is no accident');
  t.deepEqual(samples, []);
  await decide(ask('a=y', 'b=1', 'b=1,c=1'));
  t.is(noMatch(), 2);
  const atSeconds = start / 1000;
  t.deepEqual(samples, [
    { domain: 'd', entries: [{ key: 'a', value: 'y' }], isCut: false, atSeconds },
    { domain: 'd', entries: [{ key: 'b', value: '1' }], isCut: false, atSeconds },
  ]);
  for (let more = 0; more < 100; more++) await decide(ask('a=y'));
  t.is(noMatch(), 102);
  t.is(samples.length, 20, 'of one second');
  clock.advance(1_000);
  await decide({ ...ask(`${'k'.repeat(500)}=${'v'.repeat(500)}`), domain: 'unknown' });
  t.deepEqual(samples[20], {
    domain: 'unknown',
    entries: [{ key: 'k'.repeat(128), value: 'v'.repeat(128) }],
    isCut: true,
    atSeconds: atSeconds + 1,
  });
  t.is(stat('rate_limit.unknown.domain_not_found'), 1);
  t.is(stat('no_match.unknown'), 0);
});

test('the hits waiting for the store are bounded, and large requests do not use up the room of small ones', async (t) => {
  const waiting: CountRequest[] = [];
  const worker = createWorker(twoLimits, {
    store: (inner) => ({ ...inner, count: (request) => void waiting.push(request) }),
  });
  const large = ask(...Array<string>(200).fill('a=1'));
  const asked = Array.from({ length: 1000 }, () => worker.decide(large));
  const waitingBefore = waiting.length;
  t.true(
    waitingBefore > 100 && waitingBefore * 200 <= 65_536,
    `${waitingBefore} large requests were taken`,
  );
  const [refused] = await Promise.all(asked.slice(waitingBefore));
  t.is(
    refused && summarize(refused),
    'overloaded: too many hits are waiting for the store already',
  );
  const small = Array.from({ length: 10_000 }, () => worker.decide(ask('a=1')));
  t.is(waiting.length, waitingBefore + small.length, 'there is room for small ones');
  for (const request of waiting.splice(0)) request.settle(undefined);
  await Promise.all([...asked.slice(0, waitingBefore), ...small]);
  void worker.decide(large);
  t.is(waiting.length, 1, 'there is room again');
});

test('the store is only asked about counters that are not over their limit in the local cache', async (t) => {
  const asked: string[] = [];
  const { decide } = createWorker(
    'domain: d\ndescriptors:\n' +
      '  - {key: one, rate_limit: {unit: hour, requests_per_unit: 1}}\n' +
      '  - {key: many, rate_limit: {unit: hour, requests_per_unit: 9}}\n',
    {
      localCacheBytes: 1_000_000,
      store: watched(
        ({ hits }) => void asked.push(hits.map(({ key }) => key.split('_')[1]).join(' ')),
      ),
    },
  );
  for (let time = 1; time <= 2; time++) await decide(ask('one=x'));
  t.is(summarize(await decide(ask('one=x', 'many=x'))), 'OVER [OVER 0, OK 8]');
  t.deepEqual(asked, ['one', 'one', 'many']);
});

test('a request with one hit is counted by leases if its limit has a lease, and only then', async (t) => {
  const counted: string[] = [];
  const { decide } = createWorker(
    'domain: d\ndescriptors:\n' +
      '  - {key: leased, rate_limit: {unit: hour, requests_per_unit: 100, lease: {share: 5%, for: 1s}}}\n' +
      '  - {key: plain, rate_limit: {unit: hour, requests_per_unit: 100}}\n',
    {
      store: watched(() => void counted.push('store')),
      leases: (inner) => ({
        count(request) {
          counted.push('leases');
          inner.count(request);
        },
      }),
    },
  );
  await decide(ask('leased=x'));
  await decide(ask('plain=x'));
  await decide(ask('leased=x', 'plain=x'));
  t.deepEqual(counted, ['leases', 'store', 'store']);
});

// Proof of migrating.md: A counter key above 1,024 bytes is stored under its digest, unless `REDIS_LONG_KEYS=whole`
test('counter keys above 1,024 bytes are counted under a digest after the prefix, or whole', async (t) => {
  const keysOf = async (storesLongKeys: boolean, ...values: string[]) => {
    const keys: string[] = [];
    const { decide } = createWorker(twoLimits, {
      cacheKeyPrefix: 'p:',
      storesLongKeys,
      store: watched(({ hits }) => void keys.push(...hits.map(({ key }) => key))),
    });
    for (const value of values) await decide(ask(`a=${value}`));
    return keys;
  };
  const values = ['x'.repeat(1_007), 'x'.repeat(1_100), 'ü'.repeat(600), 'x'.repeat(50_000)];
  const [short, ...long] = await keysOf(false, ...values);
  t.is(short?.length, 1_024);
  for (const key of long) t.regex(key, /^p:[0-9a-f]{64}$/);
  t.is(new Set(long).size, 3);
  t.deepEqual(
    (await keysOf(true, ...values)).map((key) => key.length),
    values.map((value) => value.length + 'p:d_a__'.length + 10),
  );
});
