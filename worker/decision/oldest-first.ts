// A map that knows its oldest entry. A `Map` keeps the order as well, but finding its first entry steps over the
// holes of all that were removed before it: up to 200 microseconds where 100,000 entries come and go.

/** What is kept in the map: made by the caller, linked by the map. */
export abstract class AgedEntry<Self> {
  readonly key: string;
  older: Self | undefined;
  newer: Self | undefined;

  constructor(key: string) {
    this.key = key;
    this.older = undefined;
    this.newer = undefined;
  }
}

export class OldestFirst<Entry extends AgedEntry<Entry>> {
  readonly #entries = new Map<string, Entry>();
  #oldest: Entry | undefined;
  #newest: Entry | undefined;
  /** What `inspectNext` returns next; undefined: the oldest. */
  #next: Entry | undefined;

  get size(): number {
    return this.#entries.size;
  }

  get oldest(): Entry | undefined {
    return this.#oldest;
  }

  get(key: string): Entry | undefined {
    return this.#entries.get(key);
  }

  /** As the newest. There is no entry of its key yet. */
  add(entry: Entry): void {
    this.#entries.set(entry.key, entry);
    entry.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  delete(entry: Entry): void {
    const { key, older, newer } = entry;
    this.#entries.delete(key);
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    if (this.#next === entry) this.#next = newer;
    // A removed entry must not keep others alive.
    entry.older = undefined;
    entry.newer = undefined;
  }

  /** One entry after the other, from the oldest to the newest and then again: a few with each change sweep all. */
  inspectNext(): Entry | undefined {
    const entry = this.#next ?? this.#oldest;
    this.#next = entry?.newer;
    return entry;
  }
}
