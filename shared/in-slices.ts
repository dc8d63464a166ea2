// Runs long work in slices on a thread that also serves requests; the event loop runs between any two slices, of whichever
// work: a hundred requests that come together block others for as long as one.
import { setImmediate } from 'node:timers/promises';

/** How long one slice may block the thread. Garbage collections of what was made come beside: collecting new
 * objects here, a few at a time, made V8's own marking of old ones end in one pause of up to 50 ms. */
const sliceMs = 1;

/** Runs `work` to its end, pausing at a `yield` when the slice is used up. */
export async function runInSlices<Result>(work: Iterator<void, Result>): Promise<Result> {
  const entered = slices.enter();
  if (entered !== undefined) await entered;
  try {
    return await runEntered(work);
  } finally {
    slices.leave();
  }
}

async function runEntered<Result>(work: Iterator<void, Result>): Promise<Result> {
  for (;;) {
    const begun = slices.begin();
    // What is begun together is to see how long the others took: the first slice of each is done here.
    const endMs = typeof begun === 'number' ? begun : await begun;
    do {
      const step = work.next();
      if (step.done) return step.value;
    } while (performance.now() < endMs);
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

/** Resolves when the caller may do a slice of its work: at once where that of this turn of the event loop is not used up. */
export async function beginSlice(): Promise<void> {
  await slices.begin();
}

/** What is done in turns; more would all hold what they have made so far. */
const mostAtOnce = 8;

/** One in each turn of the event loop, in the order in which they were asked for. */
class Slices {
  #entered = 0;
  readonly #outside: (() => void)[] = [];
  /** Of the slice of this turn; undefined before it. */
  #endMs: number | undefined;
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** Undefined where the work may begin at once; it leaves when it has ended. */
  enter(): Promise<void> | undefined {
    if (this.#entered < mostAtOnce) {
      this.#entered++;
      return undefined;
    }
    return new Promise((resolve) => void this.#outside.push(resolve));
  }

  leave(): void {
    const next = this.#outside.shift();
    if (next === undefined) this.#entered--;
    else next();
  }

  /** The time when the slice ends, once it may be done. */
  begin(): number | Promise<number> {
    if (this.#waiting === 0) {
      if (this.#endMs === undefined) return this.#open();
      if (performance.now() < this.#endMs) return this.#endMs;
    }
    this.#waiting++;
    const begun = this.#last.then(() => setImmediate()).then(() => this.#openNext());
    this.#last = begun;
    return begun;
  }

  #openNext(): number {
    this.#waiting--;
    return this.#open();
  }

  #open(): number {
    const endMs = performance.now() + sliceMs;
    this.#endMs = endMs;
    void this.#endWithTurn(endMs);
    return endMs;
  }

  async #endWithTurn(endMs: number): Promise<void> {
    await setImmediate();
    if (this.#endMs === endMs) this.#endMs = undefined;
  }
}

const slices = new Slices();

/** Runs `work` to its end without pauses. */
export function runAtOnce<Result>(work: Iterator<void, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
