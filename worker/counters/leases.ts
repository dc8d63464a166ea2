// Leases (behaviour: leases): a worker takes many hits of a hot counter from the store at once and answers
// from them, so that nearly no decision on it is a call. Hits of a lease are counted when it is taken:
// admitted hits never pass the limit, and unused ones are given back.
import type { Clock } from '../../shared/clock.ts';
import type { AppError } from '../../shared/errors.ts';
import type { Metrics } from '../metrics.ts';
import type { CounterStore, CountRequest, Hit } from './store.ts';

/** Limit of keys with a lease; decisions on further keys ask the store. */
const maxKeys = 10_000;
/** No lease is taken below this many hits, or this share of the limit: the last hits are exact. */
const leastRemaining = 10;
const leastPart = 0.01;
/** How long giving back may take. */
const returnMs = 1_000;

export interface LeaseDeps {
  readonly store: CounterStore;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

export interface Leases {
  /** As CounterStore.count, for a request with one hit whose limit has a lease. */
  count(request: CountRequest): void;
  /** The counter was reset, and hits that were taken with it. */
  forget(mapKey: string): void;
  /** Gives back unused hits. Call it before the store is closed. */
  close(): void;
}

interface Lease {
  readonly hit: Hit;
  /** Hits counted in the store and not yet used. */
  left: number;
  /** On the monotonic clock. */
  untilMs: number;
  /** What the limit had left at the last call to the store, without this lease. */
  remaining: number;
  /** A call for the next lease is in flight. */
  isTaking: boolean;
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
  return { count, forget, close };

  function count(request: CountRequest): void {
    const [hit] = request.hits as readonly [Hit];
    const isPlain = !hit.refund && hit.hits > 0 && hit.exactHits === undefined;
    if (!isPlain || request.mode === 'look') {
      store.count(request);
      return;
    }
    const lease = leases.get(hit.mapKey);
    if (lease !== undefined && lease.left >= hit.hits && clock.monotonicMs() < lease.untilMs) {
      answerFromLease(request, hit, lease);
    } else if (lease === undefined || lease.isTaking) {
      ask(request, hit, lease);
    } else {
      take(request, hit, lease);
    }
  }

  function answerFromLease(request: CountRequest, hit: Hit, lease: Lease): void {
    lease.left -= hit.hits;
    hit.after = lease.hit.limit - lease.remaining - lease.left;
    hit.resetSeconds = lease.hit.resetSeconds;
    hit.closedSeconds = 0;
    fromLease.add(1);
    // A request is never settled from inside `count`.
    if (answered.push(request) === 1) setImmediate(settleAnswered);
  }

  function settleAnswered(): void {
    const requests = answered;
    answered = [];
    for (const request of requests) request.settle(undefined);
  }

  /** Counts these hits alone; afterwards it is known what the limit has left. */
  function ask(request: CountRequest, hit: Hit, lease: Lease | undefined): void {
    send(request, hit, hit.hits, (error, sent) => {
      if (error === undefined) {
        copyAnswer(sent, hit);
        if (lease === undefined) begin(sent);
      }
      request.settle(error);
    });
  }

  function begin(sent: Hit): void {
    const remaining = Math.max(0, sent.limit - sent.after);
    if (leases.has(sent.mapKey) || leases.size >= maxKeys || isLow(sent, remaining)) return;
    const forMs = sent.lease?.forMs ?? 0;
    const untilMs = clock.monotonicMs() + forMs;
    const lease = { hit: sent, left: 0, untilMs, remaining, isTaking: false, cancelTimer() {} };
    leases.set(sent.mapKey, lease);
    watch(lease);
  }

  function isLow({ limit }: Hit, remaining: number): boolean {
    return remaining < Math.max(leastRemaining, limit * leastPart);
  }

  function take(request: CountRequest, hit: Hit, lease: Lease): void {
    const { share, forMs } = hit.lease ?? { share: 0, forMs: 0 };
    const isOver = clock.monotonicMs() >= lease.untilMs;
    if (isOver) giveBack(lease);
    const kept = lease.left;
    const need = hit.hits - kept;
    const wanted = isLow(hit, lease.remaining) ? 0 : Math.floor(share * lease.remaining);
    const amount = Math.max(need, wanted);
    lease.left = 0;
    lease.isTaking = true;
    send(request, hit, amount, (error, sent) => {
      lease.isTaking = false;
      if (error !== undefined) {
        lease.left += kept;
        request.settle(error);
        return;
      }
      const granted = countGranted(sent, amount);
      lease.remaining = Math.max(0, sent.limit - Math.min(sent.after, sent.limit));
      if (kept + granted < hit.hits && amount > need) {
        // Less is left than a lease: the hits alone may still fit.
        release(sent, sent.limiter === undefined || sent.limiter.countsOver ? amount : 0);
        lease.left += kept;
        lease.remaining = 0;
        ask(request, hit, lease);
        return;
      }
      copyAnswer(sent, hit);
      const left = kept + granted - hit.hits;
      if (left < 0) {
        lease.left += kept;
        hit.after = Math.max(sent.after, sent.limit + 1);
      } else {
        // What passed the limit was not granted.
        if (sent.limiter === undefined) release(sent, amount - granted);
        lease.left += left;
        lease.untilMs = clock.monotonicMs() + forMs;
        hit.after = sent.limit - lease.remaining - left;
      }
      request.settle(undefined);
    });
  }

  /** Those of the requested hits that fit. */
  function countGranted({ after, limit, limiter }: Hit, amount: number): number {
    if (limiter !== undefined) return after <= limit ? amount : 0;
    return Math.max(0, Math.min(after, limit) - (after - amount));
  }

  /** The request's hit with another number of hits on the same counter. */
  function send(
    request: CountRequest,
    hit: Hit,
    hits: number,
    done: (error: AppError | undefined, sent: Hit) => void,
  ): void {
    const sent = { ...hit, hits };
    store.count({
      hits: [sent],
      mode: request.mode,
      deadlineMs: request.deadlineMs,
      get cancelled() {
        return request.cancelled;
      },
      set cancelled(value) {
        request.cancelled = value;
      },
      settle: (error) => done(error, sent),
    });
  }

  function copyAnswer(from: Hit, to: Hit): void {
    to.after = from.after;
    to.resetSeconds = from.resetSeconds;
    to.closedSeconds = from.closedSeconds;
  }

  function watch(lease: Lease): void {
    const waitMs = Math.max(0, lease.untilMs - clock.monotonicMs());
    lease.cancelTimer = clock.after(waitMs, () => {
      if (lease.isTaking || clock.monotonicMs() < lease.untilMs) {
        watch(lease);
        return;
      }
      leases.delete(lease.hit.mapKey);
      giveBack(lease);
    });
  }

  function giveBack(lease: Lease): void {
    const { left } = lease;
    lease.left = 0;
    release(lease.hit, left);
  }

  /** Nobody waits for it; hits lost on the way count until the window ends. */
  function release(hit: Hit, hits: number): void {
    if (hits <= 0) return;
    store.count({
      hits: [{ ...hit, hits, refund: true }],
      mode: 'add',
      deadlineMs: clock.monotonicMs() + returnMs,
      cancelled: false,
      settle() {},
    });
  }

  function forget(mapKey: string): void {
    const lease = leases.get(mapKey);
    // What is being taken is counted after the reset.
    if (lease === undefined || lease.isTaking) return;
    lease.cancelTimer();
    leases.delete(mapKey);
  }

  function close(): void {
    for (const lease of leases.values()) {
      lease.cancelTimer();
      giveBack(lease);
    }
    leases.clear();
  }
}
