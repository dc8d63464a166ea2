// A limiter's counter as this process stores it between two hits: the same state as in Redis
// (redis/limiter-scripts.ts), on the clocks of this process. Buckets use the monotonic clock, windows the wall clock.
import type { LimiterReading } from './limiter.ts';
import { type LimiterWindow, unevenMs } from './store.ts';

export interface StoredLimiter {
  /**
   * For a window, its end in milliseconds of Unix time; for a bucket, when it is full in microseconds of the monotonic
   * clock.
   */
  readonly end: number;
  /** Hits of that window and of the previous one; 0 for a bucket. */
  readonly current: number;
  readonly previous: number;
}

/** One moment on both clocks, in whole milliseconds of Unix time. */
export interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

export function readStored(
  limiter: LimiterWindow,
  stored: StoredLimiter | undefined,
  { wallMs, monotonicMs }: Moment,
): LimiterReading {
  const { algorithm, windowSeconds } = limiter;
  if (algorithm === 'sliding_window') return readSliding(limiter, stored, wallMs);
  const fullInUs = stored === undefined ? 0 : Math.max(0, stored.end - monotonicMs * 1000);
  return [fullInUs, windowSeconds * 1_000_000];
}

function readSliding(
  { windowStart, windowSeconds, isEven }: LimiterWindow,
  stored: StoredLimiter | undefined,
  nowMs: number,
): LimiterReading {
  const lengthMs = windowSeconds * 1000;
  const firstMs = windowStart * 1000;
  const intoMs = nowMs - firstMs;
  const startMs = isEven
    ? nowMs - (((intoMs % lengthMs) + lengthMs) % lengthMs)
    : firstMs + (intoMs >= lengthMs ? lengthMs : 0);
  const elapsedMs = Math.min(nowMs - startMs, lengthMs);
  if (stored === undefined) return [0, 0, elapsedMs, lengthMs];
  const { end, current, previous } = stored;
  // The clock was set back, or the window boundaries changed: these hits count in the current window, which bounds how
  // long they count.
  if (end > startMs) return [previous, current, elapsedMs, lengthMs];
  // With windows of uneven length, the previous one may be shorter than this one.
  if (end > startMs - lengthMs + (isEven ? 0 : unevenMs)) return [current, 0, elapsedMs, lengthMs];
  return [0, 0, elapsedMs, lengthMs];
}

export interface Storing {
  readonly stored: StoredLimiter;
  /** When it has passed, the state equals that of a missing counter. */
  readonly ttlMs: number;
}

/** `reading` is the counter after the hit, at the same moment. */
export function storeReading(
  { algorithm, isEven }: LimiterWindow,
  reading: LimiterReading,
  { wallMs, monotonicMs }: Moment,
): Storing {
  const [first = 0, second = 0, elapsedMs = 0, lengthMs = 0] = reading;
  if (algorithm === 'token_bucket') {
    const end = monotonicMs * 1000 + first;
    return { stored: { end, current: 0, previous: 0 }, ttlMs: first / 1000 };
  }
  const restMs = lengthMs - elapsedMs;
  const stored = { end: wallMs + restMs, current: second, previous: first };
  const nextMs = lengthMs + (isEven ? 0 : unevenMs);
  return { stored, ttlMs: second > 0 ? restMs + nextMs : restMs };
}
