// Limiters as documented (behaviour: sliding-window, token-bucket), one request after another: the model that
// implementations are compared with. Plain lists instead of a single number.
import type { Limiter } from '../../shared/rules/limit-shape.ts';

export interface LimiterModel {
  /** Whether the hits are over the limit. */
  count(hits: number, nowMs: number): boolean;
  giveBack(hits: number, nowMs: number): void;
  /** How many hits would be admitted. */
  room(nowMs: number): number;
}

export function createLimiterModel(limiter: Limiter, windowMs: number): LimiterModel {
  return limiter.algorithm === 'sliding_window'
    ? createSlidingModel(limiter, windowMs)
    : createBucketModel(limiter, windowMs);
}

/** In whole hits times milliseconds of a window, so that nothing is rounded. */
function createSlidingModel({ limit, countsOver }: Limiter, windowMs: number): LimiterModel {
  /** By window number. */
  const hitsOf = new Map<number, number>();
  let latest = 0;
  const room = (nowMs: number) => {
    latest = Math.max(latest, Math.floor(nowMs / windowMs));
    const elapsed = Math.max(0, nowMs - latest * windowMs);
    const previous = hitsOf.get(latest - 1) ?? 0;
    const current = hitsOf.get(latest) ?? 0;
    return Math.floor(((limit - current) * windowMs - previous * (windowMs - elapsed)) / windowMs);
  };
  const change = (hits: number) =>
    hitsOf.set(latest, Math.max(0, (hitsOf.get(latest) ?? 0) + hits));
  return {
    room,
    count(hits, nowMs) {
      const isOver = hits > room(nowMs);
      if (!isOver || countsOver) change(hits);
      return isOver;
    },
    giveBack(hits, nowMs) {
      room(nowMs);
      change(-hits);
    },
  };
}

/** In the same unit. */
function createBucketModel(limiter: Limiter, windowMs: number): LimiterModel {
  const { limit, countsOver } = limiter;
  const capacity = limiter.capacity * windowMs;
  let tokens = capacity;
  let lastMs = 0;
  const refill = (nowMs: number) => {
    tokens = Math.min(capacity, tokens + Math.max(0, nowMs - lastMs) * limit);
    lastMs = nowMs;
    return tokens;
  };
  return {
    room: (nowMs) => Math.floor(refill(nowMs) / windowMs),
    count(hits, nowMs) {
      const isOver = hits * windowMs > refill(nowMs);
      if (!isOver || countsOver) tokens = Math.max(-capacity, tokens - hits * windowMs);
      return isOver;
    },
    giveBack(hits, nowMs) {
      tokens = Math.min(capacity, refill(nowMs) + hits * windowMs);
    },
  };
}
