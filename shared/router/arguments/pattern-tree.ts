// Parses a regular expression, known to compile, as far as pattern.ts needs it.

export type PatternNode =
  /** One character: the source of what it may be. */
  | { readonly kind: 'character'; readonly source: string }
  /** `^`, `$`, `\b` and `\B`: takes nothing. */
  | { readonly kind: 'place'; readonly source: string }
  | { readonly kind: 'sequence'; readonly items: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly branches: readonly PatternNode[] }
  | {
      readonly kind: 'repetition';
      readonly item: PatternNode;
      readonly least: number;
      readonly most: number;
    };

const groupStart = /\((?:\?(?:<[^>=!]+>|[ims-]*:))?/y;
const quantifier = /(?:[*+?]|\{(\d+)(,(\d*))?\})\??/y;
/** A surrogate pair written as two escapes is one character. */
const character =
  /\\(?:u\{[^}]*\}|u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u\w{4}|x\w\w|c\w|[pP]\{[^}]*\}|.)|\[(?:\\.|[^\]\\])*\]|./suy;

/** Throws an Error for what takes more than linear time: lookarounds and back-references. */
export function parsePattern(pattern: string): PatternNode {
  let at = 0;

  function take(form: RegExp): RegExpExecArray | undefined {
    form.lastIndex = at;
    const found = form.exec(pattern) ?? undefined;
    at += found?.[0].length ?? 0;
    return found;
  }

  function takeChoice(): PatternNode {
    const branches = [takeSequence()];
    while (take(/\|/y)) branches.push(takeSequence());
    return branches.length === 1 ? (branches[0] as PatternNode) : { kind: 'choice', branches };
  }

  function takeSequence(): PatternNode {
    const items: PatternNode[] = [];
    while (at < pattern.length && !/[|)]/.test(pattern[at] as string)) {
      items.push(takeRepetition(takeItem()));
    }
    return { kind: 'sequence', items };
  }

  function takeItem(): PatternNode {
    if (take(/\(\?<?[=!]/y)) throw new Error('it has a lookaround');
    if (take(/\\[1-9k]/y)) throw new Error('it has a back-reference');
    if (take(groupStart)) {
      const inside = takeChoice();
      take(/\)/y);
      return inside;
    }
    const place = take(/\^|\$|\\[bB]/y);
    if (place) return { kind: 'place', source: place[0] };
    return { kind: 'character', source: take(character)?.[0] ?? '' };
  }

  function takeRepetition(item: PatternNode): PatternNode {
    const [text, least = '', isRange, most = ''] = take(quantifier) ?? [];
    if (text === undefined) return item;
    if (text.startsWith('{')) {
      const open = most === '' ? Number.POSITIVE_INFINITY : Number(most);
      const range = isRange === undefined ? Number(least) : open;
      return { kind: 'repetition', item, least: Number(least), most: range };
    }
    return {
      kind: 'repetition',
      item,
      least: text.startsWith('+') ? 1 : 0,
      most: text.startsWith('?') ? 1 : Number.POSITIVE_INFINITY,
    };
  }

  return takeChoice();
}
