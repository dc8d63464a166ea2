// Tests what the store is asked for limiters; answers and statistics are in decisions.test.ts, the arithmetic in
// test/contract/limiters.test.ts.
import test from 'ava';
import { ask, createWorker, summarize } from '../../test/support/decision-worker.ts';
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

test('calendar months have their real length: a wait into a longer one, and one without a request', async (t) => {
  const yaml = withKey(
    'rate_limit: {unit: month, requests_per_unit: 5, algorithm: sliding_window}',
  );
  const worker = createWorker(yaml, { calendarMonths: true });
  const decide = async (hitsAddend: number) => {
    const outcome = await worker.decide(ask({ of: 'k=x', hitsAddend }));
    return {
      is: summarize(outcome),
      reset: outcome.ok && outcome.response.statuses[0]?.secondsUntilReset,
    };
  };
  const advanceTo = (date: string) =>
    worker.clock.advance(Date.parse(date) - worker.clock.wallMs());
  // From November, which has 30 days.
  await decide(5);
  const { is, reset } = await decide(3);
  t.is(is, 'OVER [OVER 0]');
  worker.clock.advance(Number(reset) * 1_000 - 2_000);
  t.is((await decide(3)).is, 'OVER [OVER 2]');
  worker.clock.advance(2_000);
  t.is((await decide(3)).is, 'OK [OK 0]');
  advanceTo('2027-03-15T00:00:00Z');
  t.is((await decide(5)).is, 'OK [OK 0]');
  advanceTo('2027-04-30T12:00:00Z');
  t.is((await decide(0)).is, 'OK [OK 4]');
  advanceTo('2027-05-01T00:00:10Z');
  t.is((await decide(5)).is, 'OK [OK 0]', 'April had none');
  advanceTo('2027-05-31T23:00:00Z');
  t.is((await decide(0)).is, 'OK [OK 0]');
});

test('a wait for a token ends in the next month of the calendar, however short, as it was answered', async (t) => {
  const worker = createWorker(
    withKey('rate_limit: {unit: month, requests_per_unit: 2, algorithm: token_bucket}'),
    { calendarMonths: true },
  );
  worker.clock.advance(Date.parse('2027-01-28T00:00:00Z') - worker.clock.wallMs());
  await worker.decide(ask({ of: 'k=x', hitsAddend: 2 }));
  const refused = await worker.decide(ask('k=x'));
  const [status] = refused.ok ? refused.response.statuses : [];
  worker.clock.advance(Number(status?.secondsUntilReset) * 1_000);
  t.is(summarize(await worker.decide(ask('k=x'))), 'OK [OK 0]');
});
