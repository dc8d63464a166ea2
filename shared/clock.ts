// The clock that all code takes as a dependency; tests pass one that they advance by hand. Global timers are
// resolved at each use.
import { performance } from 'node:perf_hooks';

/** Wall time cuts windows; monotonic time measures waits. Both in milliseconds. */
export interface Clock {
  /** Milliseconds since the Unix epoch; may jump when the host's clock is set. */
  wallMs(): number;
  /** Milliseconds from an arbitrary start; never decreases. */
  monotonicMs(): number;
  /** Runs `task` once after `delayMs`. The returned function cancels it; cancelling twice is fine. */
  after(delayMs: number, task: () => void): () => void;
}

/** How old a cached answer of `wallMs` may be. */
const wallToleranceMs = 1;
let wall = Date.now();
let wallReadAtMs = performance.now();

export const systemClock: Clock = {
  // Reading the wall clock costs three times what the monotonic clock does, and each decision reads it.
  wallMs: () => {
    const nowMs = performance.now();
    if (nowMs - wallReadAtMs >= wallToleranceMs) {
      wall = Date.now();
      wallReadAtMs = nowMs;
    }
    return wall;
  },
  monotonicMs: () => performance.now(),
  after: (delayMs, task) => {
    const timer = setTimeout(task, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Runs `task`, which never rejects, `pauseMs` after the start and then `pauseMs` after each run ends. The
 * returned function stops it, without interrupting a run under way; calling it twice is fine. */
export function repeatAfter(clock: Clock, pauseMs: number, task: () => unknown): () => void {
  let isOver = false;
  let cancel = () => {};
  function scheduleNext(): void {
    if (isOver) return;
    cancel = clock.after(pauseMs, () => {
      const run = task();
      if (run instanceof Promise) void run.then(scheduleNext);
      else scheduleNext();
    });
  }
  scheduleNext();
  return () => {
    isOver = true;
    cancel();
  };
}
