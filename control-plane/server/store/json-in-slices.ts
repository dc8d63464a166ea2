// Reads and writes JSON of any length in steps of a fraction of a millisecond, for a thread that also serves requests:
// JSON.parse and JSON.stringify of several megabytes would block it.

/** Bytes read, or characters written, per step. */
const atOnce = 64 * 1024;
/** Values read, or written, per step. */
const valuesAtOnce = 200;
/** The most blanks between two values, which are read in one step. */
const maxBlanks = 64 * 1024;
/** Far above what a double needs; parsing a number takes more than linear time. */
const maxNumberLength = 1_000;

/** Called after each value is read, with the member's name ('' in a list and at the top level) and the source of a
 * number or a literal. An exception ends the reading. */
export type CheckJson = (
  key: string,
  value: unknown,
  context: { readonly source?: string },
) => unknown;

/** More values than the caller allows. */
export class TooMany extends Error {}

/** Lists and objects are nested deeper than the caller allows. */
export class TooDeep extends Error {}

export interface JsonBounds {
  readonly maxDepth: number;
  /** Counts lists, objects, texts and all other values. Default: unlimited. */
  readonly maxValues?: number;
}

/** Parses JSON in UTF-8, as JSON.parse does. Throws a SyntaxError (also for 64 KiB of blanks), a TooDeep, a TooMany,
 * and a TypeError for bytes that are not UTF-8. */
export function* readingJson(
  bytes: Uint8Array,
  { maxDepth, maxValues = Number.POSITIVE_INFINITY }: JsonBounds,
  check?: CheckJson,
): Generator<void, unknown> {
  return yield* new JsonReader(bytes, maxValues, check).read(maxDepth);
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const literals: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
]);
const code = (character: string) => character.charCodeAt(0);
const [quote, backslash, comma, colon] = [code('"'), code('\\'), code(','), code(':')];
const [openList, closeList, openObject, closeObject] = [code('['), code(']'), code('{'), code('}')];

class JsonReader {
  readonly #bytes: Uint8Array;
  readonly #check: CheckJson | undefined;
  readonly #maxValues: number;
  #at = 0;
  #values = 0;
  /** Where the current step began. */
  #from = 0;

  constructor(bytes: Uint8Array, maxValues: number, check: CheckJson | undefined) {
    this.#bytes = bytes;
    this.#maxValues = maxValues;
    this.#check = check;
  }

