// Which regular expressions a schema may use: those whose time grows with the text's length alone.

/**
 * Why a pattern may take exponential time, or undefined. Conservative: a group that is repeated may
 * hold no further repetition and no choice; look-around and back-references are refused.
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
      at += pattern.startsWith('(?:', at) ? 2 : 0;
    } else if (character === ')') {
      closed = groups.pop() ?? false;
      if (closed && groups.length > 0) groups[groups.length - 1] = true;
    } else if (character === '|') {
      if (groups.length > 0) groups[groups.length - 1] = true;
    } else if (isRepetition(pattern, at)) {
      if (afterGroup === true) return 'it repeats a group that holds a repetition or a choice';
      if (groups.length > 0) groups[groups.length - 1] = true;
    }
  }
  return undefined;
}

/** `?` takes a thing once at most, and repeats nothing. */
function isRepetition(pattern: string, at: number): boolean {
  const character = pattern[at];
  return (
    character === '*' || character === '+' || (character === '{' && /^\{\d/.test(pattern.slice(at)))
  );
}

function endOfClass(pattern: string, start: number): number {
  for (let at = start + 1; at < pattern.length; at += 1) {
    if (pattern[at] === '\\') at += 1;
    else if (pattern[at] === ']') return at;
  }
  return pattern.length;
}
