// The headers that an application sets on its answer: each is sent, or is an error with its name. A list does it, since
// most answers have five: the platform's `Headers` cost more than the rest of an answer.
import type { HeaderList } from './request.ts';

/** Of the connection, not of the answer: the server sets them. */
const ofTheServer = 'transfer-encoding';
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const sendable = /^[\t\x20-\x7e\x80-\xff]*$/;

type Entries = ReturnType<Headers['entries']>;
type Texts = ReturnType<Headers['keys']>;

/** As `Headers`, whose errors name the header, and whose locations are percent-encoded. */
export class DraftHeaders implements Headers {
  /** Names in lower case and values in turn; only `set-cookie` stands more than once. */
  readonly #list: string[];

  /** `list`: names in lower case that can be sent. */
  constructor(list: HeaderList = []) {
    this.#list = [...list];
  }

  /** Those that a client has sent, in any case; of one name the values are joined. */
  static received(given: Iterable<readonly [string, string]>): DraftHeaders {
    const headers = new DraftHeaders();
    for (const [name, value] of given) headers.#add(name.toLowerCase(), value);
    return headers;
  }

  toList(): string[] {
    return [...this.#list];
  }

  get(name: string): string | null {
    const known = name.toLowerCase();
    const at = this.#find(known);
    if (at < 0) return null;
    return known === 'set-cookie' ? this.getSetCookie().join(', ') : (this.#list[at + 1] as string);
  }

  has(name: string): boolean {
    return this.#find(name.toLowerCase()) >= 0;
  }

  set(name: string, value: string): void {
    const known = toName(name);
    const text = toSendable(known, value);
    const at = this.#find(known);
    if (at >= 0 && known !== 'set-cookie') {
      this.#list[at + 1] = text;
      return;
    }
    this.delete(known);
    this.#list.push(known, text);
  }

  append(name: string, value: string): void {
    const known = toName(name);
    this.#add(known, toSendable(known, value));
  }

  #add(name: string, value: string): void {
    const at = name === 'set-cookie' ? -1 : this.#find(name);
    if (at < 0) this.#list.push(name, value);
    else this.#list[at + 1] = `${this.#list[at + 1]}, ${value}`;
  }

  delete(name: string): void {
    const known = name.toLowerCase();
    for (let at = this.#find(known); at >= 0; at = this.#find(known)) this.#list.splice(at, 2);
  }

  getSetCookie(): string[] {
    return this.#list.filter((_, at) => at % 2 === 1 && this.#list[at - 1] === 'set-cookie');
  }

  forEach(each: (value: string, name: string, headers: Headers) => void): void {
    for (const [name, value] of this) each(value, name, this);
  }

  entries(): Entries {
    return this.#pairs() as Entries;
  }

  keys(): Texts {
    return this.#pairs().map(([name]) => name) as Texts;
  }

  values(): Texts {
    return this.#pairs().map(([, value]) => value) as Texts;
  }

  [Symbol.iterator](): Entries {
    return this.entries();
  }

  *#pairs(): Generator<[string, string], undefined> {
    const list = this.#list;
    for (let at = 0; at < list.length; at += 2) yield [list[at] as string, list[at + 1] as string];
    return undefined;
  }

  #find(name: string): number {
    for (let at = 0; at < this.#list.length; at += 2) if (this.#list[at] === name) return at;
    return -1;
  }
}

export function toDraftHeaders(given: Readonly<Record<string, string>>): DraftHeaders {
  const headers = new DraftHeaders();
  for (const [name, value] of Object.entries(given)) headers.append(name, value);
  return headers;
}

function toName(name: string): string {
  if (token.test(name)) return name.toLowerCase();
  throw unsendable(name, 'it is no name of a header');
}

function toSendable(name: string, value: string): string {
  if (name === ofTheServer) throw unsendable(name, 'the server sets it');
  const isLocation = name === 'location' || name === 'content-location';
  const text = trimBlanks(isLocation ? encodeLocation(value) : String(value));
  if (sendable.test(text)) return text;
  throw unsendable(name, `${JSON.stringify(text)} is an invalid header value`);
}

/** Not by an expression: its time would grow with the square of the blanks within. */
function trimBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && '\t\r\n '.includes(text.charAt(start))) start++;
  while (end > start && '\t\r\n '.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

function unsendable(name: string, reason: string): TypeError {
  return new TypeError(`the header ${JSON.stringify(name)} cannot be sent: ${reason}`);
}

/** Characters that a URI does not have become UTF-8 in percent encoding; what is encoded already stays. Control
 * characters stay too, so that they are refused. */
function encodeLocation(location: string): string {
  return String(location)
    .toWellFormed()
    .replace(/[ "<>\\^`{|}]|[^\0-\x7f]+/g, encodeURIComponent);
}
