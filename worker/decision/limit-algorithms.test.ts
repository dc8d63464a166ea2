// What the store is asked for limiters; answers and statistics are in decisions.test.ts, the arithmetic in
// test/contract/limiters.test.ts.
import test from 'ava';
import { ask, createWorker } from '../../test/support/decision-worker.ts';
import { createPerSecondStore } from '../counters/redis/redis-kind.ts';

const withKey = (lines: string) => `
domain: d
descriptors:
  - key: k
${lines.replace(/^/gm, '    ')}
`;

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
      stopIncrementWhenOver: 'true',
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
