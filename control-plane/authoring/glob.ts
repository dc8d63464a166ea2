// Patterns in which `*` stands for any characters or none, and `?` for one.
import { matchesWildcard, parseWildcard } from '../../shared/rules/lookup/wildcard.ts';

/** Matching a pattern with `?` takes as much time as the product of both lengths. */
const maxPatternLength = 1_024;

/** Why a pattern of a file cannot be used, if so. */
export function reasonAgainstGlob({ length }: string): string | undefined {
  if (length <= maxPatternLength) return undefined;
  return `a pattern has ${length} characters, more than ${maxPatternLength}`;
}

export function matchesGlob(pattern: string, text: string): boolean {
  const isWildcard = pattern.includes('*') && !pattern.includes('?');
  if (isWildcard) return matchesWildcard(parseWildcard(pattern), text);
  return covers(pattern, text, (wanted, given) => wanted === '?' || wanted === given);
}

/** Whether `outer` matches every text that `inner` matches; false for some pairs where it does. */
export function coversGlob(outer: string, inner: string): boolean {
  return covers(
    outer,
    inner,
    (wanted, given) => given !== '*' && (wanted === '?' || (wanted === given && given !== '?')),
  );
}

/** Takes time proportional at most to the product of both lengths: texts are untrusted.
 * @param accepts whether a literal character of the pattern matches a character of the text */
function covers(
  pattern: string,
  text: string,
  accepts: (wanted: string | undefined, given: string | undefined) => boolean,
): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  let position = 0;
  while (position < text.length) {
    const wanted = pattern[at];
    if (wanted === '*') {
      star = at++;
      resume = position;
    } else if (accepts(wanted, text[position])) {
      at++;
      position++;
    } else if (star >= 0) {
      at = star + 1;
      position = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') at++;
  return at === pattern.length;
}
