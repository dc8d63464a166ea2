// Makes families of series from the registry's metrics for pulling: mapped, labelled, and summed up when they map to
// the same series. exposition.ts writes them.
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Tags } from '../metrics.ts';
import { findOwn } from './catalogue.ts';
import {
  createMetricMapper,
  defaultHelp,
  type Mapping,
  type MetricKind,
  type ObserverOptions,
} from './metric-mapping.ts';
import { toTagEntries } from './metric-name.ts';
import { createOwnFamilies } from './own-families.ts';
import type { ListedName, MetricsRegistry } from './registry.ts';
import {
  type Family,
  type FamilyType,
  GaugeSeries,
  LastingSumSeries,
  ScaledSource,
  SeriesList,
  SumSeries,
  TimedSeries,
  type ValueSource,
} from './series.ts';
import { createTimerSeries } from './timer-series.ts';

export interface PullSeries {
  /** Adds at most `limit` new metrics of the registry; false when none is left. */
  append(limit: number): boolean;
  /** Updates families outside the registry. */
  refresh(): Promise<void>;
  /** The families in the order of their appearance; the map may grow during iteration. */
  readonly families: ReadonlyMap<string, Family>;
}

export interface PullSeriesDeps {
  readonly registry: MetricsRegistry;
  readonly mapping: Mapping;
  /** Labels of every series (behaviour: extra-tags). */
  readonly tags: Tags;
  readonly clock: Clock;
  readonly log: Log;
}

interface Target {
  readonly family: Family;
  readonly labels: string;
  readonly scale: number;
  readonly ttlMs: number;
  readonly observer: ObserverOptions;
}

/** Subscribes to the timers immediately. */
export function createPullSeries(deps: PullSeriesDeps): PullSeries {
  const { registry, mapping, clock, log } = deps;
  const tags = toTagEntries(deps.tags).map(([key, value]) => [toMetricName(key), value] as const);
  const map = createMetricMapper(mapping);
  const own = createOwnFamilies({
    decisionDuration: registry.decisionDuration,
    storeCallDurations: registry.storeCallDurations,
    toLabels: (own) => toLabelText([...tags, ...Object.entries(own)]),
    clock,
  });
  const families = new Map(own.families.map((family) => [family.name, family]));
  let writtenCounters = 0;
  let writtenGauges = 0;
  let lastLabels = '';
  let isConflictLogged = false;

  /** Undefined for metrics that are not exposed. */
  function locate(metric: string, kind: MetricKind, limit?: string): Target | undefined {
    const mapped = map(metric, kind);
    const rule = mapped?.rule;
    if (rule?.action === 'drop' || mapped?.name === '') return undefined;
    const { observer, ttlMs } = rule ?? mapping.unmapped;
    const type = kind === 'observer' ? observer.type : kind;
    const name = toMetricName(mapped?.name ?? metric);
    let family = families.get(name);
    if (family === undefined) {
      const { help = defaultHelp } = rule ?? {};
      const shown = help === defaultHelp ? (findOwn(metric)?.meaning ?? help) : help;
      family = { name, type, help: shown, series: new SeriesList() };
      families.set(name, family);
    }
    if (family.type !== type) {
      logConflict(metric, family, type);
      return undefined;
    }
    const own = [...(mapped?.labels ?? []), ...toLimitLabel(limit)];
    const labels = toLabelText(rule?.honorLabels ? [...own, ...tags] : [...tags, ...own]);
    // The counters of a rule are consecutive: they share one string.
    if (labels !== lastLabels) lastLabels = labels;
    return { family, labels: lastLabels, scale: rule?.scale ?? 1, ttlMs, observer };
  }

  function logConflict(metric: string, family: Family, type: FamilyType): void {
    if (isConflictLogged) return;
    isConflictLogged = true;
    log.warning(
      `Statistics: ${metric} cannot be pulled: its name there, ${family.name}, is a ${family.type} and not a ${type}; change the mapping file. Further ones are not logged`,
    );
  }

  function appendValue(
    name: string,
    kind: 'counter' | 'gauge',
    source: ValueSource,
    listed?: ListedName,
  ): void {
    const isLabelled = mapping.labelsLimits && listed !== undefined && map(listed.name, kind);
    const metric = isLabelled ? listed.name : name;
    const target = locate(metric, kind, isLabelled ? listed.limit : undefined);
    if (target === undefined) return;
    const { series } = target.family;
    const scaled = target.scale === 1 ? source : new ScaledSource(source, target.scale);
    const known = series.get(target.labels);
    if (known instanceof SumSeries) known.add(scaled);
    else if (known === undefined) {
      const isLasting = target.ttlMs === 0 && findOwn(metric) !== undefined;
      const Sum = isLasting ? LastingSumSeries : SumSeries;
      series.add(
        kind === 'gauge'
          ? new GaugeSeries(target.labels, scaled)
          : new Sum(target.labels, scaled, target.ttlMs),
      );
    }
  }

  registry.listenToTimers((metric) => {
    const target = locate(metric, 'observer');
    if (target === undefined) return () => {};
    const { family, labels, scale, observer, ttlMs } = target;
    const known = family.series.get(labels);
    if (known instanceof TimedSeries) return (ms, times) => known.observe(ms * scale, times);
    const create = () => createTimerSeries(observer, () => clock.monotonicMs());
    const timed = new TimedSeries(labels, create, ttlMs);
    family.series.add(timed);
    return (ms, times) => timed.observe(ms * scale, times);
  });

  return {
    append(limit) {
      const { counters, gauges } = registry;
      let left = limit;
      for (; left > 0 && writtenGauges < gauges.length; left--) {
        const gauge = gauges[writtenGauges++];
        if (gauge !== undefined) appendValue(gauge.name, 'gauge', gauge);
      }
      for (; left > 0 && writtenCounters < counters.length; left--) {
        const counter = counters[writtenCounters++];
        if (counter !== undefined) appendValue(counter.name, 'counter', counter, counter.listed);
      }
      return left === 0;
    },
    refresh: own.refresh,
    families,
  };
}

function toLimitLabel(limit: string | undefined): (readonly [name: string, value: string])[] {
  return limit === undefined ? [] : [['limit', limit]];
}

/** Allowed characters in the name of a metric or label (behaviour: pull-mapping). */
function toMetricName(text: string): string {
  return text.replace(/[^A-Za-z0-9_]/g, '_').replace(/^(?=\d)/, '_');
}

/** The last of labels with equal names wins. */
function toLabelText(labels: readonly (readonly [name: string, value: string])[]): string {
  return [...new Map(labels)].map(([name, value]) => `${name}="${escapeLabel(value)}"`).join(',');
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}
