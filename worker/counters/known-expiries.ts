// Which counters this worker knows to have a lifetime, so that their increments need not set it
// again. Forgetting too early only costs a command.
import type { Clock } from '../../shared/clock.ts';

export interface KnownExpiries {
  has(key: string): boolean;
  /** The store has acknowledged that the key goes away after `seconds`. */
  remember(key: string, seconds: number): void;
  forget(key: string): void;
}

/** Keys in one generation; there are two. Enough for the hot keys of a worker. */
const maxKeys = 32_768;
/** Characters of keys in one generation: keys come from requests and can be long. */
const maxCharacters = 4_194_304;

/**
 * Two generations: keys enter the young one; when it is full it becomes the old one, and what was
 * old is dropped. A key that is asked for moves to the young one, so hot keys stay.
 */
export function createKnownExpiries(clock: Clock): KnownExpiries {
  let young = new Map<string, number>();
  let old = new Map<string, number>();
  let characters = 0;
  return { has, remember, forget };

  function has(key: string): boolean {
    const youngMs = young.get(key);
    if (youngMs !== undefined) return youngMs > clock.monotonicMs();
    const oldMs = old.get(key);
    if (oldMs === undefined || oldMs <= clock.monotonicMs()) return false;
    insert(key, oldMs);
    return true;
  }

  function remember(key: string, seconds: number): void {
    insert(key, clock.monotonicMs() + seconds * 1000);
  }

  function insert(key: string, untilMs: number): void {
    if (young.size >= maxKeys || characters + key.length > maxCharacters) {
      old = young;
      young = new Map();
      characters = 0;
    }
    if (!young.has(key)) characters += key.length;
    young.set(key, untilMs);
  }

  function forget(key: string): void {
    if (young.delete(key)) characters -= key.length;
    old.delete(key);
  }
}
