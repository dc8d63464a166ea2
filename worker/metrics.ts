// The interface of the statistics for the rest of the worker: handles by name, which count. Names and meanings are the
// reference's (behaviour: statistic-names), without the tags that every metric has.

/** EXTRA_TAGS: key to value. */
export type Tags = Readonly<Record<string, string>>;

export interface Counter {
  add(count: number): void;
  /** The total since the start. */
  readonly value: number;
}

export interface Gauge {
  set(value: number): void;
  readonly value: number;
}

export interface Timer {
  /** Adds a duration in milliseconds, once or several times. */
  observe(ms: number, times?: number): void;
}

export interface Duration {
  /** One observation in seconds. */
  observe(seconds: number): void;
}

/** The counters of one metric key, below `ratelimit.service.rate_limit.<metric key>.`. */
export interface RuleStats {
  readonly totalHits: Counter;
  readonly overLimit: Counter;
  readonly nearLimit: Counter;
  readonly withinLimit: Counter;
  readonly overLimitWithLocalCache: Counter;
  readonly shadowMode: Counter;
  readonly totalNegativeHits: Counter;
}

export interface Metrics {
  /** The counter with this full name and these tags; always the same handle for the same ones. */
  counter(name: string, tags?: Tags): Counter;
  gauge(name: string): Gauge;
  timer(name: string): Timer;
  /** The duration of decisions, finer than the milliseconds of a timer; only pulled. */
  readonly decisionDuration: Duration;
  /**
   * How long a server of the store takes for commands sent together; only pulled. `server` is its address, without
   * credentials. Bounded in number: further servers share one (behaviour: bounded-metric-names).
   */
  storeCallDuration(server: string): Duration;
  /**
   * The handles of a metric key. Runtime keys (`isStatic` false) are bounded in number: further ones are counted under
   * one folded name (behaviour: bounded-metric-names). `listedAs` is the last segment of the metric key for a single
   * limit of a list.
   */
  ruleStats(metricKey: string, isStatic: boolean, listedAs?: string): RuleStats;
  /**
   * Counts the descriptors of an unknown domain, `ratelimit.service.rate_limit.<domain>.domain_not_found`; bounded like
   * runtime keys.
   */
  unknownDomain(domain: string): Counter;
  /** Runs before each flush and before each reading of the values, to set gauges. */
  beforeReading(task: () => void): void;
  /** Current values by name, sorted, for the debug port. */
  snapshot(): Map<string, number>;
}
