// The counter keys of the requests at hand. What is asked for again and again, such as a caller far
// over its limit, gets the same string again: neither is it put together anew, nor is its hash, which
// every look-up needs, computed anew.
import { toCounterKey, toKeyEnding } from '../../shared/counting/counter-key.ts';
import type { Window } from '../../shared/counting/window.ts';
import type { Entry, Limit, Match } from '../../shared/rules/rule.ts';

export interface CounterKeys {
  /** As `toCounterKey`, for what a descriptor of the domain has matched. */
  of(domain: string, entries: readonly Entry[], match: Match, window: Window): string;
}

interface Known {
  /** Of one rule in one rule set, so it stands for the domain, too. */
  readonly limit: Limit;
  readonly window: Window;
  readonly key: string;
  /** Where the entries of the key end. */
  readonly end: number;
}

const underscore = 0x5f;

/** A power of two. */
const slots = 1024;
/** With `slots`, the bound on memory: 1 MB when every key holds a character beyond Latin-1. */
const longestKnown = 512;

export function createCounterKeys(prefix: string): CounterKeys {
  /** What was asked for last in each slot. Reading it touches no string, and a key is kept only when it
   * was asked for twice in a row: so many callers with few requests each cost next to nothing here. */
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

/** Of the ends of the values, where those of one key differ most often, and of the keys: the descriptors
 * of one request often have the same value under other keys, and must not be taken for one that is asked
 * for twice in a row. */
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

/** Whether the key has just these entries from `start` to its window. The entries themselves are not
 * kept for comparing: a string of a request may hold on to the whole of it. */
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

/** Whether `text` and an underscore stand there. */
function hasAt(key: string, at: number, text: string): boolean {
  const end = at + text.length;
  if (end >= key.length || key.charCodeAt(end) !== underscore) return false;
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) !== key.charCodeAt(at + index)) return false;
  }
  return true;
}
