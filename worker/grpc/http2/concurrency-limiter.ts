// Runs a bounded number of tasks at the same time; others wait.

type Task = (done: () => void) => void;

export class ConcurrencyLimiter {
  readonly #max: number;
  readonly #waiting: Task[] = [];
  #running = 0;
  #isStarting = false;

  constructor(max: number) {
    this.#max = max;
  }

  /** Runs the task now or later; the task calls `done` once, possibly before it returns. */
  run(task: Task): void {
    this.#waiting.push(task);
    this.#start();
  }

  /** A loop instead of recursion, for tasks that finish immediately. */
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
