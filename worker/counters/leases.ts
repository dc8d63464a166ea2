// Leases (behaviour: leases): a worker takes many hits of a hot counter from the store at once and admits hits from
// them, so that few decisions on it call the store. Hits of a lease are counted when it is taken: admitted hits never
// exceed the limit, and unused ones are returned.
//
// Every amount is in hits. For example, of a limit of 1,000 with a share of 5 %, three requests need 1 hit each:
// 1. The first is counted alone. 1 is counted, 999 remain; a lease begins with 0 unused hits.
// 2. The second lacks 1, but asks for 5 % of 999. 50 are counted, 950 remain; 49 are granted, 48 of these unused.
// 3. The third uses one of the 48. Its `after` is what callers have used: 1,000 - 950 remaining - 47 unused = 3.
import type { Clock } from '../../shared/clock.ts';
import { owned } from '../../shared/owned-text.ts';
import type { Metrics } from '../metrics.ts';
import { PartRequest } from './count-in-parts.ts';
import type { CounterStore, CountRequest, Hit } from './store.ts';

/** Limit of keys with a lease; decisions on further keys ask the store. */
const maxKeys = 10_000;
/** No lease is taken when fewer hits, or a smaller share of the limit, remain: the last hits are exact. */
const leastRemaining = 10;
const leastPart = 0.01;
/** Time limit for returning hits. */
const returnMs = 1_000;

export interface LeaseDeps {
  readonly store: CounterStore;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

interface Lease {
  /** The hit that was sent last, with the store's answer. */
  hit: Hit;
  /** Hits counted in the store and not yet used. */
  unused: number;
  /** Hits of the limit that the store had not counted at its last answer; 0 when a next lease would not fit. */
  remaining: number;
  /** When the store was last called, and when the lease ends, on the monotonic clock. */
  sentMs: number;
  untilMs: number;
  /** When the hits' sliding window ends; infinite for a fixed window, which is part of the key, and for a bucket. */
  windowEndMs: number;
  /** A call for the next lease is in flight. */
  isLeasing: boolean;
  cancelTimer: () => void;
}

export class Leases {
  readonly #store: CounterStore;
  readonly #clock: Clock;
  readonly #fromLease: ReturnType<Metrics['counter']>;
  /** By the `mapKey` of the counter. */
  readonly #leases = new Map<string, Lease>();
  /** Requests answered from leases in this turn of the event loop, not settled yet. */
  #answered: CountRequest[] = [];
  #isClosed = false;

