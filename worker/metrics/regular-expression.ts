// Regular expressions of settings and mapping files. They are written for RE2 and translated, so that none
// silently means something else here.

export type CompiledPattern =
  | { readonly ok: true; readonly pattern: RegExp }
  | { readonly ok: false; readonly reason: string };

/** As in RE2, which has no more either. */
const mostRepetitions = 1000;
/** Of one group; they are written again for each of its alternatives. */
const mostFlags = 100;

/** The classes that are named within brackets, such as `[[:alpha:]]`, as ranges of ASCII. */
const namedClasses: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7f',
  blank: '\\t ',
  cntrl: '\\x00-\\x1f\\x7f',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`{-~',
  space: '\\t-\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
};

/** Letters after a backslash that mean the same in both. */
const sameEscapes = 'dDwWtnrfv';
const spaces = '\\t\\n\\f\\r ';

/** The pattern, or why it is invalid, in RE2's terms. */
export function compilePattern(source: string): CompiledPattern {
  try {
    return { ok: true, pattern: new RegExp(new Translation(source).translate(), 'u') };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    // The rest of the message is about the translated pattern.
    return { ok: false, reason: text.replace(/^Invalid regular expression: .*: /s, '') };
  }
}

class Translation {
  readonly #source: string;
  #at = 0;
  #output = '';
  /** For each open group, the flags such as `(?i)` that hold until its end. */
  readonly #flags: string[][] = [[]];

  constructor(source: string) {
    this.#source = source;
  }

  translate(): string {
    while (this.#at < this.#source.length) this.#takeItem();
    if (this.#flags.length > 1) throw new Error('missing closing ")"');
    this.#closeFlags();
    return this.#output;
  }

  #takeItem(): void {
    const character = this.#source[this.#at] as string;
    if (character === '\\') this.#output += this.#takeEscape(false);
    else if (character === '[') this.#takeClass();
    else if (character === '(') this.#openGroup();
    else if (character === ')') this.#closeGroup();
    else if (character === '|') this.#takeAlternation();
    else if (character === '{') this.#takeRepetition();
    else this.#takeAs(1, character === '}' || character === ']' ? `\\${character}` : character);
  }

  #takeAs(length: number, text: string): void {
    this.#at += length;
    this.#output += text;
  }

  /** Matches at this place, and skips the match. */
  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source) ?? undefined;
    if (found !== undefined) this.#at += found[0].length;
    return found;
  }

  #openGroup(): void {
    const flags = this.#match(/\(\?([imsU]*)(?:-([imsU]+))?\)/y);
    if (flags !== undefined) {
      this.#holdFlags(flags);
      return;
    }
    const opened = this.#match(/\((?:\?(?:P?<(\w+)>|([imsU-]*:))|(?!\?))/y);
    if (opened === undefined) {
      const form = this.#source.slice(this.#at, this.#at + 3);
      throw new Error(`invalid or unsupported Perl syntax: \`${form}\``);
    }
    const [form, name, flagsOfGroup = ''] = opened;
    if (flagsOfGroup.includes('U')) throw new Error('the flag U is not supported');
    this.#flags.push([]);
    this.#output += name === undefined ? form : `(?<${name}>`;
  }

  #holdFlags([form = '', on = '', off = '']: RegExpExecArray): void {
    if (form.includes('U')) throw new Error('the flag U is not supported');
    if (on === '' && off === '') throw new Error(`missing argument to repetition operator: \`?\``);
    const opening = `(?${on}${off === '' ? '' : `-${off}`}:`;
    const held = this.#flags.at(-1) ?? [];
    if (held.length === mostFlags) throw new Error('too many flags');
    held.push(opening);
    this.#output += opening;
  }

  #closeFlags(): void {
    this.#output += ')'.repeat(this.#flags.at(-1)?.length ?? 0);
  }

  #closeGroup(): void {
    if (this.#flags.length === 1) throw new Error('unexpected ")"');
    this.#closeFlags();
    this.#flags.pop();
    this.#takeAs(1, ')');
  }

  /** Flags hold for the alternatives that follow as well. */
  #takeAlternation(): void {
    this.#closeFlags();
    this.#takeAs(1, `|${this.#flags.at(-1)?.join('') ?? ''}`);
  }

  /** Braces that are no repetition are literal. */
  #takeRepetition(): void {
    const found = this.#match(/\{(\d+)(?:,(\d*))?\}/y);
    if (found === undefined) {
      this.#takeAs(1, '\\{');
      return;
    }
    const [text, least = '', most = ''] = found;
    if (Number(least) > mostRepetitions || Number(most) > mostRepetitions) {
      throw new Error(`invalid repeat count: \`${text}\``);
    }
    this.#output += text;
  }

  /** Takes an escape, from its backslash on. */
  #takeEscape(isInClass: boolean): string {
    const quoted = this.#match(/\\Q(.*?)(?:\\E|$)/sy);
    if (quoted !== undefined) {
      if (isInClass) throw new Error('invalid escape sequence: `\\Q`');
      return [...(quoted[1] ?? '')].map((character) => toLiteral(character, false)).join('');
    }
    const code = this.#match(
      /\\x(?:\{([\da-fA-F]+)\}|([\da-fA-F]{2}))|\\(0[0-7]{0,2}|[1-7][0-7]{2})/y,
    );
    if (code !== undefined) {
      const [, braced, two, octal] = code;
      const value = Number.parseInt(braced ?? two ?? octal ?? '', octal === undefined ? 16 : 8);
      if (value > 0x10ffff) throw new Error(`invalid escape sequence: \`${code[0]}\``);
      return `\\u{${value.toString(16)}}`;
    }
    const property = this.#match(/\\([pP])(?:\{(\^?)(\w+)\}|(\w))/y);
    if (property !== undefined) return toProperty(property);
    const [text = '\\', character = ''] = this.#match(/\\(.?)/suy) ?? [];
    if (character === '') throw new Error('trailing backslash at end of expression');
    if (character === 's') return isInClass ? spaces : `[${spaces}]`;
    if (character === 'S' && !isInClass) return `[^${spaces}]`;
    if (character === 'a') return '\\x07';
    if (sameEscapes.includes(character) || (character === 'S' && isInClass)) return text;
    if (!isInClass) {
      if (character === 'b' || character === 'B') return text;
      if (character === 'A') return '(?<![^])';
      if (character === 'z') return '(?![^])';
    }
    if (/[\w\u0080-\u{10ffff}]/u.test(character) && character !== '_') {
      throw new Error(`invalid escape sequence: \`${text}\``);
    }
    return toLiteral(character, isInClass);
  }

  #takeClass(): void {
    let text = this.#match(/\[\^?/y)?.[0] ?? '';
    // A bracket at the beginning is literal.
    if (this.#source[this.#at] === ']') {
      text += '\\]';
      this.#at++;
    }
    for (;;) {
      const character = this.#source[this.#at];
      if (character === undefined) throw new Error('missing closing "]"');
      if (character === ']') break;
      text += this.#takeOfClass(character);
    }
    this.#takeAs(1, `${text}]`);
  }

  #takeOfClass(character: string): string {
    if (character === '\\') return this.#takeEscape(true);
    const named = this.#match(/\[:(\^?)(\w*):\]/y);
    if (named !== undefined) {
      const [text, not, name = ''] = named;
      const ranges = Object.hasOwn(namedClasses, name) ? namedClasses[name] : undefined;
      if (ranges === undefined) throw new Error(`invalid character class range: \`${text}\``);
      if (not === '^') throw new Error(`\`${text}\` is not supported; write the characters out`);
      return ranges;
    }
    const [symbol = ''] = this.#match(/./suy) ?? [];
    return symbol === '-' || symbol === '^' ? symbol : toLiteral(symbol, true);
  }
}

function toProperty([text, letter = '', not, long, short]: RegExpExecArray): string {
  const name = long ?? short ?? '';
  const sign = not === '^' ? (letter === 'p' ? 'P' : 'p') : letter;
  const isCategory = name === 'Any' || /^[CLMNPSZ][a-z]?$/.test(name);
  const property = `\\${sign}{${isCategory ? name : `Script=${name}`}}`;
  try {
    new RegExp(property, 'u');
  } catch {
    throw new Error(`invalid character class range: \`${text}\``);
  }
  return property;
}

/** A literal character. */
function toLiteral(character: string, isInClass: boolean): string {
  if (character === '-') return isInClass ? '\\-' : '-';
  return /[\^$\\.*+?()[\]{}|/]/.test(character) ? `\\${character}` : character;
}
