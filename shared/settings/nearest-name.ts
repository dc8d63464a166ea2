// "Did you mean ...?" for the names of settings.
import { editDistance } from '../edit-distance.ts';

/**
 * The candidate with the smallest edit distance to `word`, upper and lower case being equal; the
 * first one among equals. Undefined when none is within `most(candidate)` edits.
 */
export function findNearest(
  word: string,
  candidates: Iterable<string>,
  most: (candidate: string) => number,
): string | undefined {
  const upper = word.toUpperCase();
  let nearest: string | undefined;
  let smallest = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const bound = Math.min(most(candidate), smallest - 1);
    if (Math.abs(candidate.length - word.length) > bound) continue;
    const distance = editDistance(upper, candidate.toUpperCase(), bound);
    if (distance > bound) continue;
    nearest = candidate;
    smallest = distance;
  }
  return nearest;
}
