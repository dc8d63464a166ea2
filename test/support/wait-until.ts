// Waiting for a condition that no event announces, always with an end.
import { setTimeout as sleep } from 'node:timers/promises';

/** Looks every `pauseMs` until `check` gives true; false when `timeoutMs` have passed without. */
export async function waitUntil(
  check: () => boolean | Promise<boolean>,
  timeoutMs: number,
  pauseMs = 20,
): Promise<boolean> {
  const giveUpAtMs = performance.now() + timeoutMs;
  for (;;) {
    if (await check()) {
      return true;
    }
    if (performance.now() > giveUpAtMs) {
      return false;
    }
    await sleep(pauseMs);
  }
}
