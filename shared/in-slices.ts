// Runs long work in slices on a thread that also serves requests; the event loop runs between two slices.
import { setImmediate } from 'node:timers/promises';

/**
 * How long slices may block the thread in one turn of the event loop; work that runs at the same time shares this time.
 * Garbage collections add to it: collecting new objects here, a few at a time, made V8's own marking of old ones end in
 * one pause of up to 50 ms.
 */
const sliceMs = 1;

/** Work that has begun and has not ended. */
let running = 0;

/** Runs `work` to its end, pausing at a `yield` when the slice is used up. */
export async function runInSlices<Result>(work: Iterator<void, Result>): Promise<Result> {
  running++;
  try {
    for (;;) {
      const endMs = performance.now() + sliceMs / running;
      do {
        const step = work.next();
        if (step.done) return step.value;
      } while (performance.now() < endMs);
      await setImmediate();
    }
  } finally {
    running--;
  }
}

/** The pauses of asynchronous work, which also waits between its steps. */
export class Pauses {
  #endMs = 0;

  /** Pauses when the slice is used up. */
  async next(): Promise<void> {
    if (performance.now() < this.#endMs) return;
    await setImmediate();
    this.#endMs = performance.now() + sliceMs;
  }
}

let lastTurn: Promise<unknown> = Promise.resolve();

/** Resolves in a turn of the event loop that no other caller shares: for a step that may take longer than a slice. */
export async function ownTurn(): Promise<void> {
  const turn = lastTurn.then(() => setImmediate());
  lastTurn = turn;
  await turn;
}

/** Runs `work` to its end without pauses; calls `check` at each `yield`. */
export function runAtOnce<Result>(work: Iterator<void, Result>, check = () => {}): Result {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    check();
  }
}
