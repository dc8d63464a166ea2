// Runs long work in slices on a thread that also serves requests; between two slices the event loop runs.
import { setImmediate } from 'node:timers/promises';
import { collectYoungObjects } from './young-objects.ts';

/** How long one slice may block the thread. A garbage collection of what was made may add a millisecond or two. */
const sliceMs = 1;

/** Runs `work` to its end, pausing at a `yield` when the slice is used up. */
export async function runInSlices<Result>(work: Iterator<void, Result>): Promise<Result> {
  for (;;) {
    const endMs = performance.now() + sliceMs;
    do {
      const step = work.next();
      if (step.done) return step.value;
    } while (performance.now() < endMs);
    collectYoungObjects();
    await setImmediate();
  }
}

/** Runs `work` to its end without pauses. */
export function runAtOnce<Result>(work: Iterator<void, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
