// Runs a bounded number of tasks at once; the others wait for their turn.

export class Turns {
  readonly #max: number;
  readonly #waiting: ((done: () => void) => void)[] = [];
  #running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Now or later; the task says when it is done. */
  run(task: (done: () => void) => void): void {
    if (this.#running === this.#max) {
      this.#waiting.push(task);
      return;
    }
    this.#running++;
    task(() => {
      this.#running--;
      const next = this.#waiting.shift();
      if (next !== undefined) this.run(next);
    });
  }
}
