// Values with `*`, each of which stands for any run of characters, also an empty one.

/** A parsed pattern. */
export interface Wildcard {
  readonly prefix: string;
  /** Literals between two stars, in order. */
  readonly middles: readonly string[];
  readonly suffix: string;
  readonly literalLength: number;
}

/** `pattern` holds at least one `*`. */
export function parseWildcard(pattern: string): Wildcard {
  const parts = pattern.split('*');
  return {
    prefix: parts[0] ?? '',
    middles: parts.slice(1, -1).filter((part) => part !== ''),
    suffix: parts.at(-1) ?? '',
    literalLength: pattern.length - (parts.length - 1),
  };
}

/** Whether the pattern stands for the whole text. */
export function matchesWildcard(wildcard: Wildcard, text: string): boolean {
  return text.startsWith(wildcard.prefix) && matchesAfterPrefix(wildcard, text);
}

/**
 * For a text that begins with the prefix. Taking the leftmost place for each literal is enough to find
 * a match if there is one, so there is no backtracking and a hostile text costs one pass.
 */
export function matchesAfterPrefix(wildcard: Wildcard, text: string): boolean {
  const { prefix, middles, suffix, literalLength } = wildcard;
  if (text.length < literalLength || !text.endsWith(suffix)) return false;
  const end = text.length - suffix.length;
  let at = prefix.length;
  for (const middle of middles) {
    const found = text.indexOf(middle, at);
    if (found === -1) return false;
    at = found + middle.length;
    if (at > end) return false;
  }
  return true;
}
