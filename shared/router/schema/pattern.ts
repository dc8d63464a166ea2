// Refuses regular expressions on which a backtracking matcher can spend exponential time. In the automaton of a pattern
// each character is a state; if two loops through one state read the same text, the number of paths doubles with each
// iteration. The remaining patterns take polynomial time, bounded by the length of the texts. No library decides the
// cases of pattern.txt: safe-regex2 refuses `^[a-z]+(?:-[a-z]+)*$`, redos-detector the email and IPv6 of zod, scslre
// accepts `^(a|a)*$`, and recheck, without its binaries, takes a second for a host name and does not read `(?i:a)`.

/** Maximum length of the texts that a pattern is tried on if the schema has no `maxLength`. */
export const patternCharacters = 256;

/** Up to this many repetitions are expanded to copies; more are treated as a loop. */
const maxCopies = 8;
const maxStates = 300;

/** Why a pattern is refused; undefined if its time is polynomial in the length of the text. */
export function whyExponential(pattern: string): string | undefined {
  const flags = /\(\?[ims-]+:/.test(pattern) ? 'i' : '';
  try {
    const isUnicode = isValid(pattern, 'u');
    if (!isUnicode && !isValid(pattern, '')) return 'it is no regular expression';
    const { characters, edges } = new Automaton(pattern);
    const overlap = createOverlap(characters, isUnicode ? `u${flags}` : flags);
    return hasTwoWaysAround(edges, overlap)
      ? 'a repetition can read one text in several ways'
      : undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function isValid(pattern: string, flags: string): boolean {
  try {
    return new RegExp(pattern, flags) !== undefined;
  } catch {
    return false;
  }
}

/** States that a part of a pattern can begin and end with. A state listed twice can be reached in two ways. */
interface Part {
  readonly first: readonly number[];
  readonly last: readonly number[];
  /** The number of ways to match the empty text; 2 for two or more. */
  readonly empty: number;
}

const nothing: Part = { first: [], last: [], empty: 1 };

const groupStart = /\((?:\?(?:<?[=!]|<[^>=!]+>|[ims-]*:))?/y;
const quantifier = /(?:[*+?]|\{(\d+)(,(\d*))?\})\??/y;
/** A surrogate pair written as two escapes is one character. */
const character =
  /\\(?:u\{[^}]*\}|u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u\w{4}|x\w\w|c\w|[pP]\{[^}]*\}|.)|\[(?:\\.|[^\]\\])*\]|./suy;

class Automaton {
  /** By state: the source of the characters that it reads. */
  readonly characters: string[] = [];
  /** By state: the states that can read the next character. */
  readonly edges: number[][] = [];
  readonly #pattern: string;
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
    this.#choice();
  }

  #match(form: RegExp): RegExpExecArray | undefined {
    form.lastIndex = this.#at;
    const found = form.exec(this.#pattern) ?? undefined;
    this.#at += found?.[0].length ?? 0;
    return found;
  }

  #choice(): Part {
    let part = this.#sequence();
    while (this.#match(/\|/y)) {
      const other = this.#sequence();
      part = {
        first: [...part.first, ...other.first],
        last: [...part.last, ...other.last],
        empty: Math.min(2, part.empty + other.empty),
      };
    }
    return part;
  }

  #sequence(): Part {
    let part = nothing;
    while (this.#at < this.#pattern.length && !/[|)]/.test(this.#pattern[this.#at] as string)) {
      part = this.#join(part, this.#repetition());
    }
    return part;
  }

  #repetition(): Part {
    const start = this.#at;
    const item = this.#item();
    const [text, from = '', isRange, to = ''] = this.#match(quantifier) ?? [];
    if (text === undefined) return item;
    const end = this.#at;
    const isCounted = text.startsWith('{');
    const least = isCounted ? Number(from) : text.startsWith('+') ? 1 : 0;
    const open = text.startsWith('?') ? 1 : Number.POSITIVE_INFINITY;
    const most = !isCounted || to !== '' ? Number(to || open) : isRange ? open : least;
    const empty = least === 0 ? 1 : item.empty;
    if (most > maxCopies || this.characters.length > maxStates) {
      this.#connect(item, item);
      // If a part must repeat and can be empty, any of its repetitions can be the one that reads a character.
      if (least > 1 && item.empty > 0) this.#connect(item, item);
      return { ...item, empty };
    }
    let part = item;
    const last = least < 2 ? [...item.last] : [];
    for (let count = 2; count <= most; count += 1) {
      this.#at = start;
      part = this.#join(part, this.#item());
      if (count >= least) last.push(...part.last);
    }
    this.#at = end;
    return { first: part.first, last, empty };
  }

  #item(): Part {
    if (this.#match(/\\[1-9k]/y)) throw new Error('it has a back-reference');
    const group = this.#match(groupStart);
    if (group !== undefined) {
      const inside = this.#choice();
      this.#match(/\)/y);
      // A lookaround reads its text separately.
      return /[=!]$/.test(group[0]) ? nothing : inside;
    }
    if (this.#match(/\^|\$|\\[bB]/y)) return nothing;
    const state = this.characters.push(this.#match(character)?.[0] ?? '') - 1;
    this.edges.push([]);
    return { first: [state], last: [state], empty: 0 };
  }

  #join(before: Part, after: Part): Part {
    this.#connect(before, after);
    return {
      first: [...before.first, ...times(before.empty, after.first)],
      last: [...after.last, ...times(after.empty, before.last)],
      empty: Math.min(2, before.empty * after.empty),
    };
  }

  #connect({ last }: Part, { first }: Part): void {
    for (const state of last) this.edges[state]?.push(...first);
  }
}

