// Sliding windows and token buckets: the state of a counter, the hits that it admits, and the time until it admits
// more. Pure arithmetic: the in-process store decides with it, and other stores use it to interpret the answer of their
// script (worker/counters/redis/limiter-scripts.ts has the same steps). (behaviour: sliding-window, token-bucket)

import type { Limiter } from '../../shared/rules/limit-shape.ts';

/**
 * A counter as its store has it at one moment, in whole numbers but for the last:
 * - sliding_window: hits of the window before, hits of this window, milliseconds since this one began (below 0 where
 *   the store's clock has not reached it), and its length in milliseconds;
 * - token_bucket: how many microseconds it takes until the bucket is full, and those of a window.
 */
export type LimiterReading = readonly number[];

interface LimiterInWindow extends Limiter {
  /** The length of the next window, where it may differ, as calendar months do. */
  readonly nextSeconds?: number | undefined;
}

/** Far above any number of hits, and exact as a double. */
const mostHits = 2 ** 52;
/** Tolerance for rounding errors in a number of hits. */
const rounding = 1e-9;

/**
 * A counter at one moment. `room` is the number of hits that would be admitted: a whole number, negative when hits over
 * the limit were counted. Only `room` changes while hits are counted, as time does not advance.
 */
export abstract class LimiterCounter {
  readonly #limiter: Limiter;
  /** `room` when nothing is counted in this window, and its lowest value. */
  readonly #highest: number;
  readonly #lowest: number;
  /** Milliseconds until the window ends; -1 for a bucket, which has none. */
  readonly windowLeftMs: number;
  room: number;

  constructor(
    limiter: Limiter,
    room: number,
    highest: number,
    lowest: number,
    windowLeftMs: number,
  ) {
    this.#limiter = limiter;
    this.room = room;
    this.windowLeftMs = windowLeftMs;
    this.#highest = highest;
    this.#lowest = lowest;
  }

