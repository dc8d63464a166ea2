// Waits shorter than a millisecond, which timers of Node do not know: the thread sleeps, and looks
// between two sleeps whether anything came in.
import { writeFileSync } from 'node:fs';

const never = new Int32Array(new SharedArrayBuffer(4));

/** Asks Linux to end this thread's sleeps on time instead of some 50 microseconds late. */
export function sharpenPauses(): void {
  try {
    writeFileSync('/proc/self/timerslack_ns', '1000');
  } catch {
    // Elsewhere pauses are as they are; the send lag tells.
  }
}

/** Blocks the thread, then lets it take in what has arrived and calls back. */
export function afterPause(ms: number, callback: () => void): void {
  if (ms > 0) Atomics.wait(never, 0, 0, ms);
  setImmediate(callback);
}
