// What two patterns have in common, to find out which nodes two lists of groups tell apart. Pure. Both functions take time
// proportional to the product of both lengths; longer patterns get the answer with which no difference is missed.
import { coversGlob } from '../../authoring/glob.ts';

/** The product of two lengths up to which patterns are compared. */
export const maxProduct = 100_000;

/** Whether a text may match both. */
export function globsMeet(one: string, other: string): boolean {
  if (one === other || one.length * other.length > maxProduct) return true;
  for (let at = 0; !isWild(one[at]) && !isWild(other[at]); at++) {
    if (one[at] !== other[at]) return false;
  }
  // Of the pattern after the current character of `one`: whether it meets `other` from each place on.
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

/** Whether every text that `inner` matches is matched by `outer`; false where that is not known. */
export function globContains(outer: string, inner: string): boolean {
  if (/^\*+$/.test(outer)) return true;
  if (outer.length * inner.length > maxProduct) return false;
  return coversGlob(outer, inner);
}
