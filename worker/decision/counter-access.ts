// Reads and resets the counters of given descriptors, for operators: the rules in force determine the counters, and the
// same code as for decisions forms their keys (behaviour: counters-on-request).

import type { Clock } from '../../shared/clock.ts';
import { createWindows, type WindowOptions } from '../../shared/counting/counter-key.ts';
import { didYouMean, nearestWord } from '../../shared/nearest-word.ts';
import { toWindowName } from '../../shared/rules/limit-shape.ts';
import type { Entry, Match } from '../../shared/rules/rule.ts';
import type { Leases } from '../counters/leases.ts';
import type { CounterStore } from '../counters/store.ts';
import type { RuleStats } from '../metrics.ts';
import type { RuleHit } from './hit.ts';
import { createPrepareHits } from './hit.ts';
import type { RateLimitRequest } from './message.ts';
import type { OverLimitCache } from './over-limit-cache.ts';
import type { CurrentRules } from './should-rate-limit.ts';

export interface CountersAsked {
  readonly domain: string;
  readonly descriptors: readonly (readonly Entry[])[];
}

/** One state for each limit of each descriptor. */
export type CounterState =
  /** Why the descriptor has no counter; human-readable. */
  | { readonly descriptor: number; readonly problem: string }
  | {
      readonly descriptor: number;
      readonly problem?: undefined;
      /** The metric key. */
      readonly rule: string;
      readonly used: number;
      readonly limit: number;
      /** A name such as `minute` or `5_minute`. */
      readonly window: string;
      readonly secondsUntilReset: number;
      /** Whether the limit never refuses. */
      readonly shadowMode: boolean;
    };

export type CountersAnswer =
  | { readonly ok: true; readonly counters: readonly CounterState[] }
  /** Why there is no answer; human-readable. */
  | { readonly ok: false; readonly problem: string };

export interface CounterAccess {
  /** Never rejects; answers within `timeoutMs`. With `reset`, the counters are first set to 0. */
  ask(asked: CountersAsked, reset: boolean, timeoutMs: number): Promise<CountersAnswer>;
  /** Drops all that is cached of these counters, since another process has reset them. */
  forget(asked: CountersAsked): void;
}

export interface CounterAccessDeps {
  readonly rules: CurrentRules;
  readonly store: CounterStore;
  readonly leases: Pick<Leases, 'forget'> | undefined;
  readonly overLimitCache: OverLimitCache | undefined;
  readonly clock: Clock;
  readonly options: WindowOptions & {
    readonly cacheKeyPrefix: string;
    readonly storesLongKeys: boolean;
    /** Shadow mode of the whole worker. */
    readonly shadowMode: boolean;
  };
}

/** More than any counter, and exact as a double. */
const allHits = 2 ** 52;
const nothing = { add() {}, value: 0 };
/** Statistics for hits that are not traffic, or are counted elsewhere. */
export const noStats: RuleStats = {
  totalHits: nothing,
  overLimit: nothing,
  nearLimit: nothing,
  withinLimit: nothing,
  overLimitWithLocalCache: nothing,
  shadowMode: nothing,
  totalNegativeHits: nothing,
};

export function createCounterAccess(deps: CounterAccessDeps): CounterAccess {
  const { rules, store, leases, overLimitCache, clock, options } = deps;
  const { prepare } = createPrepareHits({
    overLimitCache,
    metrics: { ruleStats: () => noStats },
    trail: undefined,
    windowAt: createWindows(options),
    cacheKeyPrefix: options.cacheKeyPrefix,
    storesLongKeys: options.storesLongKeys,
    calendarMonths: options.calendarMonths,
  });
  const nowSeconds = () => Math.floor(clock.wallMs() / 1000);

  /** Refunds: they create no missing counter, and a counter stops at 0. */
  function toHits({ domain, descriptors }: CountersAsked, hits: number) {
    const domainRules = rules.current?.domains.get(domain);
    const request: RateLimitRequest = {
      domain,
      hitsAddend: 0,
      descriptors: descriptors.map((entries) => ({
        entries,
        limit: undefined,
        hitsAddend: hits,
        isNegativeHits: true,
      })),
    };
    const found: RuleHit[] = [];
    const problems: CounterState[] = [];
    descriptors.forEach((entries, descriptor) => {
      const match = domainRules?.match(entries);
      const problem = findProblem(match, domain, entries);
      if (match === undefined || problem !== undefined) {
        problems.push({ descriptor, problem: problem ?? '' });
        return;
      }
      const receivedMs = clock.monotonicMs();
      for (const part of match.parts ?? [match]) {
        found.push(prepare({ request, receivedMs }, descriptor, part, nowSeconds()));
      }
    });
    return { found, problems };
  }

  function findProblem(
    match: Match | undefined,
    domain: string,
    entries: readonly Entry[],
  ): string | undefined {
    const domains = rules.current?.domains;
    if (domains?.get(domain) === undefined) {
      const hint = didYouMean(nearestWord(domain, [...(domains?.keys() ?? [])]), '; ') ?? '';
      return `there are no rules for domain ${domain}${hint}`;
    }
    const shown = entries.map(({ key, value }) => `(${key}=${value})`).join('');
    if (match === undefined) return `no rule of domain ${domain} matches ${shown}`;
    return match.limit.unlimited && match.parts === undefined
      ? `rule ${match.metricKey} is unlimited, so nothing is counted`
      : undefined;
  }

  function drop(hits: readonly RuleHit[]): void {
    for (const { mapKey } of hits) {
      overLimitCache?.remove(mapKey);
      leases?.forget(mapKey);
    }
  }

  function toState(hit: RuleHit): CounterState {
    const { match, window, descriptorIndex, after, limit, limiter } = hit;
    return {
      descriptor: descriptorIndex,
      rule: match.metricKey,
      used: Math.max(0, after),
      limit,
      window: toWindowName({ unit: hit.unit, unitMultiplier: match.limit.unitMultiplier }),
      secondsUntilReset:
        limiter === undefined
          ? Math.max(0, window.start + window.seconds - nowSeconds())
          : limiter.resetSeconds,
      shadowMode: options.shadowMode || match.limit.shadowMode,
    };
  }

  return {
    ask(asked, reset, timeoutMs) {
      if (rules.current === undefined) {
        return Promise.resolve({ ok: false, problem: 'there are no rules yet' });
      }
      const { found, problems } = toHits(asked, reset ? allHits : 0);
      if (found.length === 0) return Promise.resolve({ ok: true, counters: problems });
      return new Promise((resolve) => {
        store.count({
          hits: found,
          mode: 'add',
          deadlineMs: clock.monotonicMs() + timeoutMs,
          cancelled: false,
          settle(error) {
            if (error !== undefined) {
              resolve({ ok: false, problem: error.message });
              return;
            }
            if (reset) drop(found);
            const counters = [...problems, ...found.map(toState)];
            resolve({ ok: true, counters: counters.sort((a, b) => a.descriptor - b.descriptor) });
          },
        });
      });
    },
    forget: (asked) => drop(toHits(asked, 0).found),
  };
}
