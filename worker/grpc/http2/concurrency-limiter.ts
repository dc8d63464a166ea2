// Runs a bounded number of tasks at once; others wait.

type Task = (done: () => void) => void;

export class ConcurrencyLimiter {
  readonly #max: number;
  readonly #waiting: Task[] = [];
  #running = 0;
  #isStarting = false;

  constructor(max: number) {
    this.#max = max;
  }

  /** Runs the task now or later; it calls back once when it is done, possibly before it returns. */
  run(task: Task): void {
    this.#waiting.push(task);
    this.#start();
  }

  /** For a task that is done at once the loop continues, instead of recursing. */
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
