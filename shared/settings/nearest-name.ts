// "Did you mean ...?": the known word that is closest to a misspelled one.

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
    const distance = editDistance(upper, candidate.toUpperCase());
    if (distance > bound) continue;
    nearest = candidate;
    smallest = distance;
  }
  return nearest;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
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
    }
    beforeLast = last;
    last = current;
  }
  return at(last, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
