// How long to wait before trying again: longer after each failure. The caller decides what counts as a
// failure and when to start over.

export interface BackoffOptions {
  /** The wait after the first failure. */
  readonly initialMs: number;
  /** The longest wait. */
  readonly maxMs: number;
  /** Each wait is this many times the one before; at least 1. */
  readonly multiplier: number;
  /** Jitter: returns a number from 0 to below 1 for each wait; undefined for no jitter. */
  readonly random: (() => number) | undefined;
}

/**
 * Milliseconds to wait after `failures` consecutive failures before this one (0 for the first): min(max, initial x
 * multiplier^failures). With jitter, the wait lies between the first wait and the wait after the next failure, so that
 * clients that fail together do not reconnect together; with `failures` of -1 it is then the first wait.
 */
export function backoffDelayMs(options: BackoffOptions, failures: number): number {
  const { initialMs, random } = options;
  if (random === undefined) return delayAfter(options, failures);
  const lowest = Math.min(initialMs, options.maxMs);
  return lowest + random() * (delayAfter(options, failures + 1) - lowest);
}

function delayAfter({ initialMs, maxMs, multiplier }: BackoffOptions, failures: number): number {
  // The power may be infinite, and 0 times infinity is NaN.
  return initialMs === 0 ? 0 : Math.min(maxMs, initialMs * multiplier ** failures);
}
