// Bounds how many of something there are at once.

/** So many at once; the others wait for their turn. */
export class Places {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Rejects with the signal's reason. Disposing of a place gives it to the next. */
  async take(signal: AbortSignal | undefined): Promise<AsyncDisposable> {
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

/** The same, of which one caller has no more than a share: those of others find a place. */
export class SharedPlaces {
  readonly #all: Places;
  readonly #share: number;
  /** By name of the caller, as many as there are tokens. */
  readonly #own = new Map<string, Places>();

  constructor(count: number, share: number) {
    this.#all = new Places(count);
    this.#share = share;
  }

  /** As Places.take. `caller` undefined: callers are not distinguished. */
  async take(signal: AbortSignal | undefined, caller?: string): Promise<AsyncDisposable> {
    await using places = new AsyncDisposableStack();
    if (caller !== undefined) {
      const own = this.#own.get(caller) ?? new Places(this.#share);
      this.#own.set(caller, own);
      places.use(await own.take(signal));
    }
    places.use(await this.#all.take(signal));
    return places.move();
  }
}
