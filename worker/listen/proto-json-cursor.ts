// Reads JSON text token by token, for readers that know the expected message. Only expected values are
// built, so nesting and size are bounded by the message's own shape.

/** Thrown inside a reader for text that is not the message; the reader returns it as a value. */
export class JsonError extends Error {}

const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const quoteCode = 0x22;
const backslashCode = 0x5c;
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

export class JsonCursor {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** An error at this place, or at an earlier one. */
  error(message: string, position = this.#position): JsonError {
    const before = this.#text.slice(0, position);
    const line = before.split('\n').length;
    const column = position - before.lastIndexOf('\n');
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

  /** Where the next token begins. */
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

  /** True, and past it, if the next token is this word: `null`, `true` or `false`. */
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

  readString(): string {
    if (this.peek() !== '"') throw this.#unexpected();
    const start = this.#position++;
    let value = '';
    for (;;) {
      value += this.#readPlain();
      const character = this.#text.charAt(this.#position);
      if (character === '"') {
        this.#position++;
        return value;
      }
      if (character === '') throw this.error('string without an end', start);
      if (character !== '\\') throw this.error('control character in a string');
      value += this.#readEscape();
    }
  }

  /** Up to the end of the string, an escape, or an invalid character. */
  #readPlain(): string {
    const start = this.#position;
    let position = start;
    for (; position < this.#text.length; position++) {
      const code = this.#text.charCodeAt(position);
      if (code === quoteCode || code === backslashCode || code < 0x20) break;
    }
    this.#position = position;
    return this.#text.slice(start, position);
  }

  #readEscape(): string {
    const start = this.#position;
    const letter = this.#text.charAt(start + 1);
    if (letter !== 'u') {
      const escaped = Object.hasOwn(escapes, letter) ? escapes[letter] : undefined;
      if (escaped === undefined) throw this.error('invalid escape in a string');
      this.#position += 2;
      return escaped;
    }
    const unit = this.#readCodeUnit();
    if (unit < 0xd800 || unit > 0xdfff) return String.fromCharCode(unit);
    const second = this.#text.charAt(this.#position) === '\\' ? this.#readCodeUnit() : 0;
    if (unit > 0xdbff || second < 0xdc00 || second > 0xdfff) {
      throw this.error('half a surrogate pair in a string', start);
    }
    return String.fromCharCode(unit, second);
  }

  #readCodeUnit(): number {
    const sequence = this.#text.slice(this.#position, this.#position + 6);
    if (!/^\\u[\da-fA-F]{4}$/.test(sequence)) throw this.error('invalid escape in a string');
    this.#position += 6;
    return Number.parseInt(sequence.slice(2), 16);
  }

  /** Fails unless only white space is left. */
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