  constructor({ store, clock, metrics }: LeaseDeps) {
    this.#store = store;
    this.#clock = clock;
    const open = metrics.gauge('ratelimit.lease.open');
    const unusedHits = metrics.gauge('ratelimit.lease.unused_hits');
    this.#fromLease = metrics.counter('ratelimit.lease.decisions');
    metrics.beforeReading(() => {
      let hits = 0;
      for (const { unused } of this.#leases.values()) hits += unused;
      open.set(this.#leases.size);
      unusedHits.set(hits);
    });
  }

  /** As CounterStore.count, for a request with one hit whose limit has a lease. */
  count(request: CountRequest): void {
    const [hit] = request.hits as readonly [Hit];
    const isPlain = !hit.refund && hit.hits > 0 && hit.exactHits === undefined;
    if (!isPlain || request.mode === 'peek') {
      this.#store.count(request);
      return;
    }
    const lease = this.#leases.get(hit.mapKey);
    if (lease === undefined) {
      this.#countAlone(request, hit);
      return;
    }
    const nowMs = this.#clock.monotonicMs();
    dropOverflow(lease, nowMs);
    if (lease.unused >= hit.hits && nowMs < lease.untilMs) {
      this.#answerFromLease(request, hit, lease, nowMs);
    } else if (lease.isLeasing) this.#countAlone(request, hit);
    else this.#leaseMore(request, hit, lease);
  }

  /** Call it when the counter was reset: the hits taken from it are gone too. */
  forget(mapKey: string): void {
    this.#leases.get(mapKey)?.cancelTimer();
    // Even while hits are being taken: the store may have counted them before the reset, so they are not used.
    this.#leases.delete(mapKey);
  }

  /** Returns unused hits. Call it before the store is closed. */
  close(): void {
    this.#isClosed = true;
    for (const lease of this.#leases.values()) {
      lease.cancelTimer();
      this.#giveBack(lease);
    }
    this.#leases.clear();
  }

  #answerFromLease(request: CountRequest, hit: Hit, lease: Lease, nowMs: number): void {
    lease.unused -= hit.hits;
    hit.after = lease.hit.limit - lease.remaining - lease.unused;
    if (hit.limiter !== undefined) {
      const passed = Math.floor((nowMs - lease.sentMs) / 1_000);
      hit.limiter.resetSeconds = Math.max(1, (lease.hit.limiter?.resetSeconds ?? 0) - passed);
      hit.limiter.waitSeconds = 0;
      hit.limiter.closedMs = 0;
    }
    this.#fromLease.add(1);
    // A request is never settled from inside `count`.
    if (this.#answered.push(request) === 1) setImmediate(this.#settleAnswered);
  }

  readonly #settleAnswered = (): void => {
    const requests = this.#answered;
    this.#answered = [];
    for (const request of requests) request.settle(undefined);
  };

  /** Counts these hits alone; afterwards the rest of the limit is known, so a missing lease can begin. */
  #countAlone(request: CountRequest, hit: Hit): void {
    const sentMs = this.#clock.monotonicMs();
    const sent = toSent(hit, hit.hits);
    this.#send(request, sent, (error) => {
      if (error === undefined) {
        hit.after = sent.after;
        this.#begin(sent, sentMs);
      }
      request.settle(error);
    });
  }

  /** Begins a lease without hits: the next request takes some. */
  #begin(sent: Hit, sentMs: number): void {
    const remaining = Math.max(0, sent.limit - sent.after);
    const isFull = this.#leases.has(sent.mapKey) || this.#leases.size >= maxKeys;
    if (this.#isClosed || isFull || isLow(sent, remaining)) return;
    const lease: Lease = {
      hit: sent,
      unused: 0,
      remaining,
      sentMs,
      untilMs: this.#clock.monotonicMs() + forMs(sent),
      windowEndMs: findWindowEnd(sent, sentMs),
      isLeasing: false,
      cancelTimer() {},
    };
    this.#leases.set(sent.mapKey, lease);
    this.#watch(lease);
  }

  /** Takes the next lease with the hits that the request lacks: of 60 hits with 48 unused ones these are 12. */
  #leaseMore(request: CountRequest, hit: Hit, lease: Lease): void {
    const sentMs = this.#clock.monotonicMs();
    if (sentMs >= lease.untilMs) this.#giveBack(lease);
    const unusedBefore = lease.unused;
    const lacking = hit.hits - unusedBefore;
    const isLate = sentMs >= findLastMs(lease, hit);
    const part = isLate || isLow(hit, lease.remaining) ? 0 : (hit.lease?.share ?? 0);
    const share = Math.floor(part * lease.remaining);
    const asked = Math.max(lacking, share);
    // Unused hits are reserved for this request until the store answers.
    lease.unused = 0;
    lease.isLeasing = true;
    const sent = toSent(hit, asked);
    this.#send(request, sent, (error) => {
      lease.isLeasing = false;
      if (error !== undefined) {
        this.#retain(lease, unusedBefore);
        request.settle(error);
        return;
      }
      lease.hit = sent;
      lease.sentMs = sentMs;
      lease.windowEndMs = findWindowEnd(sent, sentMs);
      lease.remaining = Math.max(0, sent.limit - sent.after);
      const granted = countGranted(sent, asked);
      if (granted >= lacking) {
        // A fixed window also counts the hits over its limit: they are returned.
        this.#release(lease, asked - granted);
        lease.untilMs = Math.min(this.#clock.monotonicMs() + forMs(hit), findLastMs(lease, hit));
        const unused = granted - lacking;
        hit.after = sent.limit - lease.remaining - unused;
        this.#retain(lease, unused);
      } else if (asked > lacking && !isAtLowest(sent)) {
        // The share exceeds what remains: its hits are returned if they were counted. The request alone may still fit.
        if (sent.limiter?.window.countsOver !== false) this.#release(lease, asked);
        this.#retain(lease, unusedBefore);
        // A share would not fit for the next requests either: they ask for none until the store has answered one.
        lease.remaining = 0;
        this.#countAlone(request, hit);
        return;
      } else {
        // The request is refused: fewer hits were granted than asked for, so `after` is over the limit.
        hit.after = sent.after;
        this.#retain(lease, unusedBefore);
      }
      request.settle(undefined);
    });
  }

  /** Call it after a call of the store: the worker may have begun to stop meanwhile. */
  #retain(lease: Lease, unused: number): void {
    lease.unused = unused;
    if (this.#isClosed) this.#giveBack(lease);
  }

  /** Sends a copy of the request's hit, with another number of hits. */
  #send(request: CountRequest, sent: Hit, settle: CountRequest['settle']): void {
    this.#store.count(new PartRequest(request, [sent], request.mode, settle));
  }

  #watch(lease: Lease): void {
    const leftMs = Math.max(0, lease.untilMs - this.#clock.monotonicMs());
    lease.cancelTimer = this.#clock.after(lease.isLeasing ? returnMs : leftMs, () => {
      if (lease.isLeasing || this.#clock.monotonicMs() < lease.untilMs) {
        this.#watch(lease);
        return;
      }
      this.#leases.delete(lease.hit.mapKey);
      this.#giveBack(lease);
    });
  }

  #giveBack(lease: Lease): void {
    dropOverflow(lease, this.#clock.monotonicMs());
    this.#release(lease, lease.unused);
    lease.unused = 0;
  }

  /** Returns hits to the store. No caller waits for it; hits lost on the way count until the window ends. */
  #release({ hit, windowEndMs }: Lease, hits: number): void {
    if (hits <= 0) return;
    this.#store.count({
      // With a separate answer: the lease continues with the one it was taken with.
      hits: [{ ...hit, hits, refund: true, limiter: hit.limiter && { ...hit.limiter } }],
      mode: 'add',
      deadlineMs: Math.min(this.#clock.monotonicMs() + returnMs, windowEndMs),
      cancelled: false,
      settle() {},
    });
  }
}

