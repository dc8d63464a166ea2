// All statistics of the worker. The hot path adds to handles; outputs read the lists.
import { decisionDurationBounds as durationBounds } from '../../shared/decision-durations.ts';
import type { Log } from '../../shared/log.ts';
import { owned } from '../../shared/owned-text.ts';
import { sanitizeMetricName } from '../../shared/rules/lookup/metric-key.ts';
import type { Counter, Duration, Gauge, Metrics, RuleStats, Tags, Timer } from '../metrics.ts';
import { toTagSuffix } from './metric-name.ts';

/** Receives the observations of one timer, in milliseconds. */
export type TimerListener = (ms: number, times: number) => void;

export interface MetricsRegistry extends Metrics {
  readonly decisionDuration: Histogram;
  storeCallDuration(server: string): Histogram;
  /** The durations of calls by the name of their server. */
  readonly storeCallDurations: ReadonlyMap<string, Histogram>;
  /** In the order of creation; a metric keeps its index and is never removed. A name may be composed at each access. */
  readonly counters: readonly NamedCounter[];
  readonly gauges: readonly NamedGauge[];
  /**
   * Calls `listen` with the name of each present and future timer; the function that it returns receives that timer's
   * observations.
   */
  listenToTimers(listen: (name: string) => TimerListener): void;
  /** Runs the tasks that were passed to `beforeReading`. */
  prepareReading(): void;
  /** From now on the gauge's value is the result of `combine` for the value that was set. */
  combineGauge(name: string, combine: (set: number) => number): void;
}

export interface NamedCounter extends Counter {
  /** Ends with the counter's own tags. */
  readonly name: string;
  /** The name and the counter's own tags separately; undefined without tags. */
  readonly tagged?: TaggedName | undefined;
  readonly origin: CounterOrigin;
  /**
   * Set for the counter of a single limit of a list: the name of the rule's counter, which counts the same hits, and
   * the limit, such as `minute`.
   */
  readonly listed?: ListedName | undefined;
}

export interface ListedName {
  readonly name: string;
  readonly limit: string;
}

export interface TaggedName {
  readonly name: string;
  readonly tags: Tags;
}

/** What a counter was requested with, so that another registry can repeat the request and apply its own bound. */
export type CounterOrigin =
  | { readonly kind: 'name'; readonly name: string; readonly tags?: Tags }
  | { readonly kind: 'domain'; readonly domain: string }
  | {
      readonly kind: 'rule';
      readonly metricKey: string;
      readonly isStatic: boolean;
      readonly listedAs: string | undefined;
      readonly stat: keyof RuleStats;
    };

export interface NamedGauge extends Gauge {
  readonly name: string;
}

export interface RegistryOptions {
  /** Limit of metric keys made from texts of requests (behaviour: bounded-metric-names). */
  readonly runtimeNamesMax: number;
  readonly log: Log;
}

/** The parts of a counter beside its name. */
interface CounterParts {
  readonly domain?: string;
  readonly tags?: Tags | undefined;
}

const ruleRoot = 'ratelimit.service.rate_limit';

const ruleStatNames = {
  totalHits: 'total_hits',
  overLimit: 'over_limit',
  nearLimit: 'near_limit',
  withinLimit: 'within_limit',
  overLimitWithLocalCache: 'over_limit_with_local_cache',
  shadowMode: 'shadow_mode',
  totalNegativeHits: 'total_negative_hits',
} as const satisfies Record<keyof RuleStats, string>;

/**
 * The metric key of hits whose own runtime key exceeds the bound. Has the form of a domain and a key, for receivers
 * that split names.
 */
const foldedMetricKey = '_folded_.runtime_keys';

/** The most servers of the store with their own series: those of a cluster may get new addresses repeatedly. */
export const maxStoreServers = 100;
/** Represents all further servers. */
const otherServers = 'others';

