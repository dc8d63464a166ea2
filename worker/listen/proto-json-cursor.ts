// Reads JSON text token by token, for readers of a known message. Only expected values are created, so nesting and size
// are bounded by the message's own shape.

/** Thrown inside a reader for text that is not the message; the reader returns it as a value. */
export class JsonError extends Error {}

const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const controlPattern = /[^ -\uffff]/g;
/** Longer texts are left to the engine's parser. */
const maxShortLength = 256;
const quoteCode = 0x22;
const backslashCode = 0x5c;
/** The characters that may follow a backslash, beside `u` and four digits. */
const plainEscapes = '"\\\\/bfnrt';

export class JsonCursor {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** An error at this position, by default the current one. */
  error(message: string, position = this.#position): JsonError {
    let line = 1;
    let lineStart = 0;
    for (;;) {
      const end = this.#text.indexOf('\n', lineStart);
      if (end === -1 || end >= position) break;
      line++;
      lineStart = end + 1;
    }
    const column = position - lineStart + 1;
    return new JsonError(`(line ${line}:${column}): ${message}`);
  }

  /** The first character of the next token; '' at the end of the text. */
  peek(): string {
    for (;;) {
      const character = this.#text.charAt(this.#position);
      if (character !== ' ' && character !== '\n' && character !== '\t' && character !== '\r') {
        return character;
      }
      this.#position++;
    }
  }

  /** The position of the next token. */
  position(): number {
    this.peek();
    return this.#position;
  }

  /** Calls `readMember` with each name; it must read the value. */
  readObject(readMember: (name: string, position: number) => void): void {
    this.#expect('{');
    if (this.#accept('}')) return;
    do {
      const position = this.position();
      const name = this.readString();
      this.#expect(':');
      readMember(name, position);
    } while (this.#accept(','));
    this.#expect('}');
  }

  /** Calls `readItem` before each item; it must read it. */
  readArray(readItem: () => void): void {
    this.#expect('[');
    if (this.#accept(']')) return;
    do readItem();
    while (this.#accept(','));
    this.#expect(']');
  }

  /** Whether the next token is this word (`null`, `true` or `false`), which is then skipped. */
  acceptWord(word: string): boolean {
    this.peek();
    if (!this.#text.startsWith(word, this.#position)) return false;
    const end = this.#position + word.length;
    if (/[\w.+-]/.test(this.#text.charAt(end))) return false;
    this.#position = end;
    return true;
  }

  /** The digits as written. */
  readNumber(): string {
    const start = this.position();
    numberPattern.lastIndex = start;
    const number = numberPattern.exec(this.#text)?.[0];
    if (number === undefined) throw this.#unexpected();
    this.#position = start + number.length;
    if (/[\w.+-]/.test(this.#text.charAt(this.#position))) {
      throw this.error('invalid number', start);
    }
    return number;
  }

  /**
   * A short text without escapes is a part of the complete text and retains it in memory: a text that outlives the
   * request must be copied (shared/owned-text.ts).
   */
  readString(): string {
    if (this.peek() !== '"') throw this.#unexpected();
    const text = this.#text;
    const first = this.#position + 1;
    const end = Math.min(text.length, first + maxShortLength);
    for (let position = first; position < end; position++) {
      const code = text.charCodeAt(position);
      if (code === quoteCode) {
        this.#position = position + 1;
        return text.slice(first, position);
      }
      if (code === backslashCode || code < 0x20) break;
    }
    return this.#parseString(first);
  }

  /**
   * Parses a string that is long, has escapes, or is invalid. The engine's parser is several times as fast as a loop.
   */
  #parseString(first: number): string {
    const end = this.#findQuote(first);
    if (end !== -1) {
      const value = parseString(this.#text.slice(first - 1, end + 1));
      if (value !== undefined) {
        this.#position = end + 1;
        return value;
      }
    }
    controlPattern.lastIndex = first;
    const control = controlPattern.exec(this.#text)?.index ?? this.#text.length;
    const isControl = control < (end === -1 ? this.#text.length : end);
    this.#checkEscapes(first, isControl || end === -1 ? control : end);
    throw isControl
      ? this.error('control character in a string', control)
      : this.error('string without an end', first - 1);
  }

  /** The first quote that is not escaped; -1 without one. */
  #findQuote(first: number): number {
    const text = this.#text;
    for (let at = text.indexOf('"', first); at !== -1; at = text.indexOf('"', at + 1)) {
      let before = at;
      while (before > first && text.charCodeAt(before - 1) === backslashCode) before--;
      if ((at - before) % 2 === 0) return at;
    }
    return -1;
  }

  /** Throws at the first invalid escape. */
  #checkEscapes(start: number, end: number): void {
    const text = this.#text;
    for (let at = text.indexOf('\\', start); at !== -1 && at < end; ) {
      const unit = this.#checkEscape(at);
      let next = at + (unit === undefined ? 2 : 6);
      if (unit !== undefined && unit >= 0xd800 && unit <= 0xdfff) {
        const second = text.charAt(next) === '\\' ? this.#checkCodeUnit(next) : 0;
        if (unit > 0xdbff || second < 0xdc00 || second > 0xdfff) {
          throw this.error('half a surrogate pair in a string', at);
        }
        next += 6;
      }
      at = text.indexOf('\\', next);
    }
  }

  /** The code unit of an escape with four digits. */
  #checkEscape(at: number): number | undefined {
    const letter = this.#text.charAt(at + 1);
    if (letter === 'u') return this.#checkCodeUnit(at);
    if (letter === '' || !plainEscapes.includes(letter)) {
      throw this.error('invalid escape in a string', at);
    }
    return undefined;
  }

  #checkCodeUnit(at: number): number {
    const sequence = this.#text.slice(at, at + 6);
    if (!/^\\u[\da-fA-F]{4}$/.test(sequence)) throw this.error('invalid escape in a string', at);
    return Number.parseInt(sequence.slice(2), 16);
  }

  /** Throws unless only white space is left. */
  expectEnd(): void {
    if (this.peek() !== '') throw this.#unexpected();
  }

  #accept(character: string): boolean {
    if (this.peek() !== character) return false;
    this.#position++;
    return true;
  }

  #expect(character: string): void {
    if (!this.#accept(character)) throw this.#unexpected(` instead of "${character}"`);
  }

  #unexpected(instead = ''): JsonError {
    const found = this.peek();
    if (found === '') return this.error(`unexpected end${instead}`);
    const token = /^[\w.+-]{1,20}|^./su.exec(this.#text.slice(this.#position, this.#position + 21));
    return this.error(`unexpected token ${JSON.stringify(token?.[0] ?? found)}${instead}`);
  }
}

/** The value of a JSON string with its quotes; undefined if it is invalid. */
function parseString(json: string): string | undefined {
  try {
    const value: string = JSON.parse(json);
    return value.isWellFormed() ? value : undefined;
  } catch {
    return undefined;
  }
}
