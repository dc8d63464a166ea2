// The status of one descriptor with a limit: judges its hits by the store's answer or its fallback, and
// updates the local cache.

import type { Window, WindowAt } from '../../shared/counting/window.ts';
import type { Limiter } from '../../shared/rules/limit-shape.ts';
import type { Match } from '../../shared/rules/rule.ts';
import type { AnsweringMode } from '../counters/failure/failure-mode.ts';
import type { Hit } from '../counters/store.ts';
import type { RuleStats } from '../metrics.ts';
import type { DecisionTrail } from './decision-trail.ts';
import {
  judgeHits,
  judgeKnownOver,
  judgeLimited,
  judgeRefund,
  judgeUncounted,
  type Verdict,
} from './judge-hits.ts';
import type { DescriptorStatus } from './message.ts';
import type { OverLimitCache } from './over-limit-cache.ts';

/** The state of one descriptor between matching and answering. */
export interface LimitedHit extends Hit {
  readonly match: Match;
  readonly stats: RuleStats;
  readonly window: Window;
  /** `removals` of the local cache at the start of the decision. */
  readonly removalsBefore: number;
  /** What replaces the store's answer: `cache` where the local cache has the counter as over its limit, so
   * that the store is not asked; else the answer to the store's failure. */
  fallback: 'cache' | AnsweringMode | undefined;
}

export interface StatusDeps {
  readonly overLimitCache: OverLimitCache;
  readonly trail: DecisionTrail | undefined;
  /** Not negative. */
  readonly nearLimitRatio: number;
  readonly windowAt: WindowAt;
}

/** The status of a hit whose `after` is known, or whose `fallback` is. */
export type ToStatus = (hit: LimitedHit, nowSeconds: number) => DescriptorStatus;

export function createToStatus({
  overLimitCache,
  trail,
  nearLimitRatio,
  windowAt,
}: StatusDeps): ToStatus {
  /** An answer after its window's end has the end of the next one. */
  const findReset = ({ window, unit, match }: LimitedHit, nowSeconds: number): number => {
    const end = window.start + window.seconds;
    if (nowSeconds >= window.start && nowSeconds < end) return end;
    const next = windowAt(unit, match.limit.unitMultiplier, nowSeconds);
    return next.start + next.seconds;
  };

  /** From the store, where it was asked. */
  const findLimiterReset = (hit: LimitedHit, nowSeconds: number): number => {
    if (hit.resetSeconds > 0) return hit.resetSeconds;
    if (hit.fallback === 'cache') return Math.max(1, overLimitCache.until(hit.mapKey) - nowSeconds);
    return findReset(hit, nowSeconds) - nowSeconds;
  };

  const judgeLimiter = (hit: LimitedHit, limiter: Limiter, nowSeconds: number): Verdict => {
    const { after, hits, limit, mapKey, closedSeconds, match, stats } = hit;
    if (hit.refund) {
      if (after <= limit) overLimitCache.remove(mapKey);
      return judgeRefund(after, limit);
    }
    if (after > limit && closedSeconds > 0) {
      overLimitCache.add(mapKey, nowSeconds + closedSeconds, hit.removalsBefore);
    }
    return judgeLimited(after, hits, limiter, nearLimitRatio, match.limit.shadowMode, stats);
  };

  const judge = (hit: LimitedHit, nowSeconds: number): Verdict => {
    const { match, stats, hits, window } = hit;
    const { requestsPerUnit, shadowMode } = match.limit;
    if (hit.fallback !== undefined) return judgeByFallback(hit, hit.fallback);
    trail?.counted(hit, match);
    if (hit.limiter !== undefined) return judgeLimiter(hit, hit.limiter, nowSeconds);
    if (hit.refund) {
      if (hit.after <= requestsPerUnit) overLimitCache.remove(hit.mapKey);
      return judgeRefund(hit.after, requestsPerUnit);
    }
    if (hit.after > requestsPerUnit) {
      overLimitCache.add(hit.mapKey, window.start + window.seconds, hit.removalsBefore);
    }
    return judgeHits(hit.after, hits, requestsPerUnit, nearLimitRatio, shadowMode, stats);
  };

  const judgeByFallback = (hit: LimitedHit, fallback: 'cache' | AnsweringMode): Verdict => {
    const { match, stats, hits, refund, after, limit, limiter } = hit;
    const { shadowMode } = match.limit;
    switch (fallback) {
      case 'cache':
        return judgeKnownOver(hits, shadowMode, stats);
      case 'local':
        // The local cache is about the store's counters only.
        trail?.counted(hit, match);
        if (refund) return judgeRefund(after, limit);
        return limiter === undefined
          ? judgeHits(after, hits, limit, nearLimitRatio, shadowMode, stats)
          : judgeLimited(after, hits, limiter, nearLimitRatio, shadowMode, stats);
      case 'allow':
      case 'deny':
        return judgeUncounted(hits, refund, limit, shadowMode, fallback);
    }
  };

  return (hit, nowSeconds) => {
    const { match } = hit;
    const verdict = judge(hit, nowSeconds);
    return {
      code: verdict.code,
      currentLimit: {
        name: match.limit.name,
        requestsPerUnit: match.limit.requestsPerUnit,
        unit: hit.unit,
      },
      limitRemaining: verdict.remaining,
      secondsUntilReset:
        hit.limiter === undefined
          ? findReset(hit, nowSeconds) - nowSeconds
          : findLimiterReset(hit, nowSeconds),
    };
  };
}
