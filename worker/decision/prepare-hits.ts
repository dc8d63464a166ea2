// Prepares the hits of one descriptor with a limit: which counters, and how many hits on each (behaviour:
// counter-keys, over-limit-cache, limit-lists).

import type { Window, WindowAt } from '../../shared/counting/window.ts';
import type { Limiter } from '../../shared/rules/limit-shape.ts';
import type { Match } from '../../shared/rules/rule.ts';
import type { Unit } from '../../shared/rules/unit.ts';
import type { LimiterWindow } from '../counters/store.ts';
import { toMapKey } from '../map-key.ts';
import type { Metrics } from '../metrics.ts';
import { createCounterKeys } from './counter-keys.ts';
import type { DecisionTrail } from './decision-trail.ts';
import type { RateLimitRequest, RequestDescriptor } from './message.ts';
import type { OverLimitCache } from './over-limit-cache.ts';
import type { LimitedHit } from './status.ts';

export interface PrepareHitsDeps {
  readonly overLimitCache: OverLimitCache;
  readonly metrics: Pick<Metrics, 'ruleStats'>;
  readonly trail: DecisionTrail | undefined;
  readonly windowAt: WindowAt;
  readonly cacheKeyPrefix: string;
  readonly calendarMonths: boolean;
}

export interface PrepareHits {
  /** The hit of the descriptor at `index` on its one limit. */
  prepare(request: RateLimitRequest, index: number, match: Match, nowSeconds: number): LimitedHit;
  /** One hit for each limit of a list. */
  prepareList(
    request: RateLimitRequest,
    index: number,
    match: Match,
    parts: readonly Match[],
    nowSeconds: number,
  ): readonly LimitedHit[];
}

/** A descriptor's own number, also 0, takes precedence over the request's, where 0 means 1. */
function hitsAddend(request: RateLimitRequest, descriptor: RequestDescriptor): number | bigint {
  return descriptor.hitsAddend ?? Math.max(1, request.hitsAddend);
}

export function createPrepareHits(deps: PrepareHitsDeps): PrepareHits {
  const { overLimitCache, metrics, trail, windowAt } = deps;
  const counterKeys = createCounterKeys(deps.cacheKeyPrefix);
  const limiterWindows = new WeakMap<Limiter, LimiterWindow>();

  const prepare = (
    request: RateLimitRequest,
    index: number,
    match: Match,
    nowSeconds: number,
  ): LimitedHit => {
    const descriptor = request.descriptors[index] as RequestDescriptor;
    const addend = hitsAddend(request, descriptor);
    const hits = Number(addend);
    const stats = metrics.ruleStats(match.metricKey, match.metricKeyIsStatic);
    // A limit that is not unlimited has a unit: the validator and selectLimits ensure it.
    const unit = match.limit.unit ?? 'second';
    const { limiter, unitMultiplier } = match.limit;
    const window = windowAt(unit, unitMultiplier, nowSeconds);
    const key = counterKeys.of(request.domain, descriptor.entries, match, window);
    const mapKey = toMapKey(key);
    const refund = descriptor.isNegativeHits;
    (refund ? stats.totalNegativeHits : stats.totalHits).add(hits);
    const isKnownOver =
      !refund && (limiter === undefined || hits > 0) && overLimitCache.has(mapKey, nowSeconds);
    if (isKnownOver) trail?.knownOver(key, match);
    return {
      key,
      mapKey,
      hits,
      exactHits: typeof addend === 'bigint' ? addend : undefined,
      refund,
      limit: limiter === undefined ? match.limit.requestsPerUnit : limiter.capacity,
      windowSeconds: window.seconds,
      unit,
      descriptorIndex: index,
      after: -1,
      limiter: limiter === undefined ? undefined : toLimiterWindow(limiter, unit, window),
      lease: match.limit.lease,
      resetSeconds: -1,
      closedSeconds: -1,
      windowLeftMs: -1,
      match,
      stats,
      window,
      removalsBefore: overLimitCache.removals,
      fallback: isKnownOver ? 'cache' : undefined,
    };
  };

  /** The same object while the window lasts: stores cache texts by it. */
  const toLimiterWindow = (limiter: Limiter, unit: Unit, window: Window): LimiterWindow => {
    const known = limiterWindows.get(limiter);
    if (known?.windowStart === window.start) return known;
    const limiterWindow = {
      ...limiter,
      windowStart: window.start,
      windowSeconds: window.seconds,
      isEven: unit !== 'month' || !deps.calendarMonths,
    };
    limiterWindows.set(limiter, limiterWindow);
    return limiterWindow;
  };

  const prepareList: PrepareHits['prepareList'] = (request, index, match, parts, nowSeconds) => {
    const list = parts.map((part) => prepare(request, index, part, nowSeconds));
    const [{ hits, refund } = { hits: 0, refund: false }] = list;
    // The rule itself counts once.
    const stats = metrics.ruleStats(match.metricKey, match.metricKeyIsStatic);
    (refund ? stats.totalNegativeHits : stats.totalHits).add(hits);
    return list;
  };

  return { prepare, prepareList };
}
