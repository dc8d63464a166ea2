// Derives a value from an object in steps: once, even where several callers ask before it is finished.
import { HeldByKey } from './held-by-key.ts';

export class MadeOnce<Key extends object, Value> {
  readonly #made = new HeldByKey<Key, Making<Value>>();

  /**
   * Returns the result of `make`, which is retained as long as the key lives. A caller that asks meanwhile runs the
   * next steps itself: so no caller depends on one that has left. `version` is what else the value depends on; only the
   * value of the newest version is retained.
   */
  *of(key: Key, make: () => Iterator<void, Value>, version = 0): Generator<void, Value> {
    const last = this.#made.get(key);
    if (last?.version === version && !last.hasFailed) return yield* last.finishing();
    const making = new Making(make(), version);
    this.#made.set(key, making);
    return yield* making.finishing();
  }
}

class Making<Value> {
  readonly version: number;
  #state:
    | { readonly kind: 'open'; readonly steps: Iterator<void, Value> }
    | { readonly kind: 'made'; readonly value: Value }
    | { readonly kind: 'failed'; readonly error: unknown };

  constructor(steps: Iterator<void, Value>, version: number) {
    this.version = version;
    this.#state = { kind: 'open', steps };
  }

  get hasFailed(): boolean {
    return this.#state.kind === 'failed';
  }

  *finishing(): Generator<void, Value> {
    for (;;) {
      const state = this.#state;
      if (state.kind === 'made') return state.value;
      if (state.kind === 'failed') throw state.error;
      this.#runStep(state.steps);
      yield;
    }
  }

  #runStep(steps: Iterator<void, Value>): void {
    try {
      const step = steps.next();
      if (step.done) this.#state = { kind: 'made', value: step.value };
    } catch (error) {
      this.#state = { kind: 'failed', error };
    }
  }
}
