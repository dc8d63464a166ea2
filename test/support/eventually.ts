// Waiting for what must come to hold: a test that waits in vain fails, and says for what.
import { waitUntil } from './wait-until.ts';

/** Resolves when `condition` holds; fails naming `what` when it does not within `timeoutMs`. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 60_000,
): Promise<void> {
  if (await waitUntil(condition, timeoutMs, 5)) return;
  throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
}
