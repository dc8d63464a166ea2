// Waits shorter than a millisecond, which Node's timers do not offer: the thread sleeps, then handles everything that
// has arrived.
import { writeFileSync } from 'node:fs';

const never = new Int32Array(new SharedArrayBuffer(4));
let sleptMs = 0;

/** Asks Linux to end this thread's sleeps on time instead of some 50 microseconds late. */
export function sharpenPauses(): void {
  try {
    writeFileSync('/proc/self/timerslack_ns', '1000');
  } catch {
    // Pauses are a little longer on other systems, or where this is not allowed.
  }
}

/**
 * Blocks the thread for `ms`, if above 0, then lets the event loop handle everything that has arrived, and calls
 * `callback`.
 */
export function afterPause(ms: number, callback: () => void): void {
  if (ms > 0) {
    const startedMs = performance.now();
    Atomics.wait(never, 0, 0, ms);
    sleptMs += performance.now() - startedMs;
  }
  setImmediate(callback);
}

/** Sum of all pauses in milliseconds. Node counts them as busy time of the event loop. */
export function pausedMs(): number {
  return sleptMs;
}
