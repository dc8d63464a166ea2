// Makes the reports of the link from the worker's statistics.

import { createHash } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import { sanitizeMetricName } from '../../shared/rules/lookup/metric-key.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import type {
  DomainFailureMessage,
  EntryMessage,
  QuotaMessage,
  ReportMessage,
  RuleTrafficMessage,
  StoreMessage,
  TotalsMessage,
} from '../../shared/wire/fleet-messages.ts';
import type { UnmatchedSample } from '../decision/unmatched-sampler.ts';
import type { CounterOrigin, MetricsRegistry } from '../metrics/registry.ts';
import { readStoreCalls } from '../metrics/store-calls.ts';
import type { LimitedValues } from './limited-values.ts';

/** How values of requests are reported (CONFIG_FLEET_LINK_VALUES). */
export type ReportedValues = 'none' | 'hashed' | 'plain';

export interface LinkReportDeps {
  readonly metrics: MetricsRegistry;
  readonly limited: LimitedValues;
  readonly values: ReportedValues;
  /** One of redis, memcached and memory. */
  readonly storeKind: string;
  /** Version of the rules in force. */
  readonly version: () => string;
  readonly clock: Clock;
}

interface RuleTraffic extends RuleTrafficMessage {
  hits: number;
  overLimit: number;
  nearLimit: number;
}

const maxRules = 2_000;
const maxDomains = 100;
const maxUnmatched = 20;
const hashLength = 16;

/**
 * Counters of requests without a matching rule: one for each domain with rules, and one for all other domains together.
 */
const noMatchNames =
  /^ratelimit\.service\.(?:no_match\.(.+)|rate_limit\.(_folded_)\.domain_not_found)$/s;

const traffic = { totalHits: 'hits', overLimit: 'overLimit', nearLimit: 'nearLimit' } as const;

export class LinkReports {
  readonly #deps: LinkReportDeps;
  readonly #storeErrors;
  readonly #otherErrors;
  /** The origin and the last reported value of each counter, by its index. */
  readonly #origins: CounterOrigin[] = [];
  readonly #sent: number[] = [];
  #lastMs;
  #unmatched: UnmatchedSample[] = [];
  #nearLimitHits = 0;
  #noMatch = 0;
  #assignments = 0;
  #withoutStore = 0;
  readonly #outage = createStoreOutage();