/** How many times a name was folded. */
const foldedCountName = 'ratelimit.service.folded_metric_names';

/**
 * A value in a metric key can be as long as a request; longer names are folded, so that the bound on names is also a
 * bound on memory.
 */
export const maxRuntimeKeyLength = 1024;

export function createRegistry({ runtimeNamesMax, log }: RegistryOptions): MetricsRegistry {
  const counters = new Map<string, CounterCell>();
  const gauges = new Map<string, GaugeCell>();
  const timers = new Map<string, TimerCell>();
  const counterList: NamedCounter[] = [];
  const gaugeList: GaugeCell[] = [];
  const timerListens: ((name: string) => TimerListener)[] = [];
  const tasks: (() => void)[] = [];
  const ruleStats = new Map<string, RuleCells>();
  const unknownDomains = new Map<string, CounterCell>();
  const storeCallDurations = new Map<string, Histogram>();
  let runtimeNameCount = 0;

  const folded = cellsOf(foldedMetricKey, true, undefined);
  const foldedCount = counter(foldedCountName);

  function counter(name: string, own: CounterParts = {}): CounterCell {
    const { domain, tags } = own;
    const bare = sanitizeMetricName(name);
    const clean = tags === undefined ? bare : bare + toTagSuffix(tags);
    const known = counters.get(clean);
    if (known !== undefined) return known;
    const cell = new CounterCell(clean, domain, tags && { name: bare, tags });
    counters.set(clean, cell);
    counterList.push(cell);
    return cell;
  }

  /** Keys that are equal once cleaned share their counters; each key has its own entry. */
  function cellsOf(metricKey: string, isStatic: boolean, listedAs: string | undefined): RuleCells {
    const clean = sanitizeMetricName(metricKey);
    const cells = ruleStats.get(clean) ?? new RuleCells(clean, isStatic, listedAs, counterList);
    ruleStats.set(clean, cells);
    if (clean !== metricKey) ruleStats.set(metricKey, cells);
    return cells;
  }

  /** Whether another name made from a request's text is allowed. */
  function admitRuntimeName(text: string): boolean {
    if (runtimeNameCount < runtimeNamesMax && text.length <= maxRuntimeKeyLength) {
      runtimeNameCount++;
      return true;
    }
    if (foldedCount.value === 0) {
      log.warning(
        `Statistics: names made of values from requests have reached their limit of ${runtimeNamesMax} (RUNTIME_METRIC_NAMES_MAX), or one is longer than ${maxRuntimeKeyLength} characters; such hits are counted below ${ruleRoot}.${foldedMetricKey} from now on`,
      );
    }
    foldedCount.add(1);
    return false;
  }

  function gauge(name: string): GaugeCell {
    const clean = sanitizeMetricName(name);
    let cell = gauges.get(clean);
    if (cell === undefined) {
      cell = new GaugeCell(clean);
      gauges.set(clean, cell);
      gaugeList.push(cell);
    }
    return cell;
  }

  return {
    counter: (name, tags) => counter(name, { tags }),
    gauge,
    decisionDuration: new Histogram(durationBounds),
    storeCallDuration(server) {
      const hasSeries = storeCallDurations.has(server) || storeCallDurations.size < maxStoreServers;
      const name = hasSeries ? server : otherServers;
      const histogram = storeCallDurations.get(name) ?? new Histogram(durationBounds);
      storeCallDurations.set(name, histogram);
      return histogram;
    },
    storeCallDurations,
    timer(name) {
      const clean = sanitizeMetricName(name);
      let cell = timers.get(clean);
      if (cell === undefined) {
        cell = new TimerCell(timerListens.map((listen) => listen(clean)));
        timers.set(clean, cell);
      }
      return cell;
    },
    ruleStats(metricKey, isStatic, listedAs) {
      let stats = ruleStats.get(metricKey);
      if (stats === undefined) {
        if (!isStatic && !admitRuntimeName(metricKey)) {
          // The rule's counter counts the same hits.
          return listedAs === undefined
            ? folded
            : cellsOf(`${foldedMetricKey}.${listedAs}`, true, listedAs);
        }
        stats = cellsOf(isStatic ? metricKey : owned(metricKey), isStatic, listedAs);
      }
      return stats;
    },
    unknownDomain(domain) {
      let cell = unknownDomains.get(domain);
      if (cell === undefined) {
        if (!admitRuntimeName(domain)) return counter(`${ruleRoot}._folded_.domain_not_found`);
        const ownedDomain = owned(domain);
        cell = counter(owned(`${ruleRoot}.${ownedDomain}.domain_not_found`), {
          domain: ownedDomain,
        });
        unknownDomains.set(ownedDomain, cell);
      }
      return cell;
    },
    beforeReading(task) {
      tasks.push(task);
    },
    snapshot() {
      for (const task of tasks) task();
      const values = [...counterList, ...gaugeList].map(
        ({ name, value }) => [name, value] as const,
      );
      return new Map(values.sort(([a], [b]) => (a < b ? -1 : 1)));
    },
    counters: counterList,
    gauges: gaugeList,
    listenToTimers(listen) {
      timerListens.push(listen);
      for (const [name, cell] of timers) cell.listeners.push(listen(name));
    },
    prepareReading() {
      for (const task of tasks) task();
    },
    combineGauge(name, combine) {
      gauge(name).combine = combine;
    },
  };
}

