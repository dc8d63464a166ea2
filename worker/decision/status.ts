// The status of one descriptor with a limit: judges its hits by the store's answer or its replacement, counts them in
// the statistics of the rule, and updates the local cache (behaviour: judging-hits, refunds, limit-lists).

import type { WindowAt } from '../../shared/counting/counter-key.ts';
import type { Limiter } from '../../shared/rules/limit-shape.ts';
import type { Match } from '../../shared/rules/rule.ts';
import type { AnsweringMode } from '../counters/failure/failure-mode.ts';
import type { LimiterHit } from '../counters/store.ts';
import type { Metrics, RuleStats } from '../metrics.ts';
import type { DecisionTrail } from './decision-trail.ts';
import type { Arrived, RuleHit } from './hit.ts';
import { type Code, codes, type DescriptorStatus } from './message.ts';
import type { OverLimitCache } from './over-limit-cache.ts';

export interface StatusDeps {
  readonly overLimitCache: OverLimitCache | undefined;
  readonly metrics: Pick<Metrics, 'ruleStats'>;
  readonly trail: DecisionTrail | undefined;
  /** Not negative. */
  readonly nearLimitRatio: number;
  readonly windowAt: WindowAt;
}

export interface Statuses {
  /** The status of a hit whose `after` or `fallback` is set. */
  toStatus(hit: RuleHit, nowSeconds: number, arrived: Arrived): DescriptorStatus;
  /**
   * Whole seconds until the hits would be admitted if only the same request came again, 0 for at once; infinite for
   * never.
   */
  findWait(hit: RuleHit, nowSeconds: number): number;
  /** The status of a rule with a list of limits, from a hit on each: the caller gets one answer for the rule. */
  toListStatus(
    match: Match,
    hits: readonly RuleHit[],
    nowSeconds: number,
    arrived: Arrived,
  ): DescriptorStatus;
}

