// The contract between the decision and the stores that count hits.

import { hash } from 'node:crypto';
import type { AppError } from '../../shared/errors.ts';
import type { Lease, Limiter } from '../../shared/rules/limit-shape.ts';
import type { Unit } from '../../shared/rules/unit.ts';
import type { LimiterCounter } from './limiter.ts';

/** One descriptor's hits on one counter. Made by the decision, completed by the store. */
export interface Hit {
  /** The complete counter key, including the window's start: for servers and for messages. */
  readonly key: string;
  /** `toMapKey` of `key`: for maps in this process. */
  readonly mapKey: string;
  /**
   * How many hits to add, or to return when `refund`; an integer from 0 to 2^63-1. Above 2^53 it is rounded and
   * `exactHits` has the exact number.
   */
  readonly hits: number;
  readonly exactHits: bigint | undefined;
  /** Whether to subtract instead of add; the counter stops at 0, and a missing counter is not created. */
  readonly refund: boolean;
  /** requests_per_unit, or the capacity of a limiter: `add-unless-over` compares counters with it. */
  readonly limit: number;
  /** The window's length in seconds; the counter's lifetime is this plus the store's jitter. */
  readonly windowSeconds: number;
  /** Undefined for a fixed window. Copies of a hit share it, so that no copy loses the store's answer. */
  readonly limiter: LimiterHit | undefined;
  /** Undefined if each hit is counted in the store (leases.ts). */
  readonly lease: Lease | undefined;
  readonly unit: Unit;
  /** Index of the hit's descriptor in the request. */
  readonly descriptorIndex: number;
  /**
   * Whether these hits, when over their limit, prevent the others of an `add-unless-over` request from being counted:
   * `together` when every descriptor with that word is over.
   */
  stopsOthers: 'alone' | 'together' | 'never';
  /**
   * The counter after this hit, in its turn; -1 until the store sets it, for all hits before `settle(undefined)`. After
   * `settle(error)` the hits with a value were counted. For a limiter: how much of `limit` is used, including these
   * hits if they are over it and therefore not counted.
   */
  after: number;
}

/** Additional fields of a hit on a limiter. The numbers are set together with `after`. */
export interface LimiterHit {
  readonly window: LimiterWindow;
  /** The number of hits, which a copy that is not counted has as well. */
  readonly hits: number;
  /**
   * Whole seconds, at least 1, until these hits would be admitted, or, if they were, until the whole limit is free;
   * infinite if they can never be admitted.
   */
  resetSeconds: number;
  /** Whole seconds until the same number of hits would be admitted again, 0 for at once; infinite for never. */
  waitSeconds: number;
  /** Milliseconds during which no hit at all will be admitted. */
  closedMs: number;
  /** Milliseconds until a sliding window ends, by the store's clock; -1 for a bucket. */
  windowLeftMs: number;
}

/** The fields of a hit that the store has not answered yet. */
export function toLimiterHit(window: LimiterWindow, hits: number): LimiterHit {
  return { window, hits, resetSeconds: -1, waitSeconds: 0, closedMs: -1, windowLeftMs: -1 };
}

/**
 * `after` of hits that would exceed their counter's bound, 2^63: they are over every limit, and the counter stays
 * unchanged.
 */
export const overflowed = 2 ** 63;

/** Longer texts are represented by a digest, which also bounds the memory that a key takes. */
export const maxMapKeyLength = 1024;

/**
 * The key that represents a text of a request in a map of this process: the text itself, or the digest of a long one. A
 * digest has only hexadecimal digits, so it never equals a counter key or a metric key, which contains a `_` or a `.`.
 *
 * V8 hashes a string of more than 16,383 characters by its length alone, so a Map with many keys of one length degrades
 * to a list: each lookup would compare them all, and callers choose how long their texts are.
 */
export function toMapKey(text: string): string {
  return text.length <= maxMapKeyLength ? text : hash('sha256', text);
}

/** A limiter in the window of the hit. */
export interface LimiterWindow extends Limiter {
  /** The start by the worker's clock, in Unix seconds; the store uses its own clock. */
  readonly windowStart: number;
  readonly windowSeconds: number;
  /** Whether all windows have the same length; calendar months do not. */
  readonly isEven: boolean;
  /** The length of the next window, where it may differ. */
  readonly nextSeconds?: number | undefined;
}

/** The greatest difference between windows of uneven length, plus a day. */
export const unevenMs = 4 * 86_400_000;

/**
 * - `add`: every hit is added.
 * - `peek`: nothing is added (hits count as 0); refunds still apply. For a request with another descriptor
 *   that is known to be over its limit (behaviour: over-limit-stops-counting).
 * - `add-unless-over`: if current + hits > limit for a hit that stops others, only the hits over the limit are
 *   added (behaviour: over-limit-stops-counting); refunds always apply.
 */
