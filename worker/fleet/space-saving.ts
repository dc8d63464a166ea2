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

interface Place<Item> extends Counted<Item> {
  key: string;
  item: Item;
  count: number;
  error: number;
  variance: number;
  /** Index in the heap. */
  at: number;
}

export class SpaceSaving<Item> {
  readonly #size: number;
  readonly #places = new Map<string, Place<Item>>();
  /** A heap with the least count first. */
  readonly #heap: Place<Item>[] = [];

  constructor(size: number) {
    this.#size = size;
  }

  /** Counts an item in the table; false when it is not in it. */
  count(key: string, count = 1, error = 0, variance = 0): boolean {
    const place = this.#places.get(key);
    if (place === undefined) return false;
    place.count += count;
    place.error += error;
    place.variance += variance;
    this.#sink(place);
    return true;
  }

  /** Counts an item that is not in the table. */
  insert(key: string, item: Item, count = 1, error = 0, variance = 0): void {
    if (this.#heap.length < this.#size) {
      const place = { key, item, count, error, variance, at: this.#heap.length };
      this.#heap.push(place);
      this.#places.set(key, place);
      this.#rise(place);
      return;
    }
    const place = this.#heap[0];
    if (place === undefined) return;
    this.#places.delete(place.key);
    this.#places.set(key, place);
    place.key = key;
    place.item = item;
    place.error = place.count + error;
    place.variance += variance;
    place.count += count;
    this.#sink(place);
  }

  /** No item outside the table occurred more often. */
  get least(): number {
    return this.#heap.length < this.#size ? 0 : (this.#heap[0]?.count ?? 0);
  }

  /** A copy of those counted most, in order. */
  top(most: number): Counted<Item>[] {
    return [...this.#heap]
      .sort((a, b) => b.count - a.count)
      .slice(0, most)
      .map(({ key, item, count, error, variance }) => ({ key, item, count, error, variance }));
  }

  clear(): void {
    this.#places.clear();
    this.#heap.length = 0;
  }

  #sink(place: Place<Item>): void {
    const heap = this.#heap;
    for (;;) {
      const left = heap[2 * place.at + 1];
      const right = heap[2 * place.at + 2];
      const lesser =
        right !== undefined && left !== undefined && right.count < left.count ? right : left;
      if (lesser === undefined || lesser.count >= place.count) return;
      this.#swap(place, lesser);
    }
  }

  #rise(place: Place<Item>): void {
    while (place.at > 0) {
      const parent = this.#heap[(place.at - 1) >> 1];
      if (parent === undefined || parent.count <= place.count) return;
      this.#swap(place, parent);
    }
  }

  #swap(a: Place<Item>, b: Place<Item>): void {
    const { at } = a;
    a.at = b.at;
    b.at = at;
    this.#heap[a.at] = a;
    this.#heap[b.at] = b;
  }
}