export function createStatuses({
  overLimitCache,
  metrics,
  trail,
  nearLimitRatio,
  windowAt,
}: StatusDeps): Statuses {
  /** An answer after its window's end has the end of the next window. */
  const findReset = ({ window, unit, match }: RuleHit, nowSeconds: number): number => {
    const end = window.start + window.seconds;
    if (nowSeconds >= window.start && nowSeconds < end) return end;
    const next = windowAt(unit, match.limit.unitMultiplier, nowSeconds);
    return next.start + next.seconds;
  };

  const judgeLimiter = (hit: RuleHit, limiter: LimiterHit, arrived: Arrived): Verdict => {
    const { after, hits, limit, mapKey, match, stats } = hit;
    const { window, closedMs } = limiter;
    if (hit.refund) {
      if (after <= limit) overLimitCache?.remove(mapKey);
      return judgeRefund(after, limit);
    }
    if (after > limit && closedMs > 0) {
      // Counted from the arrival, which was before the store's answer: never longer than the store would refuse.
      const known = { requestsPerUnit: match.limit.requestsPerUnit, capacity: limit };
      overLimitCache?.add(mapKey, known, arrived.receivedMs + closedMs, hit.removalsBefore);
    }
    return judgeLimited(after, hits, window, nearLimitRatio, match.limit.shadowMode, stats);
  };

  const judge = (hit: RuleHit, nowSeconds: number, arrived: Arrived): Verdict => {
    const { match, stats, hits, window } = hit;
    const { requestsPerUnit, shadowMode } = match.limit;
    if (hit.fallback !== undefined) return judgeByFallback(hit, hit.fallback);
    trail?.counted(hit, match);
    if (hit.limiter !== undefined) return judgeLimiter(hit, hit.limiter, arrived);
    if (hit.refund) {
      if (hit.after <= requestsPerUnit) overLimitCache?.remove(hit.mapKey);
      return judgeRefund(hit.after, requestsPerUnit);
    }
    if (overLimitCache !== undefined && hit.after > requestsPerUnit) {
      const leftMs = (window.start + window.seconds - nowSeconds) * 1000;
      const known = { requestsPerUnit, capacity: requestsPerUnit };
      overLimitCache.add(hit.mapKey, known, arrived.receivedMs + leftMs, hit.removalsBefore);
    }
    return judgeHits(hit.after, hits, requestsPerUnit, nearLimitRatio, shadowMode, stats);
  };

  const judgeByFallback = (hit: RuleHit, fallback: 'cache' | AnsweringMode): Verdict => {
    const { match, stats, hits, refund, after, limit, limiter } = hit;
    const { shadowMode } = match.limit;
    switch (fallback) {
      case 'cache':
        return judgeKnownOver(hits, shadowMode, stats);
      case 'local':
        // The local cache only concerns the store's counters.
        trail?.counted(hit, match);
        if (refund) return judgeRefund(after, limit);
        return limiter === undefined
          ? judgeHits(after, hits, limit, nearLimitRatio, shadowMode, stats)
          : judgeLimited(after, hits, limiter.window, nearLimitRatio, shadowMode, stats);
      case 'allow':
      case 'deny':
        return judgeUncounted(hits, refund, limit, shadowMode, fallback);
    }
  };

  const findWait = (hit: RuleHit, nowSeconds: number): number => {
    const { match, limiter, fallback, refund, hits, limit, after } = hit;
    if (refund || match.limit.shadowMode) return 0;
    if (hits > limit) return Number.POSITIVE_INFINITY;
    if (fallback === 'allow') return 0;
    if (limiter !== undefined && fallback !== 'deny') return limiter.waitSeconds;
    const isKnownOver = fallback === 'cache' || fallback === 'deny';
    if (!isKnownOver && after + hits <= limit) return 0;
    return findReset(hit, nowSeconds) - nowSeconds;
  };

  /** Undefined if the hits can never be admitted; a plain fixed window always has its end, as in the reference. */
  const findShownReset = (
    { limiter, match, hits, limit, refund }: RuleHit,
    resetSeconds: number,
  ): number | undefined => {
    const isPlain = limiter === undefined && match.limit.unitMultiplier === 1;
    const isNever = !isPlain && !refund && hits > limit;
    return isNever || resetSeconds === Number.POSITIVE_INFINITY ? undefined : resetSeconds;
  };

  const toStatus = (hit: RuleHit, nowSeconds: number, arrived: Arrived): DescriptorStatus => {
    const { match, limiter } = hit;
    const verdict = judge(hit, nowSeconds, arrived);
    return {
      code: verdict.code,
      currentLimit: {
        name: match.limit.name,
        requestsPerUnit: match.limit.requestsPerUnit,
        unit: hit.unit,
      },
      limitRemaining: verdict.remaining,
      // Unknown for limiters if neither the store nor the cache has answered.
      secondsUntilReset: findShownReset(
        hit,
        limiter !== undefined && limiter.resetSeconds > 0
          ? limiter.resetSeconds
          : findReset(hit, nowSeconds) - nowSeconds,
      ),
    };
  };

  return {
    toStatus,
    findWait,
    toListStatus(match, hits, nowSeconds, arrived) {
      const status = hits.map((hit) => toStatus(hit, nowSeconds, arrived)).reduce(combineStatuses);
      const stats = metrics.ruleStats(match.metricKey, match.metricKeyIsStatic, undefined);
      countRule(stats, hits, nearLimitRatio, match.limit.shadowMode);
      if (status.code !== codes.overLimit) return status;
      // The wait of all limits, including those that these hits have used up: a caller that waits for it is admitted.
      const wait = Math.max(1, ...hits.map((hit) => findWait(hit, nowSeconds)));
      return { ...status, secondsUntilReset: Number.isFinite(wait) ? wait : undefined };
    },
  };
}

/** Whether the limit of a shadow rule would have refused the hit. */
export function isOverInShadow({ match, refund, fallback, after, hits, limit }: RuleHit): boolean {
  if (!match.limit.shadowMode || refund) return false;
  if (fallback === 'cache' || fallback === 'deny') return true;
  return fallback === 'allow' ? hits > limit : after > limit;
}

/** The number of requests at which near_limit begins. `ratio` is not negative. */
export function nearThreshold(limit: number, ratio: number): number {
  // The product is a 32-bit float in the reference: 0.7 of 90 differs from the 64-bit product. The product may be above
  // the limit, also by rounding; hits there are over the limit, never near it.
  const product = Math.fround(Math.fround(limit) * Math.fround(ratio));
  return Math.min(limit, Math.floor(product));
}

export interface Verdict {
  readonly code: Code;
  readonly remaining: number;
}

/** Judges a counter that is over its limit according to the local cache; nothing was counted. */
export function judgeKnownOver(hits: number, shadowMode: boolean, stats: RuleStats): Verdict {
  stats.overLimit.add(hits);
  stats.overLimitWithLocalCache.add(hits);
  if (shadowMode) stats.shadowMode.add(hits);
  return { code: shadowMode ? codes.ok : codes.overLimit, remaining: 0 };
}

/**
 * Judges hits that the store failed to count, in the failure modes `allow` and `deny`: the counter is unknown, so the
 * rule's statistics stay unchanged. Hits that exceed the limit by themselves are over it.
 */
