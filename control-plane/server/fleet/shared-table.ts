// A table of bounded size that all links fill, such as that of rules. While there is room, a link can use any part of
// it. When it is full, a new entry replaces the oldest one of the link with the most entries, so that a link within its
// share, the size of the table divided by the number of links, never loses an entry to another link.

/** The keys that count towards one link, oldest first. */
type Keys = Set<string>;

interface Entry<Value> {
  readonly value: Value;
  keys: Keys;
}

export class SharedTable<Value> {
  readonly #maxSize: number;
  /** Oldest first. */
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #links = new Map<object, Keys>();
  /** The keys of closed links. */
  readonly #left: Keys = new Set();
  /** The keys of the link with the most entries; undefined if it must be searched for, which takes time proportional to
   * the number of links. */
  #most: Keys | undefined;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  /** Finds the entry, whichever link added it. From now on it counts towards `link` if the link that it counted towards
   * is closed or has more than its share. */
  find(link: object, key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const keys = this.#keysOf(link);
    const share = this.#maxSize / this.#links.size;
    const isFree = entry.keys === this.#left || (entry.keys.size > share && keys.size < share);
    if (isFree && entry.keys !== keys) {
      this.#removeKey(entry.keys, key);
      this.#insert(keys, key);
      entry.keys = keys;
    }
    return entry.value;
  }

  /** Adds an entry with a new key, as the newest. Returns false if the table is full and no link has more entries than
   * this one. */
  add(link: object, key: string, value: Value): boolean {
    const keys = this.#keysOf(link);
    if (this.#entries.size >= this.#maxSize) {
      const giving = this.#left.size > 0 ? this.#left : this.#findMost();
      if (giving !== this.#left && giving.size <= keys.size) return false;
      this.#removeFirst(giving);
    }
    this.#entries.set(key, { value, keys });
    this.#insert(keys, key);
    return true;
  }

  /** Makes an existing entry the newest. */
  touch(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.keys.delete(key);
    entry.keys.add(key);
  }

  remove(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#removeKey(entry.keys, key);
  }

  /** Removes the link's oldest entry. */
  removeOldest(link: object): void {
    this.#removeFirst(this.#keysOf(link));
  }

  /** Handles a closed link: its entries stay, and are the first to be replaced. */
  leave(link: object): void {
    const keys = this.#links.get(link);
    if (keys === undefined) return;
    this.#links.delete(link);
    if (keys === this.#most) this.#most = undefined;
    for (const key of keys) {
      this.#left.add(key);
      const entry = this.#entries.get(key);
      if (entry !== undefined) entry.keys = this.#left;
    }
  }

  *entries(): Generator<readonly [key: string, value: Value], void> {
    for (const [key, { value }] of this.#entries) yield [key, value];
  }

  /** The newest entry of each link, then the second newest of each, and so on. */
  inTurn(): Value[] {
    const turns = new Map<Keys, number>();
    const numbered = [...this.#entries.values()].reverse().map(({ value, keys }) => {
      const turn = turns.get(keys) ?? 0;
      turns.set(keys, turn + 1);
      return { value, turn };
    });
    return numbered.sort((a, b) => a.turn - b.turn).map(({ value }) => value);
  }

  #keysOf(link: object): Keys {
    const keys = this.#links.get(link) ?? new Set();
    this.#links.set(link, keys);
    return keys;
  }

  #findMost(): Keys {
    if (this.#most !== undefined) return this.#most;
    let most = this.#left;
    for (const keys of this.#links.values()) {
      if (most === this.#left || keys.size > most.size) most = keys;
    }
    this.#most = most;
    return most;
  }

  #insert(keys: Keys, key: string): void {
    keys.add(key);
    const most = this.#most;
    if (most !== undefined && keys !== this.#left && keys.size > most.size) this.#most = keys;
  }

  #removeKey(keys: Keys, key: string): void {
    keys.delete(key);
    if (keys === this.#most) this.#most = undefined;
  }

  #removeFirst(keys: Keys): void {
    const [oldest] = keys;
    if (oldest !== undefined) this.remove(oldest);
  }
}
