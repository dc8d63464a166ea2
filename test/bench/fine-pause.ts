// Waits shorter than a millisecond, which timers of Node do not know: the thread sleeps, and looks
// between two sleeps whether anything came in.
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

const never = new Int32Array(new SharedArrayBuffer(4));

const urgent = -20;

/** Asks Linux to end this thread's sleeps on time instead of some 50 microseconds late, and to let it
 * run then before what else shares its processor. */
export function sharpenPauses(): void {
  for (const ask of [
    () => writeFileSync('/proc/self/timerslack_ns', '1000'),
    () => setPriority(urgent),
  ]) {
    try {
      ask();
    } catch {
      // Elsewhere, or without the right to it, pauses are as they are; the send lag tells.
    }
  }
}

/** Blocks the thread, then lets it take in what has arrived and calls back. */
export function afterPause(ms: number, callback: () => void): void {
  if (ms > 0) Atomics.wait(never, 0, 0, ms);
  setImmediate(callback);
}
