// Limits how many tasks of a kind run at once.

/** Admits so many at once; further callers wait for their turn. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a slot; rejects with the signal's reason. Disposing of the slot passes it to the next caller. */
  async acquire(signal: AbortSignal | undefined): Promise<AsyncDisposable> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#wait(signal);
    return { [Symbol.asyncDispose]: async () => this.#leave() };
  }

  async #wait(signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = () => {
      this.#waiting.delete(resolve);
      reject(signal?.reason);
    };
    this.#waiting.add(resolve);
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}

/** A semaphore of which each caller can hold only a share, so that the rest remains for others. */
export class SharedSemaphore {
  readonly #all: Semaphore;
  readonly #share: number;
  /** The slots of each caller, by name: the size of its share. */
  readonly #own = new Map<string, Semaphore>();

  constructor(count: number, share: number) {
    this.#all = new Semaphore(count);
    this.#share = share;
  }

  /** As `Semaphore.acquire`. With `caller` undefined, callers are not distinguished. */
  async acquire(signal: AbortSignal | undefined, caller?: string): Promise<AsyncDisposable> {
    await using slots = new AsyncDisposableStack();
    if (caller !== undefined) {
      const own = this.#own.get(caller) ?? new Semaphore(this.#share);
      this.#own.set(caller, own);
      slots.use(await own.acquire(signal));
    }
    slots.use(await this.#all.acquire(signal));
    return slots.move();
  }
}
