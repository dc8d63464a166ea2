// A table of bounded size that all links fill, such as that of rules. While there is room, a link may have any
// part of it. When it is full, a new entry takes the place of the oldest one of the link that has the most: so a
// link within its share, the size of the table divided by the number of links, never loses an entry to another.

export interface SharedTable<Value> {
  /** The entry that any link has made. It counts as one of `link` from now on where the link it counted for has
   * more than its share, or is gone. */
  find(link: object, key: string): Value | undefined;
  /** Makes an entry of a new key, as the newest. False where the table is full, and no link has more entries than
   * this one. */
  add(link: object, key: string, value: Value): boolean;
  /** Makes an entry the newest. */
  touch(key: string): void;
  remove(key: string): void;
  /** Removes the oldest of those that count for the link. */
  removeOldest(link: object): void;
  /** The link is gone: its entries stay, and are the first that make room. */
  leave(link: object): void;
  entries(): Iterable<readonly [key: string, value: Value]>;
  /** The newest entry of each link, then the second newest of each, and so on. */
  inTurn(): Value[];
}

/** The keys that count for one link, the oldest first. */
type Keys = Set<string>;

interface Entry<Value> {
  readonly value: Value;
  keys: Keys;
}

export function createSharedTable<Value>(maxSize: number): SharedTable<Value> {
  /** The oldest first. */
  const entries = new Map<string, Entry<Value>>();
  const links = new Map<object, Keys>();
  /** The keys of links that are gone. */
  const left: Keys = new Set();
  /**
   * The keys of the link with the most; undefined when it has to be found again, which takes time with the number
   * of links.
   */
  let most: Keys | undefined;

  function keysOf(link: object): Keys {
    const known = links.get(link);
    if (known !== undefined) return known;
    const keys: Keys = new Set();
    links.set(link, keys);
    return keys;
  }

  function findMost(): Keys {
    if (most === undefined) {
      most = left;
      let size = -1;
      for (const keys of links.values()) {
        if (keys.size > size) [most, size] = [keys, keys.size];
      }
    }
    return most;
  }

  function insert(keys: Keys, key: string): void {
    keys.add(key);
    if (most !== undefined && keys !== left && keys.size > most.size) most = keys;
  }

  function take(keys: Keys, key: string): void {
    keys.delete(key);
    if (keys === most) most = undefined;
  }

  function remove(key: string): void {
    const entry = entries.get(key);
    if (entry === undefined) return;
    entries.delete(key);
    take(entry.keys, key);
  }

  function removeFirst(keys: Keys): void {
    const [oldest] = keys;
    if (oldest !== undefined) remove(oldest);
  }

  return {
    find(link, key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      const keys = keysOf(link);
      const share = maxSize / links.size;
      const isFree = entry.keys === left || (entry.keys.size > share && keys.size < share);
      if (isFree && entry.keys !== keys) {
        take(entry.keys, key);
        insert(keys, key);
        entry.keys = keys;
      }
      return entry.value;
    },
    add(link, key, value) {
      const keys = keysOf(link);
      if (entries.size >= maxSize) {
        const giving = left.size > 0 ? left : findMost();
        if (giving !== left && giving.size <= keys.size) return false;
        removeFirst(giving);
      }
      entries.set(key, { value, keys });
      insert(keys, key);
      return true;
    },
    touch(key) {
      const entry = entries.get(key);
      if (entry === undefined) return;
      entries.delete(key);
      entries.set(key, entry);
      entry.keys.delete(key);
      entry.keys.add(key);
    },
    remove,
    removeOldest: (link) => removeFirst(keysOf(link)),
    leave(link) {
      const keys = links.get(link);
      if (keys === undefined) return;
      links.delete(link);
      if (keys === most) most = undefined;
      for (const key of keys) {
        left.add(key);
        const entry = entries.get(key);
        if (entry !== undefined) entry.keys = left;
      }
    },
    *entries() {
      for (const [key, { value }] of entries) yield [key, value];
    },
    inTurn() {
      const turns = new Map<Keys, number>();
      const placed = [...entries.values()].reverse().map(({ value, keys }) => {
        const turn = turns.get(keys) ?? 0;
        turns.set(keys, turn + 1);
        return { value, turn };
      });
      return placed.sort((a, b) => a.turn - b.turn).map(({ value }) => value);
    },
  };
}