/**
 * A bucket refills while some of its tokens are leased. Without the lease, tokens beyond its capacity would never have
 * existed: they are dropped. Of 20 tokens, with 10 remaining and 5 refilled since, there is room for 5 unused ones.
 */
function dropOverflow(lease: Lease, nowMs: number): void {
  const { limit, limiter } = lease.hit;
  if (limiter?.window.algorithm !== 'token_bucket' || lease.unused === 0) return;
  const { window } = limiter;
  const refilled = ((nowMs - lease.sentMs) * window.limit) / (window.windowSeconds * 1_000);
  const room = limit - lease.remaining - Math.ceil(refilled);
  lease.unused = Math.max(0, Math.min(lease.unused, room));
}

function forMs({ lease }: Hit): number {
  return lease?.forMs ?? 0;
}

/** The earliest end of the window: the store answered later than `sentMs`. */
function findWindowEnd({ limiter }: Hit, sentMs: number): number {
  const windowLeftMs = limiter?.windowLeftMs ?? -1;
  return windowLeftMs < 0 ? Number.POSITIVE_INFINITY : sentMs + windowLeftMs;
}

/** Hits of one sliding window must not be used in the next: unused ones are returned so early that they arrive before. */
function findLastMs({ windowEndMs }: Lease, hit: Hit): number {
  return windowEndMs - forMs(hit);
}

function isLow({ limit }: Hit, remaining: number): boolean {
  return remaining < Math.max(leastRemaining, limit * leastPart);
}

/** How many of the hits asked for fit into the limit; a limiter grants all or none. */
function countGranted({ after, limit, limiter }: Hit, asked: number): number {
  if (limiter !== undefined) return after <= limit ? asked : 0;
  const before = after - asked;
  return Math.max(0, Math.min(after, limit) - before);
}

/** A bucket's lowest level is reached at twice its capacity: hits below it are not counted, so none are returned. */
function isAtLowest({ after, limit, limiter }: Hit): boolean {
  const window = limiter?.window;
  return window?.algorithm === 'token_bucket' && window.countsOver && after >= 2 * limit;
}

/**
 * The copy that a lease retains. Its fields are listed, as `...hit` would also copy what a decision's hit has beyond
 * them: its match, and with it texts of the request.
 */
function toSent(hit: Hit, hits: number): Hit {
  const { key, mapKey, exactHits, refund, limit, windowSeconds } = hit;
  const { limiter, lease, unit, descriptorIndex, stopsOthers, after } = hit;
  return {
    ...{ key: owned(key), mapKey: owned(mapKey), hits, exactHits, refund, limit, windowSeconds },
    ...{ limiter, lease, unit, descriptorIndex, stopsOthers, after },
  };
}
