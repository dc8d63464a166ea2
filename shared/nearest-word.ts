// "Did you mean ...?": the known word that a misspelled one most likely stands for.
import { editDistance } from './edit-distance.ts';
import { toExcerpt } from './text-excerpt.ts';

/** Longer words are not compared: they are no typos, and would cost time. */
const maxLength = 64;

/**
 * The one of `known` that `word` is a slip of: equal but for letter case, `_` and `-`; or within an
 * edit for every three letters (a swap of neighbours is one edit); or its only completion.
 * Undefined when nothing is near.
 */
export function nearestWord(word: string, known: readonly string[]): string | undefined {
  const plain = toPlain(word);
  if (plain === '' || plain.length > maxLength) return undefined;
  let nearest: string | undefined;
  let nearestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const target = toPlain(candidate);
    const most = Math.floor(Math.max(plain.length, target.length) / 3);
    const distance = editDistance(plain, target, most);
    if (distance < nearestDistance) {
      nearest = candidate;
      nearestDistance = distance;
    }
  }
  if (nearest !== undefined) return nearest;
  const completions = known.filter((candidate) => toPlain(candidate).startsWith(plain));
  return completions.length === 1 ? completions[0] : undefined;
}

/**
 * `nearestWord` for a text of any length and any number of mistakes: it finds nothing more where it
 * would have to compare with more than `maxComparisons` words in all.
 */
export function createBoundedNearestWord(maxComparisons: number): typeof nearestWord {
  let left = maxComparisons;
  return (word, known) => {
    if (known.length > left) return undefined;
    left -= known.length;
    return nearestWord(word, known);
  };
}

/** The hint for a person, after `before`; undefined without a guess. */
export function didYouMean(guess: string | undefined, before = ''): string | undefined {
  return guess && `${before}did you mean '${toExcerpt(guess)}'?`;
}

function toPlain(word: string): string {
  return word
    .slice(0, maxLength * 2)
    .toLowerCase()
    .replaceAll(/[_\- ]/g, '');
}
