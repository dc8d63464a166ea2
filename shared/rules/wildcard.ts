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

/**
 * Taking the leftmost place for each literal is enough to find a match if there is one, so there is
 * no backtracking and a hostile text costs one pass.
 */
export function matchesWildcard(wildcard: Wildcard, text: string): boolean {
  const { prefix, middles, suffix, literalLength } = wildcard;
  if (text.length < literalLength || !text.startsWith(prefix) || !text.endsWith(suffix)) {
    return false;
  }
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
