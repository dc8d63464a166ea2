// The most frequent items, in bounded memory (Space-Saving, Metwally et al. 2005): a new item replaces the one with the
// lowest count, and inherits this count as its error. Items that make up more than 1/size of all are always found.

/** The item occurred at most `count` times, and at least `count - error`. */
export interface Counted<Item> {
  readonly key: string;
  readonly item: Item;
  readonly count: number;
  readonly error: number;
  /** The variance of `count`, if it was counted by samples. */
  readonly variance: number;
}

/** An item with all but its count, which is in the heap. */
interface Entry<Item> {
  key: string;
  item: Item;
  error: number;
  variance: number;
  /** Index in the heap. */
  at: number;
}

export class SpaceSaving<Item> {
  readonly #size: number;
  readonly #entries = new Map<string, Entry<Item>>();
  /**
   * A heap with the lowest count first. The counts are in one array: reading objects scattered over the memory for each
   * comparison would be slow.
   */
  readonly #counts: Float64Array;
  readonly #heap: Entry<Item>[] = [];

  constructor(size: number) {
    this.#size = size;
    this.#counts = new Float64Array(size);
  }

  /** Counts an item that is in the table; false if it is not. */
  count(key: string, count = 1, error = 0, variance = 0): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    entry.error += error;
    entry.variance += variance;
    this.#sink(entry, this.#countAt(entry.at) + count);
    return true;
  }

  /** Counts an item that is not in the table. */
  insert(key: string, item: Item, count = 1, error = 0, variance = 0): void {
    if (this.#heap.length < this.#size) {
      const entry = { key, item, error, variance, at: this.#heap.length };
      this.#heap.push(entry);
      this.#entries.set(key, entry);
      this.#rise(entry, count);
      return;
    }
    const entry = this.#heap[0];
    if (entry === undefined) return;
    const least = this.#countAt(0);
    this.#entries.delete(entry.key);
    this.#entries.set(key, entry);
    entry.key = key;
    entry.item = item;
    entry.error = least + error;
    // The inherited count has the variance of the samples by which it was counted.
    entry.variance += variance;
    this.#sink(entry, least + count);
  }

  /** No item outside the table occurred more often than this. */
  get least(): number {
    return this.#heap.length < this.#size ? 0 : this.#countAt(0);
  }

  /** A copy of the items with the highest counts, in descending order. */
  top(most: number): Counted<Item>[] {
    return this.#heap
      .map(({ key, item, error, variance, at }) => {
        return { key, item, count: this.#countAt(at), error, variance };
      })
      .sort((a, b) => b.count - a.count)
      .slice(0, most);
  }

  clear(): void {
    this.#entries.clear();
    this.#heap.length = 0;
  }

  /** Moves an entry whose count has grown to `count`. */
  #sink(entry: Entry<Item>, count: number): void {
    const length = this.#heap.length;
    let { at } = entry;
    for (;;) {
      let lesser = 2 * at + 1;
      if (lesser + 1 < length && this.#countAt(lesser + 1) < this.#countAt(lesser)) lesser++;
      if (lesser >= length || this.#countAt(lesser) >= count) break;
      this.#put(at, this.#heap[lesser] as Entry<Item>, this.#countAt(lesser));
      at = lesser;
    }
    this.#put(at, entry, count);
  }

  /** Moves an entry that is the last one. */
  #rise(entry: Entry<Item>, count: number): void {
    let { at } = entry;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#countAt(parent) <= count) break;
      this.#put(at, this.#heap[parent] as Entry<Item>, this.#countAt(parent));
      at = parent;
    }
    this.#put(at, entry, count);
  }

  #put(at: number, entry: Entry<Item>, count: number): void {
    this.#heap[at] = entry;
    this.#counts[at] = count;
    entry.at = at;
  }

  #countAt(at: number): number {
    return this.#counts[at] as number;
  }
}
