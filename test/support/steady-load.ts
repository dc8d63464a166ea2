// A steady stream of requests, with the outcome of each, for tests that cause failures.
import { systemClock } from '../../shared/clock.ts';
import type { CounterStore } from '../../worker/counters/store.ts';
import { type CountOutcome, countOn, createHit, type HitOptions } from './counting.ts';

export interface Timing {
  /** The index passed to `ask`. */
  readonly index: number;
  /** On performance.now(). */
  readonly startedMs: number;
  readonly tookMs: number;
}

export interface SteadyLoad<Outcome> {
  /** Settled requests so far, in the order of settling. */
  readonly results: readonly (Outcome & Timing)[];
  /** The number of requests that are sent and not settled. */
  readonly open: number;
  /** The longest time that this process was stalled: no deadline can be met better than that. */
  readonly worstLagMs: number;
  /** Ends the stream; resolves when every request is settled. */
  stop(): Promise<readonly (Outcome & Timing)[]>;
}

/** If a busy machine answers more slowly than requests are due, at most this many wait: otherwise what servers and
 * proxies refuse above that, or a growing backlog, would resemble a loss. */
export const mostOpen = 100;

/** Sends this many requests a second; those that a busy machine delayed are sent later. */
export function startLoad<Outcome extends object>(
  perSecond: number,
  ask: (index: number) => Promise<Outcome>,
  limit = mostOpen,
): SteadyLoad<Outcome> {
  const results: (Outcome & Timing)[] = [];
  const open = new Set<Promise<void>>();
  const everyMs = 1000 / perSecond;
  const beganMs = performance.now();
  let sent = 0;
  let worstLagMs = 0;
  let lastTickMs = beganMs;
  let isOver = false;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    worstLagMs = Math.max(worstLagMs, nowMs - lastTickMs - everyMs);
    lastTickMs = nowMs;
    while (!isOver && sent * everyMs < nowMs - beganMs && open.size < limit) send(nowMs);
  }, everyMs);

  function send(startedMs: number): void {
    const index = sent++;
    const counted = ask(index).then((outcome) => {
      results.push({ ...outcome, index, startedMs, tookMs: performance.now() - startedMs });
      open.delete(counted);
    });
    open.add(counted);
  }

  return {
    results,
    get open() {
      return open.size;
    },
    get worstLagMs() {
      return worstLagMs;
    },
    async stop() {
      // The lag of this process matters until the last one is settled.
      isOver = true;
      await Promise.all(open);
      clearInterval(timer);
      return results;
    },
  };
}

export type LoadResult = CountOutcome & Timing;
export type StoreLoad = SteadyLoad<CountOutcome>;
export const loadPerSecond = 500;

/** `loadPerSecond` counting requests a second, each with a deadline of `timeoutMs`, however many wait. */
export function startSteadyLoad(
  store: CounterStore,
  timeoutMs: number,
  nextHits: (index: number) => readonly HitOptions[],
): StoreLoad {
  return startLoad(
    loadPerSecond,
    (index) =>
      countOn(store, nextHits(index).map(createHit), {
        deadlineMs: systemClock.monotonicMs() + timeoutMs,
      }),
    Number.POSITIVE_INFINITY,
  );
}
