// Waits shorter than a millisecond, which timers of Node do not know: the thread sleeps, and looks
// after it whether anything came in.
import { writeFileSync } from 'node:fs';

const never = new Int32Array(new SharedArrayBuffer(4));
let sleptMs = 0;

/** Asks Linux to end this thread's sleeps on time instead of some 50 microseconds late. */
export function sharpenPauses(): void {
  try {
    writeFileSync('/proc/self/timerslack_ns', '1000');
  } catch {
    // Elsewhere, or where it is not allowed, pauses are a little longer.
  }
}

/** Blocks the thread for `ms`, if above 0, then lets it take in what has arrived and calls back. */
export function afterPause(ms: number, callback: () => void): void {
  if (ms > 0) {
    const startedMs = performance.now();
    Atomics.wait(never, 0, 0, ms);
    sleptMs += performance.now() - startedMs;
  }
  setImmediate(callback);
}

/** All pauses so far, in milliseconds. Node takes them for work of the event loop. */
export function pausedMs(): number {
  return sleptMs;
}
