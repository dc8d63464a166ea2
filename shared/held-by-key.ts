// A WeakMap for large values, which are stored in their keys. V8 marks values that only a WeakMap holds during the
// pause at the end of a collection: with the rules of 16 MiB of files, 80 ms of the thread. It marks what an object
// holds before that pause.

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
