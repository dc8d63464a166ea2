// A rule with a list of limits: each counts and is judged by itself, and the caller gets one answer for the
// rule (behaviour: limit-lists).
import type { RuleStats } from '../metrics.ts';
import type { LimitedHit } from './descriptor-status.ts';
import { findNearHits } from './judge-hits.ts';
import { codes, type DescriptorStatus } from './message.ts';

/** Over the limit if any is: then the one with the longest reset, else the one with the fewest remaining;
 * the first of equals. */
export function combineStatuses(
  first: DescriptorStatus,
  second: DescriptorStatus,
): DescriptorStatus {
  const isOver = second.code === codes.overLimit;
  if ((first.code === codes.overLimit) !== isOver) return isOver ? second : first;
  const isWorse = isOver
    ? (second.secondsUntilReset ?? 0) > (first.secondsUntilReset ?? 0)
    : second.limitRemaining < first.limitRemaining;
  return isWorse ? second : first;
}

/** The statistics of the rule itself, which counts once whatever its limits. `hits`: one for each limit. */
export function countRule(
  stats: RuleStats,
  hits: readonly LimitedHit[],
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
