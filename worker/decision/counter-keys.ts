// Caches counter keys. Repeated requests, as of a caller far over its limit, get the same string again:
// neither the string nor its hash, which every look-up needs, is computed again.
import { toCounterKey, toKeyEnding } from '../../shared/counting/counter-key.ts';
import type { Window } from '../../shared/counting/window.ts';
import type { Entry, Limit, Match } from '../../shared/rules/rule.ts';

export interface CounterKeys {
  /** As `toCounterKey`, for the match of a descriptor of the domain. */
  of(domain: string, entries: readonly Entry[], match: Match, window: Window): string;
}

interface Known {
  /** Of one rule in one rule set, so it identifies the domain, too. */
  readonly limit: Limit;
  readonly window: Window;
  readonly key: string;
  /** Where the entries of the key end. */
  readonly end: number;
}

const underscore = 0x5f;

/** A power of two. */
const slots = 1024;
/** With `slots`, the bound on memory: 1 MB when every key has a character beyond Latin-1. */
const longestKnown = 512;

export function createCounterKeys(prefix: string): CounterKeys {
  /** The last request of each slot. Reading it touches no string, and a key is kept only when it was
   * requested twice in a row, so many callers with few requests each cost almost nothing. */
  const lastHashes = new Int32Array(slots);
  const known = new Array<Known | undefined>(slots).fill(undefined);
  return {
    of(domain, entries, { limit, sharedValues }, window) {
      const hash = hashOf(entries);
      const slot = hash & (slots - 1);
      if (lastHashes[slot] !== hash) {
        lastHashes[slot] = hash;
        return toCounterKey(prefix, domain, entries, sharedValues, toKeyEnding(limit, window));
      }
      const before = known[slot];
      if (
        before !== undefined &&
        before.limit === limit &&
        before.window === window &&
        spells(before, prefix.length + domain.length + 1, entries)
      ) {
        return before.key;
      }
      const ending = toKeyEnding(limit, window);
      const key = toCounterKey(prefix, domain, entries, sharedValues, ending);
      if (sharedValues === undefined && key.length <= longestKnown) {
        const end = key.length - `${ending}`.length;
        known[slot] = { limit, window, key, end };
      }
      return key;
    },
  };
}

/** Hash of the ends of the values, which differ most often between values of one key, and of the keys: the
 * descriptors of one request often have the same value under different keys, and must not count as a
 * repetition. */
function hashOf(entries: readonly Entry[]): number {
  let hash = 0;
  for (let index = 0; index < entries.length; index++) {
    const { key, value } = entries[index] as Entry;
    const { length } = value;
    hash = (hash * 31 + key.length) | 0;
    hash = (hash * 31 + key.charCodeAt(key.length - 1)) | 0;
    hash = (hash * 31 + length) | 0;
    for (let at = Math.max(0, length - 4); at < length; at++) {
      hash = (hash * 31 + value.charCodeAt(at)) | 0;
    }
  }
  return hash;
}

/** Whether the key has exactly these entries from `start` to its window. The entries themselves are not
 * kept for comparison: a substring can keep the whole request in memory. */
function spells({ key, end }: Known, start: number, entries: readonly Entry[]): boolean {
  let at = start;
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry;
    if (!hasAt(key, at, entry.key)) return false;
    at += entry.key.length + 1;
    if (!hasAt(key, at, entry.value)) return false;
    at += entry.value.length + 1;
  }
  return at === end;
}

/** Whether `text` and an underscore are at this place. */
function hasAt(key: string, at: number, text: string): boolean {
  const end = at + text.length;
  if (end >= key.length || key.charCodeAt(end) !== underscore) return false;
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) !== key.charCodeAt(at + index)) return false;
  }
  return true;
}