/** More than two occurrences are equivalent to two. */
function times(count: number, states: readonly number[]): readonly number[] {
  const all = Array.from({ length: count }, () => states).flat();
  return all.filter(
    (state, at) =>
      all.indexOf(state) === at || all.indexOf(state) === all.lastIndexOf(state, at - 1),
  );
}

type Overlap = (state: number, other: number) => boolean;

/** Whether a state can be reached again by two paths that can read the same text. */
function hasTwoWaysAround(all: readonly (readonly number[])[], overlap: Overlap): boolean {
  const reached = all.map((_, from) => reach([from], (state) => all[state] ?? []));
  const around = all.map((states, from) => states.filter((to) => reached[to]?.has(from)));
  if (around.some((states) => new Set(states).size < states.length)) return true;
  const count = all.length;
  const before = new Map<number, number[]>();
  const follow = (pair: number) => {
    const pairs = (around[Math.floor(pair / count)] ?? []).flatMap((one) =>
      (around[pair % count] ?? [])
        .filter((other) => overlap(one, other))
        .map((other) => one * count + other),
    );
    for (const next of pairs) before.set(next, [...(before.get(next) ?? []), pair]);
    return pairs;
  };
  const same = all.map((_, state) => state * count + state);
  const parted = reach(same, follow);
  const back = reach(same, (pair) => before.get(pair) ?? []);
  return [...parted].some((pair) => Math.floor(pair / count) !== pair % count && back.has(pair));
}

function reach(from: readonly number[], follow: (at: number) => readonly number[]): Set<number> {
  const reached = new Set(from);
  for (const at of reached) for (const next of follow(at)) reached.add(next);
  return reached;
}

/** Whether two states can read the same character. */
function createOverlap(characters: readonly string[], flags: string): Overlap {
  const known = new Map<string, boolean>();
  return (state, other) => {
    const [a = '', b = ''] = [characters[state], characters[other]];
    if (a === b) return true;
    const both = `(?=${a})${b}`;
    let result = known.get(both);
    if (result === undefined) {
      const most = isAscii.test(a) || isAscii.test(b) ? 0x7f : 0x10ffff;
      result = new RegExp(both, flags).test(charactersTo(most));
      known.set(both, result);
    }
    return result;
  };
}

/** Few characters to test for sources with ASCII characters only, as most are. */
const isAscii =
  /^(?:[^\\.[\u0080-\u{10ffff}]|\\[dw\W]|\[(?!\^)(?:[^\\\]\u0080-\u{10ffff}]|\\[dw\W])*\])$/u;

const textTo = new Map<number, string>();

/** Descending, so that no two surrogates form a pair. */
function charactersTo(last: number): string {
  let text = textTo.get(last) ?? '';
  if (text !== '') return text;
  for (let code = last; code >= 0; code -= 1) text += String.fromCodePoint(code);
  textTo.set(last, text);
  return text;
}
