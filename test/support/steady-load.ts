// A steady stream of counting requests, with what became of each, for tests that break the store
// underneath it.
import { systemClock } from '../../shared/clock.ts';
import type { CounterStore } from '../../worker/counters/store.ts';
import { type CountOutcome, createHit, type HitOptions, startCounting } from './counting.ts';

export interface LoadResult extends CountOutcome {
  /** What `nextHits` was given. */
  readonly index: number;
  /** On performance.now(). */
  readonly startedMs: number;
}

export interface SteadyLoad {
  /** Settled so far, in the order of settling. */
  readonly results: readonly LoadResult[];
  /** Sent and not settled. */
  readonly open: number;
  /** The longest time that this process did nothing for itself: what no deadline can beat. */
  readonly worstLagMs: number;
  /** Sends nothing while `action` runs, which begins when nothing is open; afterwards what was due
   * meanwhile is sent at once. */
  between(action: () => Promise<unknown>): Promise<void>;
  /** Ends the stream; resolves when every request is settled. */
  stop(): Promise<readonly LoadResult[]>;
}

export const loadPerSecond = 500;
const everyMs = 1000 / loadPerSecond;

/** `loadPerSecond` requests a second, each with `timeoutMs` to live; those that a busy machine held
 * up are made up for. */
export function startSteadyLoad(
  store: CounterStore,
  timeoutMs: number,
  nextHits: (index: number) => readonly HitOptions[],
): SteadyLoad {
  const results: LoadResult[] = [];
  const open = new Set<Promise<void>>();
  let sent = 0;
  let worstLagMs = 0;
  let lastTickMs = performance.now();
  const beganMs = performance.now();
  let isHeld = false;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    worstLagMs = Math.max(worstLagMs, nowMs - lastTickMs - everyMs);
    lastTickMs = nowMs;
    while (!isHeld && sent * everyMs < nowMs - beganMs) send(nowMs);
  }, everyMs);

  function send(startedMs: number): void {
    const index = sent++;
    const { request, result } = startCounting(nextHits(index).map(createHit), {
      deadlineMs: systemClock.monotonicMs() + timeoutMs,
    });
    store.count(request);
    const kept = result.then((outcome) => {
      results.push({ ...outcome, index, startedMs });
      open.delete(kept);
    });
    open.add(kept);
  }

  return {
    results,
    get open() {
      return open.size;
    },
    get worstLagMs() {
      return worstLagMs;
    },
    async between(action) {
      isHeld = true;
      await Promise.all(open);
      await action();
      isHeld = false;
    },
    async stop() {
      // Until the last one is settled it matters how late this process is.
      isHeld = true;
      await Promise.all(open);
      clearInterval(timer);
      return results;
    },
  };
}
