// The items that occur most often, in bounded memory (Space-Saving, Metwally et al. 2005): a new item
// replaces the one counted least, and inherits its count as its error. Items that occur more often than
// 1/size of all are always found.

/** The item occurred at most `count` times, and at least `count - error`. */
export interface Counted<Item> {
  readonly key: string;
  readonly item: Item;
  readonly count: number;
  readonly error: number;
  /** Of `count`, where it was counted by samples. */
  readonly variance: number;
}

/** What is known of a place, apart from its count. */
interface Place<Item> {
  key: string;
  item: Item;
  error: number;
  variance: number;
  /** Index in the heap. */
  at: number;
}

export class SpaceSaving<Item> {
  readonly #size: number;
  readonly #places = new Map<string, Place<Item>>();
  /** A heap with the least count first. The counts are beside each other: objects all over the memory would be
   * looked up for each comparison. */
  readonly #counts: Float64Array;
  readonly #heap: Place<Item>[] = [];

  constructor(size: number) {
    this.#size = size;
    this.#counts = new Float64Array(size);
  }

  /** Counts an item in the table; false when it is not in it. */
  count(key: string, count = 1, error = 0, variance = 0): boolean {
    const place = this.#places.get(key);
    if (place === undefined) return false;
    place.error += error;
    place.variance += variance;
    this.#sink(place, this.#countAt(place.at) + count);
    return true;
  }

  /** Counts an item that is not in the table. */
  insert(key: string, item: Item, count = 1, error = 0, variance = 0): void {
    if (this.#heap.length < this.#size) {
      const place = { key, item, error, variance, at: this.#heap.length };
      this.#heap.push(place);
      this.#places.set(key, place);
      this.#rise(place, count);
      return;
    }
    const place = this.#heap[0];
    if (place === undefined) return;
    const least = this.#countAt(0);
    this.#places.delete(place.key);
    this.#places.set(key, place);
    place.key = key;
    place.item = item;
    place.error = least + error;
    place.variance += variance;
    this.#sink(place, least + count);
  }

  /** No item outside the table occurred more often. */
  get least(): number {
    return this.#heap.length < this.#size ? 0 : this.#countAt(0);
  }

  /** A copy of those counted most, in order. */
  top(most: number): Counted<Item>[] {
    return this.#heap
      .map(({ key, item, error, variance, at }) => {
        return { key, item, count: this.#countAt(at), error, variance };
      })
      .sort((a, b) => b.count - a.count)
      .slice(0, most);
  }

  clear(): void {
    this.#places.clear();
    this.#heap.length = 0;
  }

  /** Moves a place whose count has grown to `count`. */
  #sink(place: Place<Item>, count: number): void {
    const length = this.#heap.length;
    let { at } = place;
    for (;;) {
      let lesser = 2 * at + 1;
      if (lesser + 1 < length && this.#countAt(lesser + 1) < this.#countAt(lesser)) lesser++;
      if (lesser >= length || this.#countAt(lesser) >= count) break;
      this.#put(at, this.#heap[lesser] as Place<Item>, this.#countAt(lesser));
      at = lesser;
    }
    this.#put(at, place, count);
  }

  /** Moves a place that is the last. */
  #rise(place: Place<Item>, count: number): void {
    let { at } = place;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#countAt(parent) <= count) break;
      this.#put(at, this.#heap[parent] as Place<Item>, this.#countAt(parent));
      at = parent;
    }
    this.#put(at, place, count);
  }

  #put(at: number, place: Place<Item>, count: number): void {
    this.#heap[at] = place;
    this.#counts[at] = count;
    place.at = at;
  }

  #countAt(at: number): number {
    return this.#counts[at] as number;
  }
}