// Classes, because there may be many handles on the hot path: they share methods.

class CounterCell implements NamedCounter {
  readonly name: string;
  readonly tagged: TaggedName | undefined;
  readonly #domain: string | undefined;
  value = 0;
  constructor(name: string, domain: string | undefined, tagged: TaggedName | undefined) {
    this.name = name;
    this.tagged = tagged;
    this.#domain = domain;
  }
  get origin(): CounterOrigin {
    return this.#domain === undefined
      ? { kind: 'name', ...(this.tagged ?? { name: this.name }) }
      : { kind: 'domain', domain: this.#domain };
  }
  add(count: number): void {
    this.value += count;
  }
}

class GaugeCell implements NamedGauge {
  readonly name: string;
  combine: ((set: number) => number) | undefined;
  #set = 0;
  constructor(name: string) {
    this.name = name;
  }
  get value(): number {
    return this.combine === undefined ? this.#set : this.combine(this.#set);
  }
  set(value: number): void {
    this.#set = value;
  }
}

class TimerCell implements Timer {
  readonly listeners: TimerListener[];
  constructor(listeners: TimerListener[]) {
    this.listeners = listeners;
  }
  observe(ms: number, times = 1): void {
    for (const listener of this.listeners) listener(ms, times);
  }
}

/** Counts how many values were at most each of several bounds. */
export class Histogram implements Duration {
  readonly #bounds: Float64Array;
  /** The counts of each bucket, not cumulative. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** `buckets` are ascending upper bounds; a bucket without a bound follows. */
  constructor(buckets: readonly number[]) {
    this.#bounds = Float64Array.of(...buckets, Number.POSITIVE_INFINITY);
    this.#counts = new Float64Array(this.#bounds.length);
  }
  observe(value: number, times = 1): void {
    const bounds = this.#bounds;
    const counts = this.#counts;
    let index = 0;
    while (value > (bounds[index] ?? value)) index++;
    counts[index] = (counts[index] ?? 0) + times;
    this.#sum += value * times;
  }
  get count(): number {
    return this.#counts.reduce((total, count) => total + count, 0);
  }
  get sum(): number {
    return this.#sum;
  }
  /** The counts of each bucket, not cumulative. */
  get counts(): readonly number[] {
    return [...this.#counts];
  }
  /** For each upper bound, how many values are at most this. */
  samples(): readonly { readonly at: number; readonly value: number }[] {
    let below = 0;
    return Array.from(this.#bounds, (at, index) => {
      below += this.#counts[index] ?? 0;
      return { at, value: below };
    });
  }
  /**
   * Returns the counts of the buckets and the sum since the last call, for `add` of a histogram with the same buckets.
   */
  drain(): Float64Array {
    const drained = Float64Array.of(...this.#counts, this.#sum);
    this.#counts.fill(0);
    this.#sum = 0;
    return drained;
  }
  add(drained: Float64Array): void {
    for (const index of this.#counts.keys()) {
      this.#counts[index] = (this.#counts[index] ?? 0) + (drained[index] ?? 0);
    }
    this.#sum += drained[this.#counts.length] ?? 0;
  }
}

/** A counter of a rule. Its name is not stored, since it would be most of its memory. */
class RuleCounterCell implements NamedCounter {
  readonly #rule: RuleCells;
  readonly #stat: keyof RuleStats;
  value = 0;
  constructor(rule: RuleCells, stat: keyof RuleStats) {
    this.#rule = rule;
    this.#stat = stat;
  }
  get name(): string {
    return `${ruleRoot}.${this.#rule.metricKey}.${ruleStatNames[this.#stat]}`;
  }
  get origin(): CounterOrigin {
    const { metricKey, isStatic, listedAs } = this.#rule;
    return { kind: 'rule', metricKey, isStatic, listedAs, stat: this.#stat };
  }
  get listed(): ListedName | undefined {
    const { metricKey, listedAs } = this.#rule;
    if (listedAs === undefined) return undefined;
    const rule = metricKey.slice(0, -listedAs.length - 1);
    return { name: `${ruleRoot}.${rule}.${ruleStatNames[this.#stat]}`, limit: listedAs };
  }
  add(count: number): void {
    this.value += count;
  }
}

/** Creates each counter on first use: most rules need two or three of the seven. */
class RuleCells implements RuleStats {
  readonly metricKey: string;
  readonly isStatic: boolean;
  readonly listedAs: string | undefined;
  readonly #list: NamedCounter[];
  #totalHits: Counter | undefined;
  #overLimit: Counter | undefined;
  #nearLimit: Counter | undefined;
  #withinLimit: Counter | undefined;
  #overLimitWithLocalCache: Counter | undefined;
  #shadowMode: Counter | undefined;
  #totalNegativeHits: Counter | undefined;