export type CountMode = 'add' | 'peek' | 'add-unless-over';

/** All hits of one decision. */
export interface CountRequest {
  /** The hits in the order of the request's descriptors; never empty. A key may occur twice. */
  readonly hits: readonly Hit[];
  readonly mode: CountMode;
  /** A time on the monotonic clock. Past it, the request is settled with an error (behaviour: one-deadline). */
  readonly deadlineMs: number;
  /** Set when the caller has disconnected: a request not yet sent is then skipped. */
  cancelled: boolean;
  /** Called exactly once, never during `count`. With undefined, each hit has its `after`. */
  settle(error: AppError | undefined): void;
}

export interface CounterStoreState {
  /** A word and a sentence for the debug page: the connection, its time, the last error. */
  readonly healthy: boolean;
  readonly detail: string;
}

/**
 * Counts hits. Calls are answered as if executed one by one in the order of arrival, however they are batched
 * (behaviour: as-if-one-by-one). A request that was sent but not answered is counted at most once: no implementation
 * sends it again (behaviour: never-sent-twice).
 */
export interface CounterStore {
  count(request: CountRequest): void;
  /**
   * Resolves when the store has answered for the first time; retries (and logs each failed attempt with the address,
   * credentials masked) until `signal` aborts, then rejects.
   */
  connect(signal: AbortSignal): Promise<void>;
  state(): CounterStoreState;
  /** Lets requests in flight finish for at most `graceMs`, then closes. Idempotent. */
  close(graceMs: number): Promise<void>;
}

/**
 * For each hit of an `add-unless-over` request, whether it is not counted; undefined when all are. `isOver` is not
 * called for refunds.
 */
export function findSuppressed(
  hits: readonly Hit[],
  isOver: (hit: Hit) => boolean,
): boolean[] | undefined {
  const overs = hits.map((hit) => !hit.refund && isOver(hit));
  const isStopped = hits.some(({ stopsOthers }, index) => overs[index] && stopsOthers === 'alone');
  if (!isStopped && !areAllOver(hits, overs)) return undefined;
  return hits.map(({ refund }, index) => !refund && overs[index] === false);
}

/**
 * Whether all descriptors that only stop the others together are over: a descriptor is over when one of its limits is.
 */
function areAllOver(hits: readonly Hit[], overs: readonly boolean[]): boolean {
  const together = hits.filter(({ stopsOthers }) => stopsOthers === 'together');
  const over = hits.filter((_, index) => overs[index]);
  return (
    together.length > 0 &&
    together.every(({ descriptorIndex }) =>
      over.some((hit) => hit.descriptorIndex === descriptorIndex),
    )
  );
}

/**
 * True when the current counters determine which hits are added: with only one hit that can be over its limit, no other
 * counter has to stay unchanged.
 */
export function needsReading(request: CountRequest): boolean {
  if (request.mode !== 'add-unless-over') return false;
  let adding = 0;
  for (const hit of request.hits) if (!hit.refund) adding++;
  return adding > 1;
}

/**
 * Sets the result of a hit on a limiter's counter, in its turn (behaviour: limiter-answers). `hits` is the requested
 * number; 0 for a peek.
 */
export function settleLimiterHit(
  counter: LimiterCounter,
  hit: Hit,
  limiter: LimiterHit,
  hits: number,
): void {
  const { limit } = hit;
  limiter.windowLeftMs = counter.windowLeftMs;
  if (hit.refund) {
    counter.giveBack(hits);
    hit.after = limit - counter.room;
    limiter.resetSeconds = toSeconds(counter.msUntilFree());
    limiter.waitSeconds = 0;
    limiter.closedMs = 0;
    return;
  }
  const isOver = counter.count(hits);
  const { room } = counter;
  const isCounted = !isOver || limiter.window.countsOver;
  hit.after = limit - room + (isCounted ? 0 : hits);
  // Also for peeks: the whole request must be admitted.
  const waitMs = room >= limiter.hits ? 0 : counter.msUntil(limiter.hits);
  limiter.resetSeconds = toSeconds(isOver ? waitMs : counter.msUntilFree());
  limiter.waitSeconds = waitMs <= 0 ? 0 : toSeconds(waitMs);
  // When hits over the limit are counted, every hit must reach the store.
  limiter.closedMs = room > 0 || isCounted ? 0 : counter.msUntil(1);
}

/** The longest duration that a response can carry, about 10,000 years. */
const longestSeconds = 315_576_000_000;

/** At least 1: callers are never asked to retry at once. */
function toSeconds(ms: number): number {
  if (ms === Number.POSITIVE_INFINITY) return ms;
  return Math.min(longestSeconds, Math.max(1, Math.ceil(ms / 1000)));
}
