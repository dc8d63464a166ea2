// A WeakMap for values that are large: its keys hold them. V8 marks what a WeakMap alone holds in the pause at the end of a
// collection, which with the rules of 16 MiB of files takes 80 ms of the thread; what an object holds it marks beforehand.

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

/** The values by their holders. */
type Held = Map<object, unknown>;

class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the fields of Holder are added to this object
    return object;
  }
}

/** Adds a private field to an object that is there, also to a frozen one. */
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
