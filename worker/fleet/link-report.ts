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
export type ToldValues = 'none' | 'hashed' | 'plain';

export interface LinkReportDeps {
  readonly metrics: MetricsRegistry;
  readonly limited: LimitedValues;
  readonly values: ToldValues;
  /** redis, memcached or memory. */
  readonly storeKind: string;
  /** Version of the rules in force. */
  readonly version: () => string;
  readonly clock: Clock;
}

export interface LinkReports {
  /** The changes since the last report. */
  take(): ReportMessage;
  /** Keeps the sample for the next report; of too many samples the last ones are kept. */
  noteUnmatched(sample: UnmatchedSample): void;
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

/** Counters of requests without a matching rule: of domains with rules, and of all other domains together. */
const noMatchNames =
  /^ratelimit\.service\.(?:no_match\.(.+)|rate_limit\.(_folded_)\.domain_not_found)$/s;

const traffic = { totalHits: 'hits', overLimit: 'overLimit', nearLimit: 'nearLimit' } as const;

export function createLinkReports(deps: LinkReportDeps): LinkReports {
  const { metrics, limited, values, storeKind, version, clock } = deps;
  const storeErrors = metrics.counter('ratelimit.service.call.should_rate_limit.redis_error');
  const otherErrors = metrics.counter('ratelimit.service.call.should_rate_limit.service_error');
  /** The origin and the reported part of each counter, by its index. */
  const origins: CounterOrigin[] = [];
  const told: number[] = [];
  let lastMs = clock.monotonicMs();
  let unmatched: UnmatchedSample[] = [];
  let nearLimitHits = 0;
  let noMatch = 0;
  let assignments = 0;
  let withoutStore = 0;
  const outage = createStoreOutage();

  function takeRules(): Pick<
    ReportMessage,
    'rules' | 'otherRules' | 'otherRuleCount' | 'failures'
  > {
    const unmatchedByDomain = new Map<string, number>();
    const byRule = new Map<string, RuleTraffic>();
    const listed = new Set<RuleTraffic>();
    // Their names contain values of requests.
    const unnamed = newTraffic('');
    let unnamedCount = 0;
    const { counters } = metrics;
    for (let index = 0; index < counters.length; index++) {
      const counter = counters[index];
      if (counter === undefined) break;
      const { value } = counter;
      const more = value - (told[index] ?? 0);
      if (more === 0 && index < told.length) continue;
      told[index] = value;
      origins[index] ??= counter.origin;
      const origin = origins[index] as CounterOrigin;
      const unmatchedOf = toUnmatchedDomain(origin);
      if (unmatchedOf !== undefined) {
        noMatch += more;
        // The name of a domain without rules is a text of a request.
        if (origin.kind === 'name' || values !== 'none') {
          unmatchedByDomain.set(unmatchedOf, (unmatchedByDomain.get(unmatchedOf) ?? 0) + more);
        }
      }
      if (origin.kind === 'name') {
        if (origin.name.startsWith('ratelimit.failure_mode.')) withoutStore += more;
        if (origin.name === 'ratelimit.quota.assignments') assignments += more;
        continue;
      }
      const field =
        origin.kind === 'rule' ? traffic[origin.stat as keyof typeof traffic] : undefined;
      if (origin.kind !== 'rule' || field === undefined || more === 0) continue;
      // The rule counts the same hits.
      const isListed = origin.listedAs !== undefined;
      if (field === 'nearLimit' && !isListed) nearLimitHits += more;
      if (!origin.isStatic && values !== 'plain') {
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
    const domains = toFailures(limited.takeFailures(), unmatchedByDomain);
    return { rules, otherRules: unnamed, otherRuleCount, failures: { domains } };
  }

  function readTotals(): TotalsMessage {
    const { count, counts } = metrics.decisionDuration;
    const errors = storeErrors.value + otherErrors.value;
    return {
      decisions: count,
      overLimit: limited.requests,
      errors,
      nearLimitHits,
      noMatch,
      durations: counts,
      withoutStore,
      storeDurations: readStoreCalls(metrics.storeCallDurations).counts,
    };
  }

  function takeQuota(): QuotaMessage | undefined {
    const gauge = (name: string) => metrics.gauges.find((each) => each.name === name)?.value ?? 0;
    const streams = gauge('ratelimit.quota.streams');
    const quota = { streams, buckets: gauge('ratelimit.quota.buckets'), assignments };
    assignments = 0;
    return streams === 0 ? undefined : quota;
  }

  function readStore(nowMs: number): StoreMessage {
    let serversAway = 0;
    let clockOffsetMs = 0;
    for (const { name, value } of metrics.gauges) {
      if (name.endsWith('.breaker.open')) serversAway += value;
      if (name.endsWith('.clock_offset_ms') && Math.abs(value) > Math.abs(clockOffsetMs)) {
        clockOffsetMs = value;
      }
    }
    const unreachableSeconds = outage.note(nowMs, serversAway, withoutStore);
    return { kind: storeKind, serversAway, clockOffsetMs, unreachableSeconds };
  }

  function tell({ key, value }: Entry): EntryMessage {
    return { key, value: values === 'plain' ? value : hash(value) };
  }

  return {
    take() {
      metrics.prepareReading();
      const nowMs = clock.monotonicMs();
      const seconds = (nowMs - lastMs) / 1000;
      lastMs = nowMs;
      const rules = takeRules();
      const { startMs, ...period } = limited.takePeriod();
      const samples = values === 'none' ? [] : unmatched;
      unmatched = [];
      return {
        version: version(),
        totals: readTotals(),
        seconds,
        ...rules,
        limited: {
          periodStart: Math.round(startMs),
          seconds: period.seconds,
          unlistedAtMost: period.unlistedAtMost,
          values: period.values.map(({ item, count, error }) => ({
            domain: item.domain,
            rule: item.metricKeyIsStatic || values === 'plain' ? item.metricKey : '',
            entries: item.entries.map(tell),
            count,
            error,
          })),
        },
        unmatched: samples.map(({ domain, entries }) => ({ domain, entries: entries.map(tell) })),
        store: readStore(nowMs),
        quota: takeQuota() ?? null,
      };
    },
    noteUnmatched(sample) {
      if (values === 'none') return;
      if (unmatched.length >= maxUnmatched) unmatched.shift();
      unmatched.push(sample);
    },
  };
}

/**
 * Since when the store is not reached, as far as the reports show it: a server is away, or requests failed in two
 * intervals in a row. A few that failed while it recovers are no outage.
 */
function createStoreOutage() {
  let sinceMs: number | undefined;
  let lastMs: number | undefined;
  let lastFailures = 0;
  let hadFailures = false;
  return {
    /** `failures`: all requests so far that were answered without the store. The result is 0 while it is reached. */
    note(nowMs: number, serversAway: number, failures: number): number {
      const hasFailures = failures > lastFailures;
      const isAway = serversAway > 0 || (hasFailures && hadFailures);
      sinceMs = isAway ? (sinceMs ?? lastMs ?? nowMs) : undefined;
      [lastMs, lastFailures, hadFailures] = [nowMs, failures, hasFailures];
      // A wire value of 0 means that the store is reached.
      return sinceMs === undefined ? 0 : Math.max(0.001, (nowMs - sinceMs) / 1000);
    },
  };
}

/** Undefined for what is no counter of descriptors without a rule. */
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
