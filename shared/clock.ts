// Time as the rest of the code sees it, so that tests can turn the clock by hand.

/** Wall time cuts windows; monotonic time measures waits. Both in milliseconds. */
export interface Clock {
  /** Milliseconds since the Unix epoch; may jump when the host's clock is set. */
  wallMs(): number;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonicMs(): number;
  /** Runs `task` once after `delayMs`. The returned function cancels it; cancelling twice is fine. */
  after(delayMs: number, task: () => void): () => void;
}

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after: (delayMs, task) => {
    const timer = setTimeout(task, delayMs);
    return () => clearTimeout(timer);
  },
};
