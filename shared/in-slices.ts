// Runs long work in slices on a thread that also serves requests; between two slices the event loop runs.
import { setImmediate } from 'node:timers/promises';

/** How long one slice may block the thread. Garbage collections of what was made come beside: collecting new
 * objects here, a few at a time, made V8's own marking of old ones end in one pause of up to 50 ms. */
const sliceMs = 1;

/** Runs `work` to its end, pausing at a `yield` when the slice is used up. */
export async function runInSlices<Result>(work: Iterator<void, Result>): Promise<Result> {
  for (;;) {
    const endMs = performance.now() + sliceMs;
    do {
      const step = work.next();
      if (step.done) return step.value;
    } while (performance.now() < endMs);
    await setImmediate();
  }
}

/** The pauses of work that itself waits between its steps. */
export class Pauses {
  #endMs = 0;

  /** Pauses when the slice is used up. */
  async take(): Promise<void> {
    if (performance.now() < this.#endMs) return;
    await setImmediate();
    this.#endMs = performance.now() + sliceMs;
  }
}

/** Runs `work` to its end without pauses. */
export function runAtOnce<Result>(work: Iterator<void, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
