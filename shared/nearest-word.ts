// "Did you mean ...?": the known word that a misspelled one most likely stands for, and how far the two are apart.
import { toExcerpt } from './text-excerpt.ts';

/** Longer words are not compared: they are no typos, and would cost time. */
const maxLength = 64;

/**
 * The word among `known` that `word` most likely stands for: equal but for letter case, `_` and `-`; or within one edit
 * for every three letters (a swap of neighbours is one edit); or its only completion. Undefined when no word is near.
 */
export function nearestWord(word: string, known: readonly string[]): string | undefined {
  const plain = toPlain(word);
  if (plain === '' || plain.length > maxLength) return undefined;
  let nearest: string | undefined;
  let nearestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const target = toPlain(candidate);
    const near = Math.floor(Math.max(plain.length, target.length) / 3);
    // Only a nearer word counts; most words are ruled out after a few characters.
    const distance = editDistance(plain, target, Math.min(near, nearestDistance - 1));
    if (distance < nearestDistance) {
      nearest = candidate;
      nearestDistance = distance;
    }
    if (nearestDistance === 0) break;
  }
  if (nearest !== undefined) return nearest;
  const completions = known.filter((candidate) => toPlain(candidate).startsWith(plain));
  return completions.length === 1 ? completions[0] : undefined;
}

/**
 * `nearestWord` for a text of any length and any number of mistakes: it finds no more words once they would need more
 * than `maxComparisons` comparisons in total.
 */
export function createBoundedNearestWord(maxComparisons: number): typeof nearestWord {
  let left = maxComparisons;
  return (word, known) => {
    if (known.length > left) return undefined;
    left -= known.length;
    return nearestWord(word, known);
  };
}

/** The human-readable hint, after `before`; undefined without a guess. */
export function didYouMean(guess: string | undefined, before = ''): string | undefined {
  return guess && `${before}did you mean '${toExcerpt(guess)}'?`;
}

function toPlain(word: string): string {
  return word
    .slice(0, maxLength * 2)
    .toLowerCase()
    .replaceAll(/[_\- ]/g, '');
}

/**
 * Insertions, deletions, replacements and swaps of neighbours that turn `one` into `other`; infinity, found
 * early, when there are more than `most`.
 */
export function editDistance(one: string, other: string, most = Number.POSITIVE_INFINITY): number {
  if (Math.abs(one.length - other.length) > most) return Number.POSITIVE_INFINITY;
  const [a, b] = withoutCommonEnds(one, other);
  let beforeLast: number[] = [];
  let smallestBefore = 0;
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    let smallest = row;
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let distance = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      );
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (row > 1 && column > 1 && swapped) {
        distance = Math.min(distance, at(beforeLast, column - 2) + 1);
      }
      current.push(distance);
      if (distance < smallest) smallest = distance;
    }
    // A swap continues from the row before, and adds one.
    if (smallest > most && smallestBefore >= most) return Number.POSITIVE_INFINITY;
    smallestBefore = smallest;
    beforeLast = last;
    last = current;
  }
  const distance = at(last, b.length);
  return distance > most ? Number.POSITIVE_INFINITY : distance;
}

/** Names of one scheme differ in few characters, and only these are then compared. */
function withoutCommonEnds(a: string, b: string): readonly [string, string] {
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start++;
  let end = 0;
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  return [a.slice(start, a.length - end), b.slice(start, b.length - end)];
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