function judgeUncounted(
  hits: number,
  refund: boolean,
  limit: number,
  shadowMode: boolean,
  mode: 'allow' | 'deny',
): Verdict {
  const isDenied = mode === 'deny';
  if (refund) return { code: codes.ok, remaining: isDenied ? 0 : limit };
  const isOver = isDenied || hits > limit;
  return {
    code: isOver && !shadowMode ? codes.overLimit : codes.ok,
    remaining: isOver ? 0 : limit - hits,
  };
}

/**
 * Judges hits of a limiter: all or none are over the limit. `after` includes hits over the limit even if they were not
 * counted.
 */
function judgeLimited(
  after: number,
  hits: number,
  { capacity, countsOver }: Limiter,
  nearRatio: number,
  shadowMode: boolean,
  stats: RuleStats,
): Verdict {
  if (after <= capacity) {
    stats.withinLimit.add(hits);
    const near = findNearHits(after, hits, capacity, nearRatio);
    if (near > 0) stats.nearLimit.add(near);
    return { code: codes.ok, remaining: capacity - after };
  }
  stats.overLimit.add(hits);
  if (shadowMode) stats.shadowMode.add(hits);
  const remaining = countsOver ? 0 : Math.max(0, capacity - (after - hits));
  return { code: shadowMode ? codes.ok : codes.overLimit, remaining };
}

/** How many of these hits, none of them over the limit, are near it. */
function findNearHits(after: number, hits: number, limit: number, nearRatio: number): number {
  const near = nearThreshold(limit, nearRatio);
  if (after <= near) return 0;
  return after - hits >= near ? hits : after - near;
}

/** A refund is never over its limit; `after` may still be above the limit. */
export function judgeRefund(after: number, limit: number): Verdict {
  return { code: codes.ok, remaining: Math.max(0, limit - after) };
}

/**
 * `after` is the counter with these hits. Hits that cross a threshold count in part on either side of it. `after` is
 * below `hits` when they were not counted because another descriptor of the request was over its limit: as in the
 * reference, the previous counter then counts as above every threshold.
 */
export function judgeHits(
  after: number,
  hits: number,
  limit: number,
  nearRatio: number,
  shadowMode: boolean,
  stats: RuleStats,
): Verdict {
  const before = after >= hits ? after - hits : Number.POSITIVE_INFINITY;
  const near = nearThreshold(limit, nearRatio);
  if (after <= limit) {
    stats.withinLimit.add(hits);
    if (after > near) stats.nearLimit.add(before >= near ? hits : after - near);
    return { code: codes.ok, remaining: limit - after };
  }
  const over = before >= limit ? hits : after - limit;
  stats.overLimit.add(over);
  if (before < limit) stats.nearLimit.add(limit - Math.max(near, before));
  if (shadowMode) stats.shadowMode.add(over);
  return { code: shadowMode ? codes.ok : codes.overLimit, remaining: 0 };
}

/**
 * Over the limit if any status is: then the one with the longest reset, else the one with the fewest remaining; the
 * first of equals.
 */
function combineStatuses(first: DescriptorStatus, second: DescriptorStatus): DescriptorStatus {
  const isOver = second.code === codes.overLimit;
  if ((first.code === codes.overLimit) !== isOver) return isOver ? second : first;
  const isWorse = isOver
    ? (second.secondsUntilReset ?? Number.POSITIVE_INFINITY) >
      (first.secondsUntilReset ?? Number.POSITIVE_INFINITY)
    : second.limitRemaining < first.limitRemaining;
  return isWorse ? second : first;
}

/** The statistics of the rule itself, which counts once whatever its limits. `hits` has one hit for each limit. */
function countRule(
  stats: RuleStats,
  hits: readonly RuleHit[],
  nearRatio: number,
  shadowMode: boolean,
): void {
  const [{ hits: count, refund } = { hits: 0, refund: true }] = hits;
  const isUnknown = hits.some(({ fallback }) => fallback === 'allow' || fallback === 'deny');
  if (refund || isUnknown) return;
  const known = hits.filter(({ fallback }) => fallback === 'cache').length;
  if (known > 0 || hits.some(({ after, limit }) => after > limit)) {
    stats.overLimit.add(count);
    if (known === hits.length) stats.overLimitWithLocalCache.add(count);
    if (shadowMode) stats.shadowMode.add(count);
    return;
  }
  stats.withinLimit.add(count);
  const near = hits.map((hit) => findNearHits(hit.after, hit.hits, hit.limit, nearRatio));
  stats.nearLimit.add(Math.max(...near));
}
