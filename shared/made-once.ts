// Values that are derived from an object: they live as long as it does, and are made in steps, once, even where several
// callers ask before one is finished.

/** A WeakMap for large values, which are stored in their keys. V8 marks values that only a WeakMap holds during the
 * pause at the end of a collection: with the rules of 16 MiB of files, 80 ms of the thread. It marks what an object
 * holds before that pause. */
export class HeldByKey<Key extends object, Value> {
  get(key: Key): Value | undefined {
    return Holder.find(key)?.get(this) as Value | undefined;
  }

  set(key: Key, value: Value): void {
    const held = Holder.find(key);
    if (held === undefined) new Holder(key, this, value);
    else held.set(this, value);
  }
}

/** The values by the HeldByKey that holds them. */
type Held = Map<object, unknown>;

class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the fields of Holder are added to this object
    return object;
  }
}

/** Adds a private field to an existing object, even a frozen one. */
class Holder extends Given {
  readonly #held: Held;

  constructor(key: object, owner: object, value: unknown) {
    super(key);
    this.#held = new Map([[owner, value]]);
  }

  static find(key: object): Held | undefined {
    return #held in key ? key.#held : undefined;
  }
}

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
