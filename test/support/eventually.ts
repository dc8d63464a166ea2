// Waits for a condition: a test that waits in vain fails, and names the condition.
import { waitUntil } from './wait-until.ts';

/** Resolves when `condition` holds; otherwise fails after `timeoutMs` with a message that contains `what`. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 60_000,
): Promise<void> {
  if (await waitUntil(condition, timeoutMs, 5)) return;
  throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
}
