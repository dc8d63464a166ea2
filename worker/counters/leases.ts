// Leases (behaviour: leases): a worker takes many hits of a hot counter from the store at once and admits hits from
// them, so that few decisions on it call the store. Hits of a lease are counted when it is taken: admitted hits never
// exceed the limit, and unused ones are returned.
import type { Clock } from '../../shared/clock.ts';
import type { AppError } from '../../shared/errors.ts';
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

export interface Leases {
  /** As CounterStore.count, for a request with one hit whose limit has a lease. */
  count(request: CountRequest): void;
  /** Call it when the counter was reset: the hits taken from it are gone too. */
  forget(mapKey: string): void;
  /** Returns unused hits. Call it before the store is closed. */
  close(): void;
}

interface Lease {
  /** The hit that was sent last, with the store's answer. */
  hit: Hit;
  /** Hits counted in the store and not yet used. */
  left: number;
  /** How much of the limit remained at the last call to the store, without this lease. */
  remaining: number;
  /**
   * When that call began, when the lease ends, and when the window of its hits ends, all on the monotonic clock. Only a
   * sliding window has such an end: a fixed window is part of the key, a bucket has none.
   */
  sentMs: number;
  untilMs: number;
  windowEndMs: number;
  /** A call for the next lease is in flight. */
  isLeasing: boolean;
  cancelTimer: () => void;
}

