// Statistics that only record, for tests of the listeners.

import { toTagSuffix } from '../../worker/metrics/metric-name.ts';
import type { Counter, Gauge, Metrics, RuleStats } from '../../worker/metrics.ts';

export interface StubMetrics extends Metrics {
  /** The values given to a timer, in order. */
  observed(name: string): readonly number[];
}

export function createStubMetrics(): StubMetrics {
  const values = new Map<string, number>();
  const times = new Map<string, number[]>();
  const counter = (name: string): Counter => ({
    add: (count) => values.set(name, (values.get(name) ?? 0) + count),
    get value() {
      return values.get(name) ?? 0;
    },
  });
  const gauge = (name: string): Gauge => ({
    set: (value) => values.set(name, value),
    get value() {
      return values.get(name) ?? 0;
    },
  });
  return {
    counter: (name, tags = {}) => counter(name + toTagSuffix(tags)),
    gauge,
    timer: (name) => ({
      observe(ms) {
        times.set(name, [...(times.get(name) ?? []), ms]);
      },
    }),
    decisionDuration: { observe() {} },
    storeCallDuration: () => ({ observe() {} }),
    ruleStats() {
      throw new Error('the listeners count no rules');
    },
    unknownDomain() {
      throw new Error('the listeners know no domains');
    },
    beforeReading() {},
    snapshot: () => new Map([...values].sort(([a], [b]) => (a < b ? -1 : 1))),
    observed: (name) => times.get(name) ?? [],
  };
}

/** Adds a number of its own to each counter of a rule. */
export function addToEach(stats: RuleStats): void {
  const { totalHits, overLimit, nearLimit, withinLimit, shadowMode } = stats;
  const { overLimitWithLocalCache, totalNegativeHits } = stats;
  const counters = [totalHits, overLimit, nearLimit, withinLimit, overLimitWithLocalCache];
  for (const [at, each] of [...counters, shadowMode, totalNegativeHits].entries()) each.add(at + 1);
}
