// Which regular expressions a schema may use: those whose time grows with the text's length alone.

/**
 * Why a pattern may take exponential time, or undefined. Conservative: a group that is repeated may
 * hold no further repetition and no choice, such as `?` is; look-around and back-references are
 * refused.
 */
export function whyNotLinear(pattern: string): string | undefined {
  /** Per open group: whether it holds a repetition or a choice. */
  const groups: boolean[] = [];
  let closed: boolean | undefined;
  for (let at = 0; at < pattern.length; at += 1) {
    const character = pattern[at];
    const afterGroup = closed;
    closed = undefined;
    if (character === '\\') {
      at += 1;
      if (/[1-9k]/.test(pattern[at] ?? '')) return 'it has a back-reference';
    } else if (character === '[') {
      at = endOfClass(pattern, at);
    } else if (character === '(') {
      if (/^\((?:\?=|\?!|\?<=|\?<!)/.test(pattern.slice(at))) return 'it looks around';
      groups.push(false);
      // The question mark of `(?:`, `(?<name>` and `(?i:` is no quantifier.
      at += pattern.startsWith('(?', at) ? 1 : 0;
    } else if (character === ')') {
      closed = groups.pop() ?? false;
      if (closed && groups.length > 0) groups[groups.length - 1] = true;
    } else if (character === '|') {
      if (groups.length > 0) groups[groups.length - 1] = true;
    } else {
      const quantifier = quantifierAt(pattern, at);
      if (quantifier === '') continue;
      // `?` takes a thing once at most: a choice, which repeats nothing.
      if (afterGroup === true && !quantifier.startsWith('?')) {
        return 'it repeats a group that holds a repetition or a choice';
      }
      if (groups.length > 0) groups[groups.length - 1] = true;
      at += quantifier.length - 1;
    }
  }
  return undefined;
}

/** With the `?` that makes it lazy; the empty text where there is none. */
function quantifierAt(pattern: string, at: number): string {
  return /^(?:[*+?]|\{\d+(?:,\d*)?\})\??/.exec(pattern.slice(at))?.[0] ?? '';
}

function endOfClass(pattern: string, start: number): number {
  for (let at = start + 1; at < pattern.length; at += 1) {
    if (pattern[at] === '\\') at += 1;
    else if (pattern[at] === ']') return at;
  }
  return pattern.length;
}
