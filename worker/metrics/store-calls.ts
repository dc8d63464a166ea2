// Durations of calls of the store, for all its servers together: since the start for reports, and for the last minute
// for operators.
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { findP99Ms } from '../../shared/decision-durations.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { Histogram } from './registry.ts';

/** A call is all commands of a batch that are sent to one server together. */
export interface StoreCalls {
  /** In the buckets of `decisionDurationBounds`; empty if no server was ever called. */
  readonly counts: readonly number[];
  readonly seconds: number;
}

export interface RecentStoreCalls {
  /** A line; none if no server was ever called, as with counters in memory. */
  describe(): readonly string[];
  close(): void;
}

const sampleIntervalMs = 10_000;
const samplesStored = 6;

/** Totals since the start. `durations` are by server. */
export function readStoreCalls(durations: ReadonlyMap<string, Histogram>): StoreCalls {
  const counts: number[] = [];
  let seconds = 0;
  for (const histogram of durations.values()) {
    for (const [index, count] of histogram.counts.entries()) {
      counts[index] = (counts[index] ?? 0) + count;
    }
    seconds += histogram.sum;
  }
  return { counts, seconds };
}

export function createRecentStoreCalls(
  durations: ReadonlyMap<string, Histogram>,
  clock: Clock,
): RecentStoreCalls {
  /** The samples, the oldest first. */
  const samples = [readSample()];
  const close = repeatAfter(clock, sampleIntervalMs, () => {
    samples.push(readSample());
    if (samples.length > samplesStored) samples.shift();
  });

  function readSample() {
    return { ...readStoreCalls(durations), atMs: clock.monotonicMs() };
  }

  return {
    describe() {
      const [before, now] = [samples[0] as ReturnType<typeof readSample>, readSample()];
      if (now.counts.length === 0) return [];
      const passed = now.counts.map((count, index) => count - (before.counts[index] ?? 0));
      const calls = passed.reduce((sum, count) => sum + count, 0);
      const span = formatDuration(Math.round((now.atMs - before.atMs) / 1000) * 1000);
      const p99Ms = findP99Ms([passed]);
      if (p99Ms === undefined) return [`the store's time: no calls in the last ${span}`];
      const averageMs = ((now.seconds - before.seconds) * 1000) / calls;
      const within = Number.isFinite(p99Ms)
        ? `99 of 100 within ${p99Ms} ms`
        : 'more than one of 100 above a second';
      const average = `${Number(averageMs.toPrecision(3))} ms each on average`;
      return [`the store's time: ${calls} calls in the last ${span}, ${average}, ${within}`];
    },
    close,
  };
}