  /** `metricKey` is clean; new counters are added to `list`. */
  constructor(
    metricKey: string,
    isStatic: boolean,
    listedAs: string | undefined,
    list: NamedCounter[],
  ) {
    this.metricKey = metricKey;
    this.isStatic = isStatic;
    this.listedAs = listedAs;
    this.#list = list;
  }
  #add(stat: keyof RuleStats): Counter {
    const cell = new RuleCounterCell(this, stat);
    this.#list.push(cell);
    return cell;
  }
  get totalHits(): Counter {
    this.#totalHits ??= this.#add('totalHits');
    return this.#totalHits;
  }
  get overLimit(): Counter {
    this.#overLimit ??= this.#add('overLimit');
    return this.#overLimit;
  }
  get nearLimit(): Counter {
    this.#nearLimit ??= this.#add('nearLimit');
    return this.#nearLimit;
  }
  get withinLimit(): Counter {
    this.#withinLimit ??= this.#add('withinLimit');
    return this.#withinLimit;
  }
  get overLimitWithLocalCache(): Counter {
    this.#overLimitWithLocalCache ??= this.#add('overLimitWithLocalCache');
    return this.#overLimitWithLocalCache;
  }
  get shadowMode(): Counter {
    this.#shadowMode ??= this.#add('shadowMode');
    return this.#shadowMode;
  }
  get totalNegativeHits(): Counter {
    this.#totalNegativeHits ??= this.#add('totalNegativeHits');
    return this.#totalNegativeHits;
  }
}
