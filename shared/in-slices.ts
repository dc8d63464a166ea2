// Long work on a thread that has others to answer: it is done in slices, and between two of them all that
// waits has its turn.
import { setImmediate } from 'node:timers/promises';

/** What one slice may hold others up. */
const sliceMs = 2;

/** Runs `work` to its end, giving way at a `yield` when the slice is used up. */
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

/** Runs `work` to its end at once, where nobody waits. */
export function runAtOnce<Result>(work: Iterator<void, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