  /**
   * Counts all of the hits or none. Returns whether they are over the limit; 0 hits are over it when room is negative.
   */
  count(hits: number): boolean {
    const isOver = hits > this.room;
    if (!isOver) this.room -= hits;
    else if (this.#limiter.countsOver) this.room = Math.max(this.#lowest, this.room - hits);
    return isOver;
  }

  giveBack(hits: number): void {
    this.room = Math.min(this.#highest, this.room + hits);
  }

  /**
   * Milliseconds until that many hits would be admitted without further traffic; infinite for more than are ever
   * admitted.
   */
  abstract msUntil(hits: number): number;
  /** Milliseconds until the whole limit is free again without further traffic. */
  abstract msUntilFree(): number;
  /** The state to store; undefined when it equals that of a missing counter. */
  abstract save(): LimiterReading | undefined;
}

/** The hits of the previous window count in proportion to how far it reaches into the last W seconds. */
class SlidingWindow extends LimiterCounter {
  readonly #limit: number;
  readonly #previous: number;
  readonly #elapsedMs: number;
  readonly #windowMs: number;
  /** The length of the next window. */
  readonly #nextMs: number;
  /** `room` when this window has no hits. */
  readonly #free: number;

  constructor(
    limiter: LimiterInWindow,
    previous: number,
    current: number,
    elapsedMs: number,
    windowMs: number,
  ) {
    const weighted = (previous * (windowMs - Math.max(0, elapsedMs))) / windowMs;
    const free = Math.floor(limiter.limit - weighted + rounding);
    super(limiter, free - current, free, -mostHits, windowMs - elapsedMs);
    this.#limit = limiter.limit;
    this.#previous = previous;
    this.#elapsedMs = elapsedMs;
    this.#windowMs = windowMs;
    this.#nextMs = limiter.nextSeconds === undefined ? windowMs : limiter.nextSeconds * 1000;
    this.#free = free;
  }

  get #current(): number {
    return this.#free - this.room;
  }

  msUntil(hits: number): number {
    if (hits > this.#limit) return Number.POSITIVE_INFINITY;
    const rest = this.#windowMs - this.#elapsedMs;
    const spare = this.#limit - hits;
    if (this.#current <= spare) {
      if (this.room >= hits) return 0;
      // Within this window: when the weight of the previous one has fallen enough.
      return rest - ((spare - this.#current) * this.#windowMs) / this.#previous;
    }
    return rest + this.#nextMs - (spare * this.#nextMs) / this.#current;
  }

  msUntilFree(): number {
    const rest = this.#windowMs - this.#elapsedMs;
    if (this.#current > 0) return rest + this.#nextMs;
    return this.#previous > 0 ? rest : 0;
  }

  save(): LimiterReading | undefined {
    if (this.#current <= 0 && this.#previous === 0) return undefined;
    return [this.#previous, this.#current, this.#elapsedMs, this.#windowMs];
  }
}

/**
 * Tokens arrive evenly. The state is the time at which the bucket is full (GCRA's theoretical arrival time), here as
 * the time until then.
 */
class TokenBucket extends LimiterCounter {
  readonly #limiter: Limiter;
  readonly #fullInUs: number;
  readonly #windowUs: number;
  readonly #roomBefore: number;
  /** The fraction of the next token. Dropped when the bucket is full or at its lowest level. */
  readonly #part: number;
  #isAtEnd = false;

  constructor(limiter: Limiter, fullInUs: number, windowUs: number) {
    const { limit, countsOver } = limiter;
    const capacity = limit === 0 ? 0 : limiter.capacity;
    const lowest = countsOver ? -capacity : 0;
    // After a change of the limit the stored state may exceed the bucket.
    const tokens = Math.max(lowest, capacity - (fullInUs * limit) / windowUs);
    const room = Math.floor(tokens + rounding);
    super(limiter, room, capacity, lowest, -1);
    this.#limiter = { ...limiter, capacity };
    this.#fullInUs =
      limit === 0 ? fullInUs : Math.min(fullInUs, ((capacity - lowest) * windowUs) / limit);
    this.#windowUs = windowUs;
    this.#roomBefore = room;
    this.#part = Math.max(0, tokens - room);
  }

  override count(hits: number): boolean {
    const { room } = this;
    const isOver = super.count(hits);
    if (isOver && this.#limiter.countsOver && room - hits < this.room) this.#isAtEnd = true;
    return isOver;
  }

  override giveBack(hits: number): void {
    super.giveBack(hits);
    if (hits > 0 && this.room === this.#limiter.capacity) this.#isAtEnd = true;
  }

  get #tokens(): number {
    return this.room + (this.#isAtEnd ? 0 : this.#part);
  }

  #msFor(tokens: number): number {
    const { limit } = this.#limiter;
    return limit === 0 ? this.#windowUs / 1000 : (tokens * this.#windowUs) / limit / 1000;
  }

  msUntil(hits: number): number {
    if (hits > this.#limiter.capacity) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#msFor(hits - this.#tokens));
  }

  msUntilFree(): number {
    return this.#msFor(this.#limiter.capacity - this.#tokens);
  }

  save(): LimiterReading | undefined {
    const { capacity, limit } = this.#limiter;
    // No tokens arrive, and the state is that of another rate.
    if (limit === 0) return this.#fullInUs > 0 ? [this.#fullInUs, this.#windowUs] : undefined;
    const fullInUs = this.#isAtEnd
      ? ((capacity - this.room) * this.#windowUs) / limit
      : this.#fullInUs + ((this.#roomBefore - this.room) * this.#windowUs) / limit;
    return fullInUs <= 0 ? undefined : [fullInUs, this.#windowUs];
  }
}

export function openLimiterCounter(
  limiter: LimiterInWindow,
  reading: LimiterReading,
): LimiterCounter {
  const [first = 0, second = 0, third = 0, fourth = 1] = reading;
  return limiter.algorithm === 'sliding_window'
    ? new SlidingWindow(limiter, first, second, third, fourth)
    : new TokenBucket(limiter, first, second);
}
