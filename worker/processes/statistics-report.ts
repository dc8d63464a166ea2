// The changes of a process's statistics since its last report: the process makes them from its registry,
// and the primary adds them to its own (statistics-merge.ts).

import { droppedLinesName } from '../metrics/line-sink.ts';
import { createObservationBuffer, type ObservationBuffer } from '../metrics/observation-buffer.ts';
import type { CounterOrigin, MetricsRegistry } from '../metrics/registry.ts';

/** A new metric is named once; afterwards its index identifies it. */
export interface StatisticsReport {
  readonly newCounters: readonly CounterOrigin[];
  /** Indices of counters, and the increase of each. */
  readonly indexes: Uint32Array;
  readonly increases: Float64Array;
  readonly newGauges: readonly string[];
  /** The values of all gauges named so far; empty if an earlier part has them. */
  readonly gauges: Float64Array;
  readonly timers: readonly TimerReport[];
  /** The observations of `decisionDuration`; empty if an earlier part has them. */
  readonly decisionDuration: Float64Array;
  readonly storeCalls: readonly StoreCallReport[];
}

export interface StoreCallReport {
  readonly server: string;
  /** The observations of its `storeCallDuration`. */
  readonly duration: Float64Array;
}

export interface TimerReport {
  readonly name: string;
  /** Pairs: milliseconds, and how often this value was observed. */
  readonly observations: Float64Array;
}

export interface StatisticsReporter {
  /** The changes since the last report, in parts of bounded size, each made on demand. At least one part. */
  receive(): Iterable<StatisticsReport>;
}

/** Bounds of one part. Names have up to about a thousand characters. */
const maxCounters = 10_000;
const maxNewCounters = 500;

/** Subscribes to the timers immediately. */
export function createStatisticsReporter(registry: MetricsRegistry): StatisticsReporter {
  const { counters, gauges } = registry;
  const dropped = registry.counter(droppedLinesName);
  const timers: { readonly name: string; readonly buffer: ObservationBuffer }[] = [];
  /** The value of each counter that was reported so far, by its index. */
  const reported: number[] = [];
  let reportedGauges = 0;

  registry.listenToTimers((name) => {
    const buffer = createObservationBuffer();
    timers.push({ name, buffer });
    return buffer.observe;
  });

  function drainTimers(): TimerReport[] {
    return timers.map(({ name, buffer }) => {
      const observations = Float64Array.from([...buffer.entries()].flat());
      dropped.add(buffer.dropped);
      buffer.clear();
      return { name, observations };
    });
  }

  /** Takes counters from index `start` on; `end` is the index at which the next part begins. */
  function readCounters(start: number) {
    const newCounters: CounterOrigin[] = [];
    const indexes: number[] = [];
    const increases: number[] = [];
    let end = start;
    for (; end < counters.length && indexes.length < maxCounters; end++) {
      const counter = counters[end];
      if (counter === undefined) break;
      if (end === reported.length) {
        if (newCounters.length === maxNewCounters) break;
        newCounters.push(counter.origin);
        reported.push(0);
      }
      const { value } = counter;
      const increase = value - (reported[end] ?? 0);
      if (increase === 0) continue;
      reported[end] = value;
      indexes.push(end);
      increases.push(increase);
    }
    const report = {
      newCounters,
      indexes: Uint32Array.from(indexes),
      increases: Float64Array.from(increases),
    };
    return { report, end };
  }

  return {
    *receive() {
      registry.prepareReading();
      const observed = drainTimers();
      const { report, end } = readCounters(0);
      const newGauges = gauges.slice(reportedGauges).map(({ name }) => name);
      reportedGauges = gauges.length;
      const values = Float64Array.from(gauges, ({ value }) => value);
      const decisionDuration = registry.decisionDuration.drain();
      const storeCalls = Array.from(registry.storeCallDurations, ([server, durations]) => ({
        server,
        duration: durations.drain(),
      }));
      yield {
        ...report,
        newGauges,
        gauges: values,
        timers: observed,
        decisionDuration,
        storeCalls,
      };
      for (let start = end; start < counters.length; ) {
        const next = readCounters(start);
        start = next.end;
        const none = new Float64Array();
        yield {
          ...next.report,
          newGauges: [],
          gauges: none,
          timers: [],
          decisionDuration: none,
          storeCalls: [],
        };
      }
    },
  };
}
