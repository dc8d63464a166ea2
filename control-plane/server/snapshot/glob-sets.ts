// What two patterns have in common, to find out which nodes two lists of groups distinguish. Pure. Both functions take
// time proportional to the product of the lengths; for longer patterns they return the answer that misses no
// difference.
import { coversGlob } from '../../authoring/glob.ts';

/** The largest product of two lengths for which patterns are compared. */
export const maxProduct = 100_000;

/** Whether some text may match both patterns. */
export function globsMeet(one: string, other: string): boolean {
  if (one === other || one.length * other.length > maxProduct) return true;
  for (let at = 0; !isWild(one[at]) && !isWild(other[at]); at++) {
    if (one[at] !== other[at]) return false;
  }
  // For the pattern after the current character of `one`: whether it matches `other` from each index on.
  let next: boolean[] = new Array(other.length + 1).fill(false);
  for (let at = one.length; at >= 0; at--) {
    const now: boolean[] = new Array(other.length + 1).fill(false);
    for (let to = other.length; to >= 0; to--) {
      const [a, b] = [one[at], other[to]];
      if (a === undefined && b === undefined) now[to] = true;
      else if (a === '*') now[to] = next[to] === true || now[to + 1] === true;
      else if (b === '*') now[to] = now[to + 1] === true || next[to] === true;
      else if (a !== undefined && b !== undefined && (a === b || a === '?' || b === '?')) {
        now[to] = next[to + 1] === true;
      }
    }
    next = now;
  }
  return next[0] === true;
}

function isWild(character: string | undefined): boolean {
  return character === undefined || character === '*' || character === '?';
}

/** Whether `outer` matches every text that `inner` matches; false if that is not known. */
export function globContains(outer: string, inner: string): boolean {
  if (/^\*+$/.test(outer)) return true;
  if (outer.length * inner.length > maxProduct) return false;
  return coversGlob(outer, inner);
}
