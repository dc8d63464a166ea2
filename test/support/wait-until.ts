// Waits for a condition that no event announces, always with a deadline.
import { setTimeout as sleep } from 'node:timers/promises';

/** The next pause as a share of the time waited so far: the longer it takes, the less an immediate result matters, and
 * each check costs the polled servers. */
const pauseShare = 1 / 20;
const longestPauseMs = 50;

/** Repeats `check` until it returns true, at first every `pauseMs`; false if it has not after `timeoutMs`. */
export async function waitUntil(
  check: () => boolean | Promise<boolean>,
  timeoutMs: number,
  pauseMs = 20,
): Promise<boolean> {
  const startedMs = performance.now();
  for (;;) {
    if (await check()) return true;
    const waitedMs = performance.now() - startedMs;
    if (waitedMs > timeoutMs) return false;
    await sleep(Math.max(pauseMs, Math.min(waitedMs * pauseShare, longestPauseMs)));
  }
}
