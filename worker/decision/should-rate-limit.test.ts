// The whole decision over real rules and counters in process, with the clock turned by hand.
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
import type { CountRequest } from '../counters/store.ts';
import { createRegistry } from '../metrics/registry.ts';
import { codes } from './message.ts';
import { createShouldRateLimit } from './should-rate-limit.ts';
import { createUnmatchedSampler } from './unmatched-sampler.ts';

const twoLimits = `
domain: d
descriptors:
  - key: a
    rate_limit: {unit: minute, requests_per_unit: 2}
  - key: b
    rate_limit: {unit: hour, requests_per_unit: 5}
`;

test('hits are counted down to the limit, and each window starts anew', async (t) => {
  const { decide, clock } = createWorker(twoLimits);
  t.is(summarize(await decide(ask('a=x'))), 'OK [OK 1]');
  t.is(summarize(await decide(ask('a=x'))), 'OK [OK 0]');
  t.is(summarize(await decide(ask('a=x'))), 'OVER [OVER 0]');
  t.is(summarize(await decide(ask('a=y'))), 'OK [OK 1]', 'another value has a counter of its own');
  clock.advance(45_000);
  t.is(summarize(await decide(ask('a=x'))), 'OK [OK 1]');
});

test('a status tells limit, unit, name and the seconds to the end of the window', async (t) => {
  const { decide } = createWorker(`
domain: d
descriptors:
  - key: a
    rate_limit: {unit: minute, requests_per_unit: 2, name: two}
`);
  const outcome = await decide(ask('a=x'));
  t.true(outcome.ok);
  t.deepEqual(outcome.ok && outcome.response.statuses, [
    {
      code: codes.ok,
      currentLimit: { name: 'two', requestsPerUnit: 2, unit: 'minute' },
      limitRemaining: 1,
      secondsUntilReset: 45,
    },
  ]);
});

test('one descriptor over its limit makes the whole answer over the limit', async (t) => {
  const { decide } = createWorker(twoLimits);
  await decide(ask('a=x'));
  await decide(ask('a=x'));
  t.is(summarize(await decide(ask('b=x', 'a=x', 'nothing=x'))), 'OVER [OK 4, OVER 0, OK 0]');
});

test('the counter has the key that every service on the store forms', async (t) => {
  const { decide, memory } = createWorker(twoLimits, { cacheKeyPrefix: 'pre:' });
  await decide(ask('a=x'));
  t.is(memory.read(`pre:d_a_x_${Math.floor(start / 60_000) * 60}`), 1);
});

