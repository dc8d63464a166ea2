// The values of a pulled timer: a histogram, or quantiles of the last minutes (behaviour: pull-mapping).
import type { ObserverOptions } from './metric-mapping.ts';
import { createObservationBuffer } from './observation-buffer.ts';
import { Histogram } from './registry.ts';

export interface TimerSeries {
  observe(value: number, times?: number): void;
  readonly count: number;
  readonly sum: number;
  /** Samples in addition to sum and count: their label, and the value. */
  samples(): readonly TimerSample[];
}

export interface TimerSample {
  /** An upper bound (`le`) or a `quantile`. */
  readonly at: number;
  readonly value: number;
}

/** `nowMs` returns a time that never decreases. */
export function createTimerSeries(options: ObserverOptions, nowMs: () => number): TimerSeries {
  return options.type === 'histogram'
    ? new Histogram(options.buckets)
    : createSummary(options, nowMs);
}

/** Exact, except that beyond a bound of distinct values further ones only count in sum and count. */
function createSummary(
  { quantiles, maxAgeMs, ageBuckets }: Extract<ObserverOptions, { type: 'summary' }>,
  nowMs: () => number,
): TimerSeries {
  const windowMs = maxAgeMs / ageBuckets;
  const windows = Array.from({ length: ageBuckets }, createObservationBuffer);
  let current = Math.floor(nowMs() / windowMs);
  let sum = 0;
  let count = 0;

  /** Drops observations that are too old. */
  function moveOn(): void {
    const next = Math.floor(nowMs() / windowMs);
    for (let passed = Math.min(next - current, ageBuckets); passed > 0; passed--) {
      windows[(next - passed + 1) % ageBuckets]?.clear();
    }
    current = next;
  }

  return {
    observe(value, times = 1) {
      moveOn();
      windows[current % ageBuckets]?.observe(value, times);
      sum += value * times;
      count += times;
    },
    get count() {
      return count;
    },
    get sum() {
      return sum;
    },
    samples() {
      moveOn();
      const sorted = windows.flatMap((window) => [...window.entries()]).sort(([a], [b]) => a - b);
      const total = sorted.reduce((all, [, times]) => all + times, 0);
      return quantiles.map((at) => ({ at, value: findRank(sorted, Math.ceil(at * total)) }));
    },
  };
}

function findRank(sorted: readonly (readonly [value: number, times: number])[], rank: number) {
  let passed = 0;
  for (const [value, times] of sorted) {
    passed += times;
    if (passed >= rank) return value;
  }
  return Number.NaN;
}
