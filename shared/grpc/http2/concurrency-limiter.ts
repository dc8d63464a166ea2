// Runs a bounded number of tasks at once; the others wait for their turn.

type Task = (done: () => void) => void;

export class ConcurrencyLimiter {
  readonly #max: number;
  readonly #waiting: Task[] = [];
  #running = 0;
  #isStarting = false;

  constructor(max: number) {
    this.#max = max;
  }

  /** Now or later; the task says once when it is done, possibly before it returns. */
  run(task: Task): void {
    this.#waiting.push(task);
    this.#start();
  }

  /** A task that is done at once lets the loop go on, instead of a call within a call for each. */
  #start(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    while (this.#running < this.#max) {
      const task = this.#waiting.shift();
      if (task === undefined) break;
      this.#running++;
      task(this.#done);
    }
    this.#isStarting = false;
  }

  readonly #done = (): void => {
    this.#running--;
    this.#start();
  };
}