test('a long counter key goes to the store as it is, and is looked up by a short one', async (t) => {
  const asked: [string, string][] = [];
  const { decide, stat } = createWorker(twoLimits, {
    localCacheBytes: 1,
    store: (inner) => ({
      ...inner,
      count(request) {
        for (const { key, mapKey } of request.hits) asked.push([key, mapKey]);
        inner.count(request);
      },
    }),
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

test('an empty domain and an empty descriptor list are service errors', async (t) => {
  const { decide, stat } = createWorker(twoLimits);
  t.is(
    summarize(await decide({ ...ask('a=x'), domain: '' })),
    'bad_request: rate limit domain must not be empty',
  );
  t.is(summarize(await decide(ask())), 'bad_request: rate limit descriptor list must not be empty');
  t.is(stat('call.should_rate_limit.service_error'), 2);
  t.is(stat('call.should_rate_limit.redis_error'), 0);
});

test('without rules every decision fails', async (t) => {
  const { decide } = createWorker(undefined);
  t.is(summarize(await decide(ask('a=x'))), 'not_ready: no rate limit configuration loaded');
});

test('an unknown domain lets pass and is counted once per descriptor', async (t) => {
  const { decide, stat } = createWorker(twoLimits);
  t.is(summarize(await decide({ ...ask('a=x', 'b=x'), domain: 'elsewhere' })), 'OK [OK 0, OK 0]');
  t.is(stat('rate_limit.elsewhere.domain_not_found'), 2);
});

test('a failing store fails the call, with its text, and is counted as a store error', async (t) => {
  const { decide, memory, stat } = createWorker(twoLimits);
  await memory.close(0);
  const outcome = await decide(ask('a=x'));
  t.is(outcome.ok ? '' : outcome.error.code, 'store');
  t.is(stat('call.should_rate_limit.redis_error'), 1);
  t.is(stat('rate_limit.d.a.total_hits'), 1, 'asked for, although not counted');
});

// Proof of differences.md: Hits that do not fit into a counter (2^63-1) are over the limit
test('more hits than a counter can hold are over the limit, and so are those after them', async (t) => {
  const { decide, stat } = createWorker(twoLimits);
  for (const hitsAddend of [2n ** 64n - 1n, 1, 2n ** 63n]) {
    t.is(summarize(await decide(ask({ of: 'a=x', hitsAddend }))), 'OVER [OVER 0]');
  }
  t.is(stat('call.should_rate_limit.redis_error'), 0);
  await decide(ask({ of: 'a=x', hitsAddend: 2n ** 64n - 1n, isNegativeHits: true }));
  t.regex(summarize(await decide(ask('a=x'))), /^OK/);
});

test("the deadline is the caller's, or the store's from the request's arrival, whichever is sooner", async (t) => {
  const deadlines: number[] = [];
  const { decide, clock } = createWorker(twoLimits, {
    store: (inner) => ({
      ...inner,
      count(request) {
        deadlines.push(request.deadlineMs);
        inner.count(request);
      },
    }),
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

test('an unlimited rule answers by itself: the largest number remains, nothing is counted', async (t) => {
  const { decide, stat } = createWorker(`
domain: d
descriptors:
  - key: a
    rate_limit: {unlimited: true}
`);
  t.is(summarize(await decide(ask('a=x'))), 'OK [OK 4294967295]');
  t.is(stat('rate_limit.d.a.total_hits'), 0);
});

test("hits: a descriptor's own number goes before the request's, and 0 only looks", async (t) => {
  const { decide } = createWorker(twoLimits);
  t.is(summarize(await decide({ ...ask('b=x'), hitsAddend: 3 })), 'OK [OK 2]');
  t.is(
    summarize(await decide({ ...ask({ of: 'b=x', hitsAddend: 1 }), hitsAddend: 3 })),
    'OK [OK 1]',
  );
  t.is(summarize(await decide(ask({ of: 'b=x', hitsAddend: 0 }))), 'OK [OK 1]');
  t.is(summarize(await decide(ask('b=x'))), 'OK [OK 0]', 'a request without a number is one hit');
});

test('one descriptor twice in a request counts twice, the second after the first', async (t) => {
  const { decide } = createWorker(twoLimits);
  t.is(summarize(await decide(ask('a=x', 'a=x', 'a=x'))), 'OVER [OK 1, OK 0, OVER 0]');
});

test('a refund is subtracted, never over, and counted apart', async (t) => {
  const { decide, stat } = createWorker(twoLimits);
  const refund = (hitsAddend: number) => ask({ of: 'a=x', isNegativeHits: true, hitsAddend });
  await decide({ ...ask('a=x'), hitsAddend: 4 });
  t.is(summarize(await decide(refund(1))), 'OK [OK 0]', 'above the limit still, and OK');
  t.is(summarize(await decide(refund(9))), 'OK [OK 2]', 'floored at 0');
  t.is(stat('rate_limit.d.a.total_negative_hits'), 10);
  t.is(stat('rate_limit.d.a.total_hits'), 4);
  t.is(stat('rate_limit.d.a.over_limit'), 2);
});

test('a refund that brings the counter within its limit is forgotten by the local cache', async (t) => {
  const { decide, memory } = createWorker(twoLimits, { localCacheBytes: 1 });
  const key = `d_a_x_${Math.floor(start / 60_000) * 60}`;
  await decide({ ...ask('a=x'), hitsAddend: 4 });
  t.is(summarize(await decide(ask('a=x'))), 'OVER [OVER 0]');
  t.is(memory.read(key), 4, 'known to be over: the counter is left alone');
  await decide(ask({ of: 'a=x', isNegativeHits: true, hitsAddend: 1 }));
  t.is(summarize(await decide(ask('a=x'))), 'OVER [OVER 0]');
  t.is(memory.read(key), 3, 'still over after the refund, so still known');
  await decide(ask({ of: 'a=x', isNegativeHits: true, hitsAddend: 2 }));
  t.is(summarize(await decide(ask('a=x'))), 'OK [OK 0]');
});

test('an answer that a refund has overtaken tells the local cache nothing', async (t) => {
  const held: (() => void)[] = [];
  const { decide } = createWorker(twoLimits, {
    localCacheBytes: 1,
    store: (inner) => ({
      ...inner,
      // Counted at once, but answered late, as when another part of it is on a slower server.
      count(request) {
        const isSlow = request.hits.length > 1;
        const settle: CountRequest['settle'] = (error) =>
          isSlow ? held.push(() => request.settle(error)) : request.settle(error);
        inner.count({ ...request, settle });
      },
    }),
  });
  const slow = decide({ ...ask('a=x', 'b=x'), hitsAddend: 3 });
  await decide(ask({ of: 'a=x', isNegativeHits: true, hitsAddend: 2 }));
  for (const settle of held) settle();
  t.is(summarize(await slow), 'OVER [OVER 0, OK 2]');
  t.is(summarize(await decide(ask('a=x'))), 'OK [OK 0]');
});

test('an answer that comes after the end of a calendar month says when the next one ends', async (t) => {
  const held: (() => void)[] = [];
  const month =
    'domain: d\ndescriptors: [{key: a, rate_limit: {unit: month, requests_per_unit: 2}}]';
  const { decide, clock } = createWorker(month, {
    calendarMonths: true,
    store: (inner) => ({
      ...inner,
      count: (request) =>
        inner.count({
          ...request,
          settle: (error) => void held.push(() => request.settle(error)),
        }),
    }),
  });
  const resetOf = async (answeredAt: string) => {
    clock.setWall(Date.parse('2027-02-28T23:59:59Z'));
    const decision = decide(ask('a=x'));
    await new Promise((resolve) => setImmediate(resolve));
    clock.setWall(Date.parse(answeredAt));
    held.pop()?.();
    const outcome = await decision;
    return outcome.ok ? outcome.response.statuses[0]?.secondsUntilReset : outcome.error.message;
  };
  t.is(await resetOf('2027-02-28T23:59:59Z'), 1);
  t.is(await resetOf('2027-03-01T00:00:00Z'), 31 * 86_400);
  t.is(await resetOf('2027-03-01T00:00:01Z'), 31 * 86_400 - 1);
  // The clock was set back meanwhile.
  t.is(await resetOf('2027-01-31T23:59:58Z'), 2);
});

test('a hit that the local cache answers is counted as such', async (t) => {
  const { decide, stat } = createWorker(twoLimits, { localCacheBytes: 1 });
  await decide({ ...ask('a=x'), hitsAddend: 3 });
  await decide({ ...ask('a=x'), hitsAddend: 2 });
  t.is(stat('rate_limit.d.a.over_limit_with_local_cache'), 2);
  t.is(stat('rate_limit.d.a.over_limit'), 3);
  t.is(stat('rate_limit.d.a.total_hits'), 5);
});

test('where one descriptor is over, the others stand still if that is set', async (t) => {
  const { decide, memory } = createWorker(twoLimits, { stopIncrementWhenOver: true });
  const hour = Math.floor(start / 3_600_000) * 3_600;
  for (let turn = 0; turn < 3; turn++) await decide(ask('a=x', 'b=x'));
  t.is(memory.read(`d_b_x_${hour}`), 2);
  t.is(memory.read(`d_a_x_${Math.floor(start / 60_000) * 60}`), 3);
});

test('a descriptor known to be over by the local cache keeps the others still too', async (t) => {
  const { decide, memory } = createWorker(twoLimits, {
    stopIncrementWhenOver: true,
    localCacheBytes: 1,
  });
  const hour = Math.floor(start / 3_600_000) * 3_600;
  await decide({ ...ask('a=x'), hitsAddend: 3 });
  t.is(summarize(await decide(ask('a=x', 'b=x'))), 'OVER [OVER 0, OK 5]');
  t.is(memory.read(`d_b_x_${hour}`), 0);
});

test('a rule in shadow mode is counted, and always OK', async (t) => {
  const { decide, stat } = createWorker(`
domain: d
descriptors:
  - key: a
    shadow_mode: true
    rate_limit: {unit: minute, requests_per_unit: 1}
`);
  await decide(ask('a=x'));
  t.is(summarize(await decide(ask('a=x'))), 'OK [OK 0]');
  t.is(stat('rate_limit.d.a.shadow_mode'), 1);
  t.is(stat('rate_limit.d.a.over_limit'), 1);
});

test('global shadow mode turns only the overall code', async (t) => {
  const { decide, stat } = createWorker(twoLimits, { shadowMode: true });
  await decide({ ...ask('a=x'), hitsAddend: 2 });
  t.is(stat('global_shadow_mode'), 0);
  t.is(summarize(await decide(ask('a=x'))), 'OK [OVER 0]');
  t.is(stat('global_shadow_mode'), 1);
});

const quotas = `
domain: d
descriptors:
  - key: q1
    quota_mode: true
    rate_limit: {unit: minute, requests_per_unit: 1}
  - key: q2
    quota_mode: true
    rate_limit: {unit: minute, requests_per_unit: 1}
  - key: normal
    rate_limit: {unit: minute, requests_per_unit: 100}
`;

test('quotas refuse only when all of them are used up', async (t) => {
  const { decide } = createWorker(quotas);
  await decide(ask('q1=x'));
  t.is(summarize(await decide(ask('q1=x', 'q2=x', 'normal=x'))), 'OK [OVER 0, OK 0, OK 99]');
  t.is(summarize(await decide(ask('q1=x', 'q2=x', 'normal=x'))), 'OVER [OVER 0, OVER 0, OK 98]');
});

test('with quota mode everywhere a descriptor without a limit is a quota that is left', async (t) => {
  const { decide } = createWorker(twoLimits, { quotaMode: true });
  await decide({ ...ask('a=x'), hitsAddend: 2 });
  t.is(summarize(await decide(ask('a=x', 'nothing=x'))), 'OK [OVER 0, OK 0]');
  t.is(summarize(await decide(ask('a=x'))), 'OVER [OVER 0]');
});

const replacing = `
domain: d
descriptors:
  - key: base
    rate_limit: {unit: minute, requests_per_unit: 1, name: base}
  - key: special
    rate_limit: {unit: minute, requests_per_unit: 10, replaces: [{name: base}]}
  - key: free
    rate_limit: {unlimited: true, name: free, replaces: [{name: base}]}
`;

test('a rule that replaces another keeps its counter and statistics still', async (t) => {
  const { decide, memory, stat } = createWorker(replacing);
  t.is(summarize(await decide(ask('base=x', 'special=x'))), 'OK [OK 0, OK 9]');
  t.is(memory.read(`d_base_x_${Math.floor(start / 60_000) * 60}`), undefined);
  t.is(stat('rate_limit.d.base.total_hits'), 0);
  t.is(summarize(await decide(ask('base=x'))), 'OK [OK 0]', 'alone it applies');
  t.is(stat('rate_limit.d.base.total_hits'), 1);
});

test('an unlimited rule can replace', async (t) => {
  const { decide, stat } = createWorker(replacing);
  t.is(summarize(await decide(ask('base=x', 'free=x'))), 'OK [OK 0, OK 4294967295]');
  t.is(stat('rate_limit.d.base.total_hits'), 0);
});

test('a limit in the request takes the place of the rules, on the same counter', async (t) => {
  const { decide, stat } = createWorker(twoLimits);
  await decide(ask('a=x'));
  const own = { of: 'a=x', limit: { requestsPerUnit: 10, unit: 2 } };
  t.is(summarize(await decide(ask(own))), 'OK [OK 8]');
  t.is(stat('rate_limit.d.a_x.total_hits'), 1);
});

for (const unit of [0, 8]) {
  // Proof of differences.md: A limit in the request with an unknown unit fails the call
  test(`a limit in the request with unit ${unit} fails the call and says which units there are`, async (t) => {
    const { decide, stat } = createWorker(twoLimits);
    const outcome = await decide(ask('a=x', { of: 'a=x', limit: { requestsPerUnit: 1, unit } }));
    t.is(
      summarize(outcome),
      `bad_request: descriptors[1].limit.unit ${unit} is not a unit of time; ` +
        'use 1 (SECOND), 2 (MINUTE), 3 (HOUR), 4 (DAY), 5 (MONTH), 6 (YEAR) or 7 (WEEK)',
    );
    t.is(stat('call.should_rate_limit.service_error'), 1);
  });
}

test('a week as unit of a limit in the request is understood', async (t) => {
  const { decide } = createWorker(twoLimits);
  const outcome = await decide(ask({ of: 'a=x', limit: { requestsPerUnit: 3, unit: 7 } }));
  t.is(outcome.ok && outcome.response.statuses[0]?.currentLimit?.unit, 'week');
});

test('values that match a shared wildcard count together', async (t) => {
  const { decide, memory } = createWorker(`
domain: d
descriptors:
  - key: p
    value: files/*
    share_threshold: true
    rate_limit: {unit: minute, requests_per_unit: 2}
`);
  await decide(ask('p=files/a'));
  t.is(summarize(await decide(ask('p=files/b'))), 'OK [OK 0]');
  t.is(memory.read(`d_p_files/*_${Math.floor(start / 60_000) * 60}`), 2);
});

test('headers and metadata are told when they are switched on', async (t) => {
  const names = { limit: 'L', remaining: 'R', reset: 'T' };
  const { decide } = createWorker(twoLimits, {
    headers: { response: names, request: undefined, perUnit: undefined },
    dynamicMetadata: true,
  });
  const outcome = await decide(ask('a=x'));
  t.true(outcome.ok);
  if (!outcome.ok) return;
  t.is(outcome.response.responseHeadersToAdd.map(({ value }) => value).join(), '2,1,45');
  t.deepEqual(outcome.response.dynamicMetadata, {
    domain: 'd',
    descriptors: [{ entries: ['a=x'] }],
  });
});

test('a caller that gives up marks its request for the store, and is no error of the store', async (t) => {
  const cancelled: boolean[] = [];
  const { clock, memory } = createWorker(twoLimits);
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 1, log });
  const rules = buildRules(twoLimits);
  const shouldRateLimit = createShouldRateLimit({
    rules: { current: rules },
    store: {
      ...memory,
      count(request) {
        queueMicrotask(() => {
          cancelled.push(request.cancelled);
          request.settle(new AppError('store', 'left out'));
        });
      },
    },
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

test('descriptors without a limit are counted by domain, and copies of a few are taken', async (t) => {
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

test('a sample is marked as cut exactly where a text or an entry is missing', async (t) => {
  const longest = 'x'.repeat(128);
  const entries = (count: number) => Array.from({ length: count }, (_, i) => `e${i}=1`).join(',');
  const isCut = async (descriptor: string, domain = 'd') => {
    const { decide, samples } = createWorker(twoLimits);
    await decide({ ...ask(descriptor), domain });
    return samples[0]?.isCut;
  };
  t.deepEqual(
    [
      await isCut(`${longest}=${longest}`, longest),
      await isCut(entries(16)),
      await isCut('z=1', `${longest}x`),
      await isCut(entries(17)),
      await isCut(`${longest}x=1`),
      await isCut(`z=${longest}x`),
    ],
    [false, false, true, true, true, true],
  );
});

test('the hits that wait for the store are bounded, and large requests do not take the room of small ones', async (t) => {
  const waiting: CountRequest[] = [];
  const worker = createWorker(twoLimits, {
    store: (inner) => ({ ...inner, count: (request) => void waiting.push(request) }),
  });
  const large = ask(...Array<string>(200).fill('a=1'));
  const asked = Array.from({ length: 1000 }, () => worker.decide(large));
  const taken = waiting.length;
  t.true(taken > 100 && taken * 200 <= 65_536, `${taken} large requests were taken`);
  const [refused] = await Promise.all(asked.slice(taken));
  t.is(
    refused && summarize(refused),
    'overloaded: too many hits are waiting for the store already',
  );
  const small = Array.from({ length: 10_000 }, () => worker.decide(ask('a=1')));
  t.is(waiting.length, taken + small.length, 'there is room for small ones');
  for (const request of waiting.splice(0)) request.settle(undefined);
  await Promise.all([...asked.slice(0, taken), ...small]);
  void worker.decide(large);
  t.is(waiting.length, 1, 'there is room again');
});

test('the store is asked only about counters that the local cache does not know to be over', async (t) => {
  const asked: string[] = [];
  const { decide } = createWorker(
    'domain: d\ndescriptors:\n' +
      '  - {key: one, rate_limit: {unit: hour, requests_per_unit: 1}}\n' +
      '  - {key: many, rate_limit: {unit: hour, requests_per_unit: 9}}\n',
    {
      localCacheBytes: 1_000_000,
      store: (inner) => ({
        ...inner,
        count(request) {
          asked.push(request.hits.map(({ key }) => key.split('_')[1]).join(' '));
          inner.count(request);
        },
      }),
    },
  );
  for (let time = 1; time <= 2; time++) await decide(ask('one=x'));
  t.is(summarize(await decide(ask('one=x', 'many=x'))), 'OVER [OVER 0, OK 8]');
  t.deepEqual(asked, ['one', 'one', 'many']);
});

test('a request with one hit is counted by leases where its limit has one, and only then', async (t) => {
  const counted: string[] = [];
  const { decide } = createWorker(
    'domain: d\ndescriptors:\n' +
      '  - {key: leased, rate_limit: {unit: hour, requests_per_unit: 100, lease: {share: 5%, for: 1s}}}\n' +
      '  - {key: plain, rate_limit: {unit: hour, requests_per_unit: 100}}\n',
    {
      store: (inner) => ({
        ...inner,
        count(request) {
          counted.push('store');
          inner.count(request);
        },
      }),
      leases: (inner) => ({
        count(request) {
          counted.push('leases');
          inner.count(request);
        },
        forget() {},
        close() {},
      }),
    },
  );
  await decide(ask('leased=x'));
  await decide(ask('plain=x'));
  await decide(ask('leased=x', 'plain=x'));
  t.deepEqual(counted, ['leases', 'store', 'store']);
});
