// Texts of requests as keys of maps.
//
// V8 hashes a string of more than 16,383 characters by its length alone, so a Map with many of one length is
// a list: each look-up would compare them all, and callers choose how long their texts are.
import { hash } from 'node:crypto';

/** Longer texts are represented by a digest, which also bounds the memory that a key takes. */
export const maxMapKeyLength = 1024;

/**
 * Stands for the text in this process: the text itself, or the digest of a long one. A digest has only
 * hexadecimal digits, so it never equals a counter key or a metric key, which has a `_` or a `.`.
 */
export function toMapKey(text: string): string {
  return text.length <= maxMapKeyLength ? text : hash('sha256', text);
}