export function createLeases({ store, clock, metrics }: LeaseDeps): Leases {
  const leases = new Map<string, Lease>();
  const open = metrics.gauge('ratelimit.lease.open');
  const unused = metrics.gauge('ratelimit.lease.unused_hits');
  const fromLease = metrics.counter('ratelimit.lease.decisions');
  metrics.beforeReading(() => {
    let hits = 0;
    for (const { left } of leases.values()) hits += left;
    open.set(leases.size);
    unused.set(hits);
  });
  let answered: CountRequest[] = [];
  let closed = false;
  return { count, forget, close };

  function count(request: CountRequest): void {
    const [hit] = request.hits as readonly [Hit];
    const isPlain = !hit.refund && hit.hits > 0 && hit.exactHits === undefined;
    if (!isPlain || request.mode === 'look') {
      store.count(request);
      return;
    }
    const lease = leases.get(hit.mapKey);
    const nowMs = clock.monotonicMs();
    if (lease !== undefined) dropOverflow(lease, nowMs);
    if (lease !== undefined && lease.left >= hit.hits && nowMs < lease.untilMs) {
      answerFromLease(request, hit, lease, nowMs);
    } else if (lease === undefined || lease.isLeasing) {
      ask(request, hit, lease);
    } else {
      leaseMore(request, hit, lease);
    }
  }

  /**
   * A bucket refills while some of its tokens are leased. Without the lease, tokens beyond its capacity would never
   * have existed: they are dropped.
   */
  function dropOverflow(lease: Lease, nowMs: number): void {
    const { limit, limiter } = lease.hit;
    if (limiter?.window.algorithm !== 'token_bucket' || lease.left === 0) return;
    const { window } = limiter;
    const refilled = ((nowMs - lease.sentMs) * window.limit) / (window.windowSeconds * 1_000);
    const room = limit - lease.remaining - Math.ceil(refilled);
    lease.left = Math.max(0, Math.min(lease.left, room));
  }

  function answerFromLease(request: CountRequest, hit: Hit, lease: Lease, nowMs: number): void {
    lease.left -= hit.hits;
    hit.after = lease.hit.limit - lease.remaining - lease.left;
    if (hit.limiter !== undefined) {
      const passed = Math.floor((nowMs - lease.sentMs) / 1_000);
      hit.limiter.resetSeconds = Math.max(1, (lease.hit.limiter?.resetSeconds ?? 0) - passed);
      hit.limiter.waitSeconds = 0;
      hit.limiter.closedMs = 0;
    }
    fromLease.add(1);
    // A request is never settled from inside `count`.
    if (answered.push(request) === 1) setImmediate(settleAnswered);
  }

  function settleAnswered(): void {
    const requests = answered;
    answered = [];
    for (const request of requests) request.settle(undefined);
  }

  /** Counts these hits alone; afterwards the rest of the limit is known. */
  function ask(request: CountRequest, hit: Hit, lease: Lease | undefined): void {
    const sentMs = clock.monotonicMs();
    send(request, hit, hit.hits, (error, sent) => {
      if (error === undefined) {
        hit.after = sent.after;
        if (lease === undefined) begin(sent, sentMs);
      }
      request.settle(error);
    });
  }

  /** Starts a lease without hits: the next request takes some. */
  function begin(sent: Hit, sentMs: number): void {
    const remaining = Math.max(0, sent.limit - sent.after);
    if (closed || leases.has(sent.mapKey) || leases.size >= maxKeys || isLow(sent, remaining))
      return;
    const lease: Lease = {
      hit: sent,
      left: 0,
      remaining,
      sentMs,
      untilMs: clock.monotonicMs() + forMs(sent),
      windowEndMs: findWindowEnd(sent, sentMs),
      isLeasing: false,
      cancelTimer() {},
    };
    leases.set(sent.mapKey, lease);
    watch(lease);
  }

  function forMs({ lease }: Hit): number {
    return lease?.forMs ?? 0;
  }

  /** The earliest end of the window: the store answered later than `sentMs`. */
  function findWindowEnd({ limiter }: Hit, sentMs: number): number {
    const windowLeftMs = limiter?.windowLeftMs ?? -1;
    return windowLeftMs < 0 ? Number.POSITIVE_INFINITY : sentMs + windowLeftMs;
  }

  function isLow({ limit }: Hit, remaining: number): boolean {
    return remaining < Math.max(leastRemaining, limit * leastPart);
  }

  /**
   * Hits of one sliding window must not be used or returned in the next, so a lease ends early enough for returned hits
   * to arrive before the window's end.
   */
  function isLate(hit: Hit, { windowEndMs }: Lease, nowMs: number): boolean {
    return nowMs >= windowEndMs - forMs(hit);
  }

  function leaseMore(request: CountRequest, hit: Hit, lease: Lease): void {
    const sentMs = clock.monotonicMs();
    if (sentMs >= lease.untilMs) giveBack(lease);
    const rest = lease.left;
    const need = hit.hits - rest;
    const isAlone = isLow(hit, lease.remaining) || isLate(hit, lease, sentMs);
    const wanted = isAlone ? 0 : Math.floor((hit.lease?.share ?? 0) * lease.remaining);
    const amount = Math.max(need, wanted);
    lease.left = 0;
    lease.isLeasing = true;
    send(request, hit, amount, (error, sent) => {
      lease.isLeasing = false;
      if (error !== undefined) {
        retain(lease, rest);
        request.settle(error);
        return;
      }
      const granted = countGranted(sent, amount);
      lease.hit = sent;
      lease.sentMs = sentMs;
      lease.windowEndMs = findWindowEnd(sent, sentMs);
      lease.remaining = Math.max(0, sent.limit - sent.after);
      const left = rest + granted - hit.hits;
      if (left < 0 && amount > need && !isAtLowest(sent)) {
        // Fewer hits than the lease remain: the requested hits alone may still fit.
        if (sent.limiter === undefined || sent.limiter.window.countsOver) release(lease, amount);
        retain(lease, rest);
        lease.remaining = 0;
        ask(request, hit, lease);
        return;
      }
      hit.after = sent.after;
      if (left < 0) {
        retain(lease, rest);
        hit.after = Math.max(sent.after, sent.limit + 1);
      } else {
        // Hits over the limit were not granted.
        if (sent.limiter === undefined) release(lease, amount - granted);
        lease.untilMs = Math.min(clock.monotonicMs() + forMs(hit), lease.windowEndMs - forMs(hit));
        hit.after = sent.limit - lease.remaining - left;
        retain(lease, left);
      }
      request.settle(undefined);
    });
  }

  /** Call it after a call of the store: the worker may have begun to stop meanwhile. */
  function retain(lease: Lease, left: number): void {
    lease.left = left;
    if (closed) giveBack(lease);
  }

  /** How many of the requested hits fit into the limit. */
  function countGranted({ after, limit, limiter }: Hit, amount: number): number {
    if (limiter !== undefined) return after <= limit ? amount : 0;
    return Math.max(0, Math.min(after, limit) - (after - amount));
  }

  /** A bucket that counts hits over the limit has a lowest level: hits below it were not all counted. */
  function isAtLowest({ after, limit, limiter }: Hit): boolean {
    const window = limiter?.window;
    return window?.algorithm === 'token_bucket' && window.countsOver && after >= 2 * limit;
  }

  /** Sends a copy of the request's hit with another number of hits on the same counter. */
  function send(
    request: CountRequest,
    hit: Hit,
    hits: number,
    done: (error: AppError | undefined, sent: Hit) => void,
  ): void {
    const sent = toSent(hit, hits);
    const settle = (error: AppError | undefined) => done(error, sent);
    store.count(new PartRequest(request, [sent], request.mode, settle));
  }

  function watch(lease: Lease): void {
    const waitMs = lease.isLeasing ? returnMs : Math.max(0, lease.untilMs - clock.monotonicMs());
    lease.cancelTimer = clock.after(waitMs, () => {
      if (lease.isLeasing || clock.monotonicMs() < lease.untilMs) {
        watch(lease);
        return;
      }
      leases.delete(lease.hit.mapKey);
      giveBack(lease);
    });
  }

  function giveBack(lease: Lease): void {
    dropOverflow(lease, clock.monotonicMs());
    const { left } = lease;
    lease.left = 0;
    release(lease, left);
  }

  /** No caller waits for it; hits lost on the way count until the window ends. */
  function release({ hit, windowEndMs }: Lease, hits: number): void {
    if (hits <= 0) return;
    store.count({
      // With a separate answer: the lease continues with the one it was taken with.
      hits: [{ ...hit, hits, refund: true, limiter: hit.limiter && { ...hit.limiter } }],
      mode: 'add',
      deadlineMs: Math.min(clock.monotonicMs() + returnMs, windowEndMs),
      cancelled: false,
      settle() {},
    });
  }

  function forget(mapKey: string): void {
    leases.get(mapKey)?.cancelTimer();
    // Even while hits are being taken: the store may have counted them before the reset, so they are not used.
    leases.delete(mapKey);
  }

  function close(): void {
    closed = true;
    for (const lease of leases.values()) {
      lease.cancelTimer();
      giveBack(lease);
    }
    leases.clear();
  }
}

/** The copy that a lease retains: the hit of a decision also has its match, and with it texts of the request. */
function toSent(hit: Hit, hits: number): Hit {
  const { key, mapKey, exactHits, refund, limit, windowSeconds } = hit;
  const { limiter, lease, unit, descriptorIndex, stopsOthers, after } = hit;
  return {
    ...{ key: owned(key), mapKey: owned(mapKey), hits, exactHits, refund, limit, windowSeconds },
    ...{ limiter, lease, unit, descriptorIndex, stopsOthers, after },
  };
}
