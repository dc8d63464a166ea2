// Counts the descriptors that no rule matches, and samples a few for operators (worker/unmatched.ts), since unmatched
// traffic passes silently. A matched descriptor costs nothing here, another one an increment.
import { owned } from '../../shared/owned-text.ts';
import type { DomainRules, Entry } from '../../shared/rules/rule.ts';
import type { Counter, Metrics } from '../metrics.ts';
import type { RateLimitRequest } from './message.ts';

/** A copy of the request's texts, which does not retain the request in memory. */
export interface UnmatchedSample {
  readonly domain: string;
  readonly entries: readonly Entry[];
  /** Whether keys, values or entries were cut because they are too long or too many. */
  readonly isCut: boolean;
  /** Wall time. */
  readonly atSeconds: number;
}

export interface UnmatchedSampler {
  /** Call it when no limit was found for a descriptor of a domain that has rules. */
  noMatch(rules: DomainRules, entries: readonly Entry[], nowSeconds: number): void;
  /** Call it when no rules were found for a whole request; other statistics already count these. */
  unknownDomain(request: RateLimitRequest, nowSeconds: number): void;
}

/** Samples per second; further ones are only counted. */
export const maxSamplesPerSecond = 20;
const maxEntries = 16;
const maxLength = 128;

export function noMatchCounter(metrics: Metrics, domain: string): Counter {
  // Not below `rate_limit.`, where each name is a rule or a domain without rules.
  return metrics.counter(`ratelimit.service.no_match.${domain}`);
}

/** `onSample` is called with each sample immediately. */
export function createUnmatchedSampler(
  metrics: Metrics,
  onSample: (sample: UnmatchedSample) => void,
): UnmatchedSampler {
  /** Counters of domains that have rules or had some. */
  const counters = new Map<string, Counter>();
  let second = 0;
  let sampled = 0;

  function sample(domain: string, entries: readonly Entry[], nowSeconds: number): void {
    if (nowSeconds !== second) {
      second = nowSeconds;
      sampled = 0;
    }
    if (sampled >= maxSamplesPerSecond) return;
    sampled++;
    onSample(toSample(domain, entries, nowSeconds));
  }

  return {
    noMatch(rules, entries, nowSeconds) {
      if (rules.exempts(entries)) return;
      let counter = counters.get(rules.domain);
      if (counter === undefined) {
        counter = noMatchCounter(metrics, rules.domain);
        counters.set(rules.domain, counter);
      }
      counter.add(1);
      sample(rules.domain, entries, nowSeconds);
    },
    unknownDomain({ domain, descriptors }, nowSeconds) {
      sample(domain, descriptors[0]?.entries ?? [], nowSeconds);
    },
  };
}

function toSample(domain: string, entries: readonly Entry[], atSeconds: number): UnmatchedSample {
  const isLong = ({ length }: string) => length > maxLength;
  return {
    domain: copy(domain),
    entries: entries
      .slice(0, maxEntries)
      .map(({ key, value }) => ({ key: copy(key), value: copy(value) })),
    isCut:
      isLong(domain) ||
      entries.length > maxEntries ||
      entries.some(({ key, value }) => isLong(key) || isLong(value)),
    atSeconds,
  };
}

function copy(text: string): string {
  return owned(text.slice(0, maxLength));
}
