// Remembers which counters have a lifetime in the store, so that increments need not set it again.
// Forgetting too early only costs a command.

export interface KnownExpiries {
  has(key: string, nowMs: number): boolean;
  /** The store has acknowledged that the key expires, and not before `untilMs`. */
  remember(key: string, untilMs: number): void;
  forget(key: string): void;
}

/** Slots of a bucket; the least recently used key is replaced. */
const keysPerBucket = 8;
const buckets = 65_536;

/**
 * A table of fixed size, 4 MB, that holds no key itself: keys come from requests, are many and can be
 * long, and a map of them would keep the garbage collector busy. Keys are distinguished by 48 bits of a
 * hash. On a collision an increment lacks an EXPIRE, which is repeated where it matters: a new counter
 * shows by its value (behaviour: expiry-when-new).
 */
export function createKnownExpiries(): KnownExpiries {
  const tags = new Uint32Array(buckets * keysPerBucket);
  const untilSeconds = new Uint32Array(buckets * keysPerBucket);
  /** Random, so that nobody can predict which keys share a bucket. */
  const seed = Math.floor(Math.random() * 2 ** 32);
  /** Further results of `find`. */
  let bucket = 0;
  let tag = 0;
  return { has, remember, forget };

  function has(key: string, nowMs: number): boolean {
    const slot = find(key);
    if (slot === -1) return false;
    const until = untilSeconds[slot] as number;
    if (until * 1000 <= nowMs) return false;
    if (slot > bucket) putFirst(slot, until);
    return true;
  }

  function remember(key: string, untilMs: number): void {
    const slot = find(key);
    putFirst(slot === -1 ? bucket + keysPerBucket - 1 : slot, Math.floor(untilMs / 1000));
  }

  function forget(key: string): void {
    const slot = find(key);
    if (slot !== -1) untilSeconds[slot] = 0;
  }

  /** -1 where it is not found. */
  function find(key: string): number {
    let one = seed;
    let other = ~seed;
    for (let index = 0; index < key.length; index++) {
      const code = key.charCodeAt(index);
      one = Math.imul(one ^ code, 0x9e3779b1);
      other = Math.imul(other ^ code, 0x5f356495);
    }
    // The high bits of a product depend on all of its factors' bits, the low ones do not.
    bucket = ((one ^ (other >>> 15)) >>> 16) * keysPerBucket;
    // 0 marks a slot that was never used.
    tag = (other ^ (one >>> 15)) >>> 0 || 1;
    for (let slot = bucket; slot < bucket + keysPerBucket; slot++) {
      if (tags[slot] === tag) return slot;
    }
    return -1;
  }

  /** Entries before `slot` move back by one: a bucket is ordered by use. */
  function putFirst(slot: number, until: number): void {
    for (let to = slot; to > bucket; to--) {
      tags[to] = tags[to - 1] as number;
      untilSeconds[to] = untilSeconds[to - 1] as number;
    }
    tags[bucket] = tag;
    untilSeconds[bucket] = until;
  }
}
