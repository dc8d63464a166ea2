// How long to wait before trying again: longer after each failure. When to count a failure, and when
// to begin anew, is left to the caller.

export interface BackoffOptions {
  /** The wait after the first failure. */
  readonly initialMs: number;
  /** No wait is longer. */
  readonly maxMs: number;
  /** Each wait is this many times the one before; at least 1. */
  readonly multiplier: number;
  /** A number from 0 to below 1 for each wait that is to vary; undefined: no wait varies. */
  readonly random: (() => number) | undefined;
}

/**
 * Milliseconds to wait after `failures` failures in a row before this one (0 for the first):
 * min(max, initial x multiplier^failures). What varies lies between the first wait and the wait
 * after the next failure, so that clients which fail together do not come back together; at -1 that
 * is the first wait itself.
 */
export function backoffDelayMs(options: BackoffOptions, failures: number): number {
  const { initialMs, random } = options;
  if (random === undefined) return delayAfter(options, failures);
  const lowest = Math.min(initialMs, options.maxMs);
  return lowest + random() * (delayAfter(options, failures + 1) - lowest);
}

function delayAfter({ initialMs, maxMs, multiplier }: BackoffOptions, failures: number): number {
  // A power may be infinite, and nothing times that is not a number.
  return initialMs === 0 ? 0 : Math.min(maxMs, initialMs * multiplier ** failures);
}
