// Adds the reports of the processes that decide to the primary's registry, so that every output shows the whole worker.

import type { CounterOrigin, MetricsRegistry } from '../metrics/registry.ts';
import type { Counter } from '../metrics.ts';
import type { StatisticsReport } from './statistics-report.ts';

export interface StatisticsMerge {
  /** Call it once for each process that is started. */
  addProcess(): ReportedProcess;
}

export interface ReportedProcess {
  /** Adds the reports of a process, in the order in which they were made. */
  receive(report: StatisticsReport): void;
  /** Call it when the process has ended: its counts stay, its gauges do not. */
  end(): void;
}

/** The value of one gauge in each process, by the process's index. */
type GaugeValues = Map<ReportedProcess, number>;

export function createStatisticsMerge(registry: MetricsRegistry): StatisticsMerge {
  const gauges = new Map<string, GaugeValues>();

  function valuesOf(name: string): GaugeValues {
    let values = gauges.get(name);
    if (values === undefined) {
      const added: GaugeValues = new Map();
      const combine = ruleOf(name);
      registry.combineGauge(name, (own) =>
        [...added.values()].reduce((a, b) => combine(a, b), own),
      );
      gauges.set(name, added);
      values = added;
    }
    return values;
  }

  return {
    addProcess() {
      const counters: Counter[] = [];
      const ownGauges: GaugeValues[] = [];
      const process: ReportedProcess = {
        receive(report) {
          for (const origin of report.newCounters) counters.push(findCounter(registry, origin));
          report.indexes.forEach((counterIndex, index) => {
            counters[counterIndex]?.add(report.increases[index] ?? 0);
          });
          for (const name of report.newGauges) ownGauges.push(valuesOf(name));
          report.gauges.forEach((value, index) => {
            ownGauges[index]?.set(process, value);
          });
          registry.decisionDuration.add(report.decisionDuration);
          for (const { server, duration } of report.storeCalls) {
            registry.storeCallDuration(server).add(duration);
          }
          for (const { name, observations } of report.timers) {
            const timer = registry.timer(name);
            for (let index = 0; index < observations.length; index += 2) {
              timer.observe(observations[index] ?? 0, observations[index + 1] ?? 0);
            }
          }
        },
        end() {
          for (const values of ownGauges) values.delete(process);
        },
      };
      return process;
    },
  };
}

/** The bound on names made from requests is for the whole worker: requesting them here applies it. */
function findCounter(registry: MetricsRegistry, origin: CounterOrigin): Counter {
  switch (origin.kind) {
    case 'name':
      return registry.counter(origin.name, origin.tags);
    case 'domain':
      return registry.unknownDomain(origin.domain);
    case 'rule':
      return registry.ruleStats(origin.metricKey, origin.isStatic, origin.listedAs)[origin.stat];
  }
}

/** Amounts are summed up; times and delays show the relevant extreme. Files are the same for all. */
function ruleOf(name: string): (a: number, b: number) => number {
  if (/^ratelimit\.node\.(uptime_seconds|event_loop_\w+)$/.test(name)) return Math.max;
  if (name === 'ratelimit.localcache.averageAccessTime') return Math.max;
  if (name === 'certs.num_values') return Math.max;
  if (name.endsWith('.renewal_refused')) return Math.max;
  // The primary has no certificates, and a process that could not renew its own retains them: theirs expire first.
  if (name.endsWith('.not_after_timestamp_seconds')) return (a, b) => Math.min(a || b, b || a);
  if (name.endsWith('.clock_offset_ms')) return (a, b) => (Math.abs(b) > Math.abs(a) ? b : a);
  return (a, b) => a + b;
}
