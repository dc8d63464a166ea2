// From a counter's value to OK or over the limit, with the statistics of the rule
// (behaviour: judging-hits, refunds).
import type { Limiter } from '../../shared/rules/limit-shape.ts';
import type { RuleStats } from '../metrics.ts';
import { type Code, codes } from './message.ts';

/** The number of requests at which near_limit begins. `ratio` is not negative. */
export function nearThreshold(limit: number, ratio: number): number {
  // The product is a 32-bit float in the reference: 0.7 of 90 differs from the 64-bit product. The product
  // may be above the limit, also by rounding; hits there are over the limit, never near it.
  const product = Math.fround(Math.fround(limit) * Math.fround(ratio));
  return Math.min(limit, Math.floor(product));
}

export interface Verdict {
  readonly code: Code;
  readonly remaining: number;
}

/** A counter that is over its limit according to the local cache; nothing was counted. */
export function judgeKnownOver(hits: number, shadowMode: boolean, stats: RuleStats): Verdict {
  stats.overLimit.add(hits);
  stats.overLimitWithLocalCache.add(hits);
  if (shadowMode) stats.shadowMode.add(hits);
  return { code: shadowMode ? codes.ok : codes.overLimit, remaining: 0 };
}

/** Hits that the store failed to count, in the failure modes `allow` and `deny`: the counter is unknown, so
 * the rule's statistics stay unchanged. Hits that exceed the limit by themselves are over it. */
export function judgeUncounted(
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

/** Hits of a limiter: all or none are over the limit. `after` includes hits over the limit even if they
 * were not counted. */
export function judgeLimited(
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

/** How many of these hits, none over the limit, are near it. */
export function findNearHits(
  after: number,
  hits: number,
  limit: number,
  nearRatio: number,
): number {
  const near = nearThreshold(limit, nearRatio);
  if (after <= near) return 0;
  return after - hits >= near ? hits : after - near;
}

/** A refund is never over; `after` may still be above the limit. */
export function judgeRefund(after: number, limit: number): Verdict {
  return { code: codes.ok, remaining: Math.max(0, limit - after) };
}

/**
 * `after` is the counter with these hits. Hits that cross a threshold count in part on either side of it.
 * `after` is below `hits` when they were not counted because another descriptor of the request was over
 * its limit: the reference then treats the counter as above every threshold before.
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
