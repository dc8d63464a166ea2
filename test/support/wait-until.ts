// Waiting for a condition that no event announces, always with an end.
import { setTimeout as sleep } from 'node:timers/promises';

/** Of the time waited so far, the next pause: the longer it takes, the less it matters to see it at once, and each
 * look costs the servers that are asked. */
const pauseShare = 1 / 20;
const longestPauseMs = 50;

/** Looks again and again until `check` gives true, at first every `pauseMs`; false when `timeoutMs` have passed
 * without. */
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
