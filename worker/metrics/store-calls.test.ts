import test from 'ava';
import { decisionDurationBounds } from '../../shared/decision-durations.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { Histogram } from './registry.ts';
import { createRecentStoreCalls, readStoreCalls } from './store-calls.ts';

function setUp() {
  const durations = new Map<string, Histogram>();
  const clock = createManualClock();
  const call = (server: string, seconds: number, times: number) => {
    const histogram = durations.get(server) ?? new Histogram(decisionDurationBounds);
    durations.set(server, histogram);
    for (let left = times; left > 0; left--) histogram.observe(seconds);
  };
  return { durations, clock, call, recent: createRecentStoreCalls(durations, clock) };
}

test('durations of the store are reported for the last minute, for all its servers together', (t) => {
  const { clock, call, recent } = setUp();
  t.deepEqual(recent.describe(), [], 'no store was ever called');
  call('a:6379', 0.001, 50);
  call('b:6379', 0.061, 50);
  clock.advance(20_000);
  t.deepEqual(recent.describe(), [
    "the store's time: 100 calls in the last 20s, 31 ms each on average, 99 of 100 within 100 ms",
  ]);
  clock.advance(60_000);
  call('a:6379', 0.0004, 1);
  t.deepEqual(recent.describe(), [
    "the store's time: 1 calls in the last 50s, 0.4 ms each on average, 99 of 100 within 0.5 ms",
  ]);
  call('b:6379', 3, 1);
  t.regex(recent.describe()[0] ?? '', /more than one of 100 above a second$/);
  clock.advance(60_000);
  t.deepEqual(recent.describe(), ["the store's time: no calls in the last 50s"]);
  recent.close();
});

test('calls of all servers since the start are summed up for each bucket', (t) => {
  const { durations, call } = setUp();
  t.deepEqual(readStoreCalls(durations), { counts: [], seconds: 0 });
  call('a:6379', 0.00004, 2);
  call('b:6379', 0.00004, 1);
  call('b:6379', 2, 1);
  const { counts } = readStoreCalls(durations);
  t.is(counts.length, decisionDurationBounds.length + 1);
  t.deepEqual([counts[0], counts.at(-1)], [3, 1]);
});
