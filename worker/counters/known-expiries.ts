// Records which counters have a lifetime in the store, so that increments need not set it again. Forgetting one too
// early only costs a command.

export interface KnownExpiries {
  /** Whether the key is known to live for a window of that length. */
  has(key: string, windowSeconds: number, nowMs: number): boolean;
  /** Call it when the store has acknowledged that the key lives for such a window from now on. */
  remember(key: string, windowSeconds: number, nowMs: number): void;
  forget(key: string): void;
}

/** Slots of a bucket; a new key replaces the least recently used one. */
const keysPerBucket = 8;
const buckets = 65_536;
/**
 * A bucket has the tags of its keys, then the life of each, in one cache line: reading memory is most of the cost of a
 * lookup.
 */
const lifeOffset = keysPerBucket;
const wordsPerBucket = 2 * keysPerBucket;
/** A life has the number of its window in the low bits, and above them the second in which it ends. */
const windowBits = 6;
const windowsMax = 2 ** windowBits;
const untilMax = 2 ** (32 - windowBits) - 1;

/**
 * A table of fixed size, 4 MB, without the keys themselves: keys come from requests, are many and can be long, and a
 * map of them would burden the garbage collector. Keys are distinguished by 48 bits of a hash. After a collision an
 * increment lacks an EXPIRE, which is repeated where it matters: the value of a new counter shows that it is new
 * (behaviour: expiry-when-new).
 *
 * Limits of several units may share a key: a key known to live for an hour is not known to live for a day. Stores up to
 * 63 window lengths, and lives that end within two years of the process' start; others are not recorded.
 */
export function createKnownExpiries(): KnownExpiries {
  const words = new Uint32Array(buckets * wordsPerBucket);
  /** Window lengths by number, in the order of their first use. Slots that were never used have the number 0. */
  const windows = [Number.NEGATIVE_INFINITY];
  /** Random, so that callers cannot predict which keys share a bucket. */
  const seed = Math.floor(Math.random() * 2 ** 32);
  /** Further results of `find`. */
  let bucket = 0;
  let tag = 0;
  return { has, remember, forget };

  function has(key: string, windowSeconds: number, nowMs: number): boolean {
    const slot = find(key);
    if (slot === -1) return false;
    const life = words[slot + lifeOffset] as number;
    const window = windows[life & (windowsMax - 1)] as number;
    if ((life >>> windowBits) * 1000 <= nowMs || windowSeconds > window) return false;
    if (slot > bucket) putFirst(slot, life);
    return true;
  }

  function remember(key: string, windowSeconds: number, nowMs: number): void {
    const window = numberOf(windowSeconds);
    if (window === windowsMax) {
      forget(key);
      return;
    }
    const slot = find(key);
    const until = Math.min(Math.floor(nowMs / 1000) + windowSeconds, untilMax);
    const life = ((until << windowBits) | window) >>> 0;
    putFirst(slot === -1 ? bucket + keysPerBucket - 1 : slot, life);
  }

  function forget(key: string): void {
    const slot = find(key);
    if (slot !== -1) words[slot + lifeOffset] = 0;
  }

  /** `windowsMax` when no number is free. */
  function numberOf(windowSeconds: number): number {
    const known = windows.indexOf(windowSeconds);
    if (known !== -1 || windows.length === windowsMax) return known === -1 ? windowsMax : known;
    return windows.push(windowSeconds) - 1;
  }

  /** -1 when it is not found. */
  function find(key: string): number {
    let one = seed;
    let other = ~seed;
    for (let index = 0; index < key.length; index++) {
      const code = key.charCodeAt(index);
      one = Math.imul(one ^ code, 0x9e3779b1);
      other = Math.imul(other ^ code, 0x5f356495);
    }
    // The high bits of a product depend on all of its factors' bits, the low ones do not.
    bucket = ((one ^ (other >>> 15)) >>> 16) * wordsPerBucket;
    // 0 marks a slot that was never used.
    tag = (other ^ (one >>> 15)) >>> 0 || 1;
    for (let slot = bucket; slot < bucket + keysPerBucket; slot++) {
      if (words[slot] === tag) return slot;
    }
    return -1;
  }

  /** Moves the entries before `slot` back by one: a bucket is ordered by use. */
  function putFirst(slot: number, life: number): void {
    for (let to = slot; to > bucket; to--) {
      words[to] = words[to - 1] as number;
      words[to + lifeOffset] = words[to + lifeOffset - 1] as number;
    }
    words[bucket] = tag;
    words[bucket + lifeOffset] = life;
  }
}