  *read(maxDepth: number): Generator<void, unknown> {
    const value = yield* this.#value('', maxDepth);
    if (this.#next() !== undefined) throw new SyntaxError('there is more after the value');
    return value;
  }

  *#value(key: string, depthLeft: number): Generator<void, unknown> {
    if (++this.#values > this.#maxValues) throw new TooMany();
    if (this.#values % valuesAtOnce === 0 || this.#at - this.#from > atOnce) {
      this.#from = this.#at;
      yield;
    }
    const first = this.#next();
    let value: unknown;
    let source: string | undefined;
    if (first === quote) value = yield* this.#text();
    else if (first === openObject) value = yield* this.#object(depthLeft - 1);
    else if (first === openList) value = yield* this.#list(depthLeft - 1);
    else {
      source = this.#literal();
      value = literals.has(source) ? literals.get(source) : toNumber(source);
    }
    this.#check?.(key, value, source === undefined ? {} : { source });
    return value;
  }

  *#object(depthLeft: number): Generator<void, unknown> {
    if (depthLeft < 0) throw new TooDeep();
    const object: Record<string, unknown> = {};
    this.#at++;
    if (this.#accepts(closeObject)) return object;
    do {
      if (this.#next() !== quote) throw new SyntaxError('a name is expected');
      const key = yield* this.#text();
      if (!this.#accepts(colon)) throw new SyntaxError('a colon is expected');
      const value = yield* this.#value(key, depthLeft);
      if (key !== '__proto__') object[key] = value;
      else {
        const own = { value, enumerable: true, configurable: true, writable: true };
        Object.defineProperty(object, key, own);
      }
    } while (this.#accepts(comma));
    if (!this.#accepts(closeObject)) throw new SyntaxError('the end of an object is expected');
    return object;
  }

  *#list(depthLeft: number): Generator<void, unknown> {
    if (depthLeft < 0) throw new TooDeep();
    const list: unknown[] = [];
    this.#at++;
    if (this.#accepts(closeList)) return list;
    do list.push(yield* this.#value('', depthLeft));
    while (this.#accepts(comma));
    if (!this.#accepts(closeList)) throw new SyntaxError('the end of a list is expected');
    return list;
  }

  /** Yields parts that end between two characters, and not inside an escape. They are joined at the end: a text built
   * by concatenation is copied when it is first read, which takes ten times as long. */
  *#text(): Generator<void, string> {
    const bytes = this.#bytes;
    const parts: string[] = [];
    let from = this.#at + 1;
    let at = from;
    for (;;) {
      const byte = bytes[at];
      if (byte === undefined) throw new SyntaxError('the end of a text is missing');
      if (byte === quote) break;
      if (at - from >= atOnce && (byte & 0xc0) !== 0x80) {
        parts.push(this.#part(from, at));
        from = at;
        yield;
      }
      if (byte !== backslash) at++;
      else at += bytes[at + 1] === code('u') ? 6 : 2;
    }
    this.#at = at + 1;
    if (parts.length === 0) return this.#part(from, at);
    parts.push(this.#part(from, at));
    yield;
    return parts.join('');
  }

  #part(from: number, to: number): string {
    return JSON.parse(`"${decoder.decode(this.#bytes.subarray(from, to))}"`);
  }

  /** Reads a number or a literal. */
  #literal(): string {
    const from = this.#at;
    while (isOfLiteral(this.#bytes[this.#at])) this.#at++;
    const length = this.#at - from;
    if (length > maxNumberLength) throw new SyntaxError('a number is too long');
    return String.fromCharCode(...this.#bytes.subarray(from, this.#at));
  }

  #accepts(byte: number): boolean {
    if (this.#next() !== byte) return false;
    this.#at++;
    return true;
  }

  /** The byte after blanks. */
  #next(): number | undefined {
    const from = this.#at;
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
      if (++this.#at - from > maxBlanks) throw new SyntaxError('there are too many blanks');
    }
  }
}

/** Letters, digits and the signs of numbers. */
function isOfLiteral(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e
  );
}

function toNumber(source: string): number {
  if (!number.test(source)) throw new SyntaxError('a value is expected');
  return Number(source);
}

/** JSON in UTF-8 that is already written, and is copied into other JSON unchanged. */
export class WrittenJson {
  readonly parts: readonly Uint8Array[];

  constructor(parts: readonly Uint8Array[]) {
    this.parts = parts;
  }
}

/** The text of JSON.stringify, in parts. `value` is plain data without toJSON methods; a generator is written as a
 * list. */
export function* writingJson(value: unknown): Generator<string | Uint8Array, void> {
  const writer = new JsonWriter();
  yield* writer.write(value);
  yield writer.rest;
}

class JsonWriter {
  rest = '';

  *write(value: unknown): Generator<string | Uint8Array, void> {
    if (value instanceof WrittenJson) {
      yield this.#cutSlice();
      yield* value.parts;
    } else if (isShort(value)) this.rest += JSON.stringify(value) ?? 'null';
    else if (typeof value === 'string') yield* this.#writeLong(value);
    else if (isIterable(value)) yield* this.#writeList(value);
    else yield* this.#writeObject(value as object);
    if (this.rest.length >= atOnce) yield this.#cutSlice();
  }

  *#writeList(list: Iterable<unknown>): Generator<string | Uint8Array, void> {
    let mark = '[';
    for (const item of list) {
      this.rest += mark;
      mark = ',';
      yield* this.write(item);
    }
    this.rest += mark === '[' ? '[]' : ']';
  }

  *#writeObject(object: object): Generator<string | Uint8Array, void> {
    let mark = '{';
    for (const [key, value] of Object.entries(object)) {
      if (value === undefined) continue;
      this.rest += `${mark}${JSON.stringify(key)}:`;
      mark = ',';
      yield* this.write(value);
    }
    this.rest += mark === '{' ? '{}' : '}';
  }

  *#writeLong(text: string): Generator<string, void> {
    this.rest += '"';
    for (let from = 0; from < text.length; ) {
      let to = from + atOnce;
      // The halves of a surrogate pair stay together.
      if (isInsideCharacter(text, to)) to++;
      this.rest += JSON.stringify(text.slice(from, to)).slice(1, -1);
      from = to;
      yield this.#cutSlice();
    }
    this.rest += '"';
  }

  #cutSlice(): string {
    const part = this.rest;
    this.rest = '';
    return part;
  }
}

/** Such a value is written in one step: a generator for each of its parts costs ten times as much. */
function isShort(value: unknown): boolean {
  return countValues(value, valuesAtOnce) <= valuesAtOnce;
}

/** The number of values in it; a long text counts as several. Counting stops above `most`. */
function countValues(value: unknown, most: number): number {
  if (typeof value === 'string') return 1 + Math.floor((value.length * valuesAtOnce) / atOnce);
  if (typeof value !== 'object' || value === null) return 1;
  if (value instanceof WrittenJson) return most + 1;
  if (isIterable(value) && !Array.isArray(value)) return most + 1;
  let count = 1;
  for (const part of Array.isArray(value) ? value : Object.values(value)) {
    count += countValues(part, most - count);
    if (count > most) break;
  }
  return count;
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

/** Whether `at` is between the two halves of a surrogate pair; a text may also contain lone halves. */
function isInsideCharacter(text: string, at: number): boolean {
  return (text.codePointAt(at - 1) ?? 0) > 0xffff;
}
