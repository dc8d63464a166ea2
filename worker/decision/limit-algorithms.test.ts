// Tests what the store is asked for limiters; answers and statistics are in decisions.test.ts, the arithmetic in
// test/contract/limiters.test.ts.
import test from 'ava';
import { ask, createWorker } from '../../test/support/decision-worker.ts';
import { createPerSecondStore } from '../counters/redis/redis-kind.ts';

for (const [algorithm, reset] of [
  ['token_bucket', 60],
  ['sliding_window', 3_645],
] as const) {
  test(`${algorithm}: a request counted by two stores has the same reset, and is cached in the same way, as with one`, async (t) => {
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