  constructor(deps: LinkReportDeps) {
    this.#deps = deps;
    this.#storeErrors = deps.metrics.counter(
      'ratelimit.service.call.should_rate_limit.redis_error',
    );
    this.#otherErrors = deps.metrics.counter(
      'ratelimit.service.call.should_rate_limit.service_error',
    );
    this.#lastMs = deps.clock.monotonicMs();
  }

  #drainRules(): Pick<ReportMessage, 'rules' | 'otherRules' | 'otherRuleCount' | 'failures'> {
    const unmatchedByDomain = new Map<string, number>();
    const byRule = new Map<string, RuleTraffic>();
    const listed = new Set<RuleTraffic>();
    // The sum of those whose names contain values of requests.
    const unnamed = newTraffic('');
    let unnamedCount = 0;
    const { counters } = this.#deps.metrics;
    for (let index = 0; index < counters.length; index++) {
      const counter = counters[index];
      if (counter === undefined) break;
      const { value } = counter;
      const more = value - (this.#sent[index] ?? 0);
      if (more === 0 && index < this.#sent.length) continue;
      this.#sent[index] = value;
      this.#origins[index] ??= counter.origin;
      const origin = this.#origins[index] as CounterOrigin;
      const unmatchedOf = toUnmatchedDomain(origin);
      if (unmatchedOf !== undefined) {
        this.#noMatch += more;
        // The name of a domain without rules comes from a request.
        if (origin.kind === 'name' || this.#deps.values !== 'none') {
          unmatchedByDomain.set(unmatchedOf, (unmatchedByDomain.get(unmatchedOf) ?? 0) + more);
        }
      }
      if (origin.kind === 'name') {
        if (origin.name.startsWith('ratelimit.failure_mode.')) this.#withoutStore += more;
        if (origin.name === 'ratelimit.quota.assignments') this.#assignments += more;
        continue;
      }
      const field =
        origin.kind === 'rule' ? traffic[origin.stat as keyof typeof traffic] : undefined;
      if (origin.kind !== 'rule' || field === undefined || more === 0) continue;
      // The rule itself counts the same hits.
      const isListed = origin.listedAs !== undefined;
      if (field === 'nearLimit' && !isListed) this.#nearLimitHits += more;
      if (!origin.isStatic && this.#deps.values !== 'plain') {
        if (isListed) continue;
        unnamed[field] += more;
        if (field === 'hits') unnamedCount++;
        continue;
      }
      let rule = byRule.get(origin.metricKey);
      if (rule === undefined) {
        rule = newTraffic(origin.metricKey);
        byRule.set(origin.metricKey, rule);
        if (isListed) listed.add(rule);
      }
      rule[field] += more;
    }
    const rules = [...byRule.values()];
    if (rules.length > maxRules) rules.sort((a, b) => b.hits - a.hits);
    const others = rules.splice(maxRules);
    for (const other of others) {
      if (listed.has(other)) continue;
      const { hits, overLimit, nearLimit } = other;
      unnamed.hits += hits;
      unnamed.overLimit += overLimit;
      unnamed.nearLimit += nearLimit;
    }
    const otherRuleCount = others.length + unnamedCount;
    const domains = toFailures(this.#deps.limited.drainFailures(), unmatchedByDomain);
    return { rules, otherRules: unnamed, otherRuleCount, failures: { domains } };
  }

  #readTotals(): TotalsMessage {
    const { count, counts } = this.#deps.metrics.decisionDuration;
    const errors = this.#storeErrors.value + this.#otherErrors.value;
    return {
      decisions: count,
      overLimit: this.#deps.limited.requests,
      errors,
      nearLimitHits: this.#nearLimitHits,
      noMatch: this.#noMatch,
      durations: counts,
      withoutStore: this.#withoutStore,
      storeDurations: readStoreCalls(this.#deps.metrics.storeCallDurations).counts,
    };
  }

  #drainQuota(): QuotaMessage | undefined {
    const gauge = (name: string) =>
      this.#deps.metrics.gauges.find((each) => each.name === name)?.value ?? 0;
    const streams = gauge('ratelimit.quota.streams');
    const quota = {
      streams,
      buckets: gauge('ratelimit.quota.buckets'),
      assignments: this.#assignments,
    };
    this.#assignments = 0;
    return streams === 0 ? undefined : quota;
  }

  #readStore(nowMs: number): StoreMessage {
    let serversAway = 0;
    let clockOffsetMs = 0;
    for (const { name, value } of this.#deps.metrics.gauges) {
      if (name.endsWith('.breaker.open')) serversAway += value;
      if (name.endsWith('.clock_offset_ms') && Math.abs(value) > Math.abs(clockOffsetMs)) {
        clockOffsetMs = value;
      }
    }
    const unreachableSeconds = this.#outage.note(nowMs, serversAway, this.#withoutStore);
    return { kind: this.#deps.storeKind, serversAway, clockOffsetMs, unreachableSeconds };
  }

  #toMessage({ key, value }: Entry): EntryMessage {
    return { key, value: this.#deps.values === 'plain' ? value : hash(value) };
  }

  /** The changes since the last report. */
  drain(): ReportMessage {
    this.#deps.metrics.prepareReading();
    const nowMs = this.#deps.clock.monotonicMs();
    const seconds = (nowMs - this.#lastMs) / 1000;
    this.#lastMs = nowMs;
    const rules = this.#drainRules();
    const { startMs, ...period } = this.#deps.limited.drainPeriod();
    const samples = this.#deps.values === 'none' ? [] : this.#unmatched;
    this.#unmatched = [];
    return {
      version: this.#deps.version(),
      totals: this.#readTotals(),
      seconds,
      ...rules,
      limited: {
        periodStart: Math.round(startMs),
        seconds: period.seconds,
        unlistedAtMost: period.unlistedAtMost,
        values: period.values.map(({ item, count, error }) => ({
          domain: item.domain,
          rule: item.metricKeyIsStatic || this.#deps.values === 'plain' ? item.metricKey : '',
          entries: item.entries.map((argument0) => this.#toMessage(argument0)),
          count,
          error,
        })),
      },
      unmatched: samples.map(({ domain, entries }) => ({
        domain,
        entries: entries.map((argument0) => this.#toMessage(argument0)),
      })),
      store: this.#readStore(nowMs),
      quota: this.#drainQuota() ?? null,
    };
  }

  /** Stores the sample for the next report; of too many samples the newest ones are retained. */
  noteUnmatched(sample: UnmatchedSample): void {
    if (this.#deps.values === 'none') return;
    if (this.#unmatched.length >= maxUnmatched) this.#unmatched.shift();
    this.#unmatched.push(sample);
  }
}

/**
 * Since when the store cannot be reached, as far as the reports show it: a server is unreachable, or requests failed in
 * two consecutive intervals. A few failures during its recovery are not an outage.
 */
function createStoreOutage() {
  let sinceMs: number | undefined;
  let lastMs: number | undefined;
  let lastFailures = 0;
  let hadFailures = false;
  return {
    /**
     * `failures` is the number of all requests so far that were answered without the store. Returns 0 while the store
     * can be reached.
     */
    note(nowMs: number, serversAway: number, failures: number): number {
      const hasFailures = failures > lastFailures;
      const isAway = serversAway > 0 || (hasFailures && hadFailures);
      sinceMs = isAway ? (sinceMs ?? lastMs ?? nowMs) : undefined;
      [lastMs, lastFailures, hadFailures] = [nowMs, failures, hasFailures];
      // On the wire, 0 means that the store can be reached.
      return sinceMs === undefined ? 0 : Math.max(0.001, (nowMs - sinceMs) / 1000);
    },
  };
}

/** The domain of a counter of descriptors without a rule; undefined for other counters. */
function toUnmatchedDomain(origin: CounterOrigin): string | undefined {
  if (origin.kind === 'domain') return sanitizeMetricName(origin.domain);
  if (origin.kind !== 'name') return undefined;
  const [, domain, folded] = noMatchNames.exec(origin.name) ?? [];
  return domain ?? folded;
}

function toFailures(
  errors: ReadonlyMap<string, number>,
  noMatch: ReadonlyMap<string, number>,
): readonly DomainFailureMessage[] {
  const byDomain = new Map<string, { domain: string; errors: number; noMatch: number }>();
  const of = (domain: string) => {
    const known = byDomain.get(domain) ?? { domain, errors: 0, noMatch: 0 };
    byDomain.set(domain, known);
    return known;
  };
  for (const [domain, count] of noMatch) of(domain).noMatch += count;
  for (const [domain, count] of errors) of(sanitizeMetricName(domain)).errors += count;
  const weightOf = (each: DomainFailureMessage) => each.errors + each.noMatch;
  const sorted = [...byDomain.values()].sort((a, b) => weightOf(b) - weightOf(a));
  return sorted.slice(0, maxDomains);
}

function newTraffic(rule: string): RuleTraffic {
  return { rule, hits: 0, overLimit: 0, nearLimit: 0 };
}

function hash(value: string): string {
  return createHash('sha256').update(value).digest('hex').slice(0, hashLength);
}
