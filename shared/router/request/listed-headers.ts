// Headers as a list: those of a request, and those of an answer, each of which is either sent or reported by name as an
// error. Most answers have five, and three are read of a request: the platform's `Headers` cost more than the rest.

import { token } from './media-type.ts';

/** Alternating names, in lower case, and values. A name can occur more than once. */
export type HeaderList = readonly string[];

/** Headers of the connection, not of the answer: the server sets them. */
export const ofTheServer = ['transfer-encoding', 'trailer'];
const sendable = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Headers with less than that; beside a length, Node refuses other characters of the second. */
const forms: ReadonlyMap<string, RegExp> = new Map([
  ['content-length', /^\d+$/],
  ['content-disposition', /^[\t\x20-\x7e]*$/],
]);

type Entries = ReturnType<Headers['entries']>;
type Texts = ReturnType<Headers['keys']>;

/** Like `Headers`, but errors name the header, and locations are percent-encoded. */
export class ListedHeaders implements Headers {
  /** Alternating names, in any case, and values; a name can occur more than once. */
  #list: HeaderList;

  /** Does not modify `list`. */
  constructor(list: HeaderList = []) {
    this.#list = list;
  }

  get list(): HeaderList {
    return this.#list;
  }

  get(name: string): string | null {
    const list = this.#list;
    const known = name.toLowerCase();
    let found: string | null = null;
    for (let at = 0; at < list.length; at += 2) {
      if (!isNamed(list[at] as string, known)) continue;
      const value = list[at + 1] as string;
      found = found === null ? value : found + (known === 'cookie' ? '; ' : ', ') + value;
    }
    return found;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  set(name: string, value: string): void {
    const known = toName(name);
    const text = toSendable(known, value);
    this.delete(known);
    this.#list = [...this.#list, known, text];
  }

  append(name: string, value: string): void {
    const known = toName(name);
    if (forms.has(known) && this.has(known)) throw unsendable(known, 'it is set already');
    this.#list = [...this.#list, known, toSendable(known, value)];
  }

  delete(name: string): void {
    if (!this.has(name)) return;
    const known = name.toLowerCase();
    this.#list = this.#list.filter((_, at) => !isNamed(this.#list[at - (at % 2)] as string, known));
  }

  getSetCookie(): string[] {
    return this.#pairs().flatMap(([name, value]) => (name === 'set-cookie' ? [value] : []));
  }

  forEach(each: (value: string, name: string, headers: Headers) => void): void {
    for (const [name, value] of this.#pairs()) each(value, name, this);
  }

  entries(): Entries {
    return this.#pairs().values() as Entries;
  }

  keys(): Texts {
    return this.#pairs()
      .values()
      .map(([name]) => name) as Texts;
  }

  values(): Texts {
    return this.#pairs()
      .values()
      .map(([, value]) => value) as Texts;
  }

  [Symbol.iterator](): Entries {
    return this.entries();
  }

  /** The values of one name are joined, except cookies, whose values contain commas. */
  #pairs(): [string, string][] {
    const list = this.#list;
    const joined = new Map<string, string>();
    const cookies: [string, string][] = [];
    for (let at = 0; at < list.length; at += 2) {
      const name = (list[at] as string).toLowerCase();
      const value = list[at + 1] as string;
      const before = joined.get(name);
      if (name === 'set-cookie') cookies.push([name, value]);
      else if (before === undefined) joined.set(name, value);
      else joined.set(name, this.get(name) ?? value);
    }
    return [...joined, ...cookies];
  }
}

function isNamed(given: string, known: string): boolean {
  return given.length === known.length && (given === known || given.toLowerCase() === known);
}

export function toListedHeaders(given: Readonly<Record<string, string>>): ListedHeaders {
  const headers = new ListedHeaders();
  for (const [name, value] of Object.entries(given)) headers.append(name, value);
  return headers;
}

/** Adds a name to `Vary` unless it is there already. */
export function addVary(headers: Headers, name: string): void {
  const named = (headers.get('vary') ?? '').toLowerCase().split(/[ \t,]+/);
  if (!named.includes('*') && !named.includes(name.toLowerCase())) headers.append('vary', name);
}

function toName(name: string): string {
  if (token.test(name)) return name.toLowerCase();
  throw unsendable(name, 'it is not a valid name of a header');
}

function toSendable(name: string, value: string): string {
  if (ofTheServer.includes(name)) throw unsendable(name, 'the server sets it');
  const isLocation = name === 'location' || name === 'content-location';
  const text = trimBlanks(isLocation ? encodeLocation(value) : String(value));
  if ((forms.get(name) ?? sendable).test(text)) return text;
  throw unsendable(name, `${JSON.stringify(text)} is an invalid header value`);
}

/** Removes only what HTTP calls blanks: others, such as the no-break space, are part of a value. Not a regular
 * expression, whose time would grow with the square of the number of inner blanks. */
export function trimBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && '\t\r\n '.includes(text.charAt(start))) start++;
  while (end > start && '\t\r\n '.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

function unsendable(name: string, reason: string): TypeError {
  return new TypeError(`the header ${JSON.stringify(name)} cannot be sent: ${reason}`);
}

/** Characters that a URI cannot contain are percent-encoded as UTF-8; existing encoding is retained. Control characters
 * are retained too, so that they are refused, except tabs, which browsers would drop. A backslash ends the host, as for
 * the application's own `new URL`: encoded, it would be a part of the user name before another host. */
function encodeLocation(location: string): string {
  return String(location)
    .toWellFormed()
    .replace(/^((?:[a-z][a-z\d+.-]*:)?\/\/[^/?#\\]*)\\/i, '$1/')
    .replace(/[\t "<>\\^`{|}]|[^\0-\x7f]+/g, encodeURIComponent);
}

/** The headers of an answer, in `own` itself if nothing was set: `own` overrides what was set, which overrides the last three of the headers that every
 * answer has. Throws if the set length differs from that of the body. */
export function toHeaderList(own: string[], set: Headers | undefined, requestId: string): string[] {
  const always = [
    'x-request-id',
    requestId,
    'x-content-type-options',
    'nosniff',
    'cache-control',
    'no-store',
  ];
  if (set === undefined) {
    own.push(...always);
    return own;
  }
  const list = [...own];
  for (const [name, value] of set) {
    const at = own.findIndex((one, index) => index % 2 === 0 && one === name);
    if (at < 0) list.push(name, value);
    else if (name === 'content-length') refuseOtherLength(value, own[at + 1] ?? '');
  }
  for (let at = 0; at < always.length; at += 2) {
    if (!set.has(always[at] ?? '')) list.push(...always.slice(at, at + 2));
  }
  return list;
}

export function refuseOtherLength(set: string, length: string): void {
  if (set === length) return;
  throw new TypeError(`the header content-length is ${set}, and the body has ${length} bytes`);
}
