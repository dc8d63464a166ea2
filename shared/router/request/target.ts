// The request target: the parts of its path, and its query as names and values, as in the body of a form. Resolution
// follows WHATWG URLs, so that every mount and every gateway in front sees the same path (behaviour:
// one-meaning-of-a-path). Keyword arguments are objects without a prototype, so that a name is only data (behaviour:
// names-are-data).
import { BadRequest, HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';

export interface Target {
  /** Decoded exactly once, after splitting; empty parts are removed. */
  readonly parts: readonly string[];
  /** Still encoded; empty without a query. */
  readonly query: string;
  /** `*`, which refers to the server and not to a resource. */
  readonly isServer: boolean;
}

const absoluteForm = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?\\]*/;
const singleDot = /^(?:\.|%2e)$/i;
const doubleDot = /^(?:\.|%2e){2}$/i;

/** A target whose parts need neither resolution nor decoding, as in most: `parse` would yield the same at a third more
 * cost. */
const plain = /^(?:\/[\w-]+)+(?:\?[!"$-~]*)?$/;

const maxUnparsed = 256;

/** Throws 414 for a target that is too long and 400 for one that is not well-formed. */
export function parseTarget(raw: string, limits: Limits): Target {
  if (raw.length > limits.targetBytes || !plain.test(raw)) return parse(raw, limits);
  const at = raw.indexOf('?');
  const path = at < 0 ? raw : raw.slice(0, at);
  const parts: string[] = [];
  for (let from = 1; from > 0; ) {
    const slash = path.indexOf('/', from);
    parts.push(slash < 0 ? path.slice(from) : path.slice(from, slash));
    from = slash + 1;
  }
  if (parts.length > limits.pathParts) return parse(raw, limits);
  return { parts, query: raw.slice(path.length + 1), isServer: false };
}

function parse(raw: string, limits: Limits): Target {
  const target = toOriginForm(raw);
  if (target.length > limits.targetBytes) {
    throw new HttpError(414, { detail: `the target is longer than ${limits.targetBytes} bytes` });
  }
  if (target === '*') return { parts: [], query: '', isServer: true };
  const at = target.indexOf('?');
  const path = (at < 0 ? target : target.slice(0, at)).replaceAll('\\', '/');
  const query = at < 0 ? '' : target.slice(at + 1);
  if (path !== '' && !path.startsWith('/')) {
    throw new BadRequest('the target does not begin with a slash');
  }
  if (!/^[\x21-\x7e]*$/.test(target) || target.includes('#')) {
    throw new BadRequest('the target holds characters that must be percent-encoded');
  }
  const parts = resolveDots(path.split('/').slice(1)).filter((part) => part !== '');
  if (parts.length > limits.pathParts) {
    throw new BadRequest(`the path has more than ${limits.pathParts} parts`);
  }
  return { parts: parts.map((part) => decodePercent(part, 'path')), query, isServer: false };
}

/** Removes scheme and host, if present. */
export function toOriginForm(target: string): string {
  return target.replace(absoluteForm, '');
}

/** The parts, each encoded again: one line without control characters. */
export function toPath(parts: readonly string[]): string {
  return `/${parts.map(encodeURIComponent).join('/')}`;
}

/** The path of a malformed target for a log: as received, without its query. */
export function toUnparsedPath(raw: string): string {
  const [path = ''] = raw.slice(0, maxUnparsed).toWellFormed().split('?', 1);
  return encodeURI(path);
}

/** Throws 400 for invalid percent encoding, for bytes that are not UTF-8, and for NUL. */
export function decodePercent(text: string, where: 'path' | 'query' | 'body'): string {
  // Without percent encoding there is no NUL: neither a target nor a body can contain it unencoded.
  if (!text.includes('%')) return text;
  let decoded: string;
  try {
    decoded = decodeURIComponent(text);
  } catch {
    throw new BadRequest(`the ${where} holds percent encoding that is not UTF-8`);
  }
  if (decoded.includes('\0')) throw new BadRequest(`the ${where} holds a NUL character`);
  return decoded;
}

/** Done before empty parts are removed, as in URLs: `/a//../b` is `/a/b`. Nothing leads above the root. */
function resolveDots(parts: readonly string[]): string[] {
  const resolved: string[] = [];
  for (const part of parts) {
    if (doubleDot.test(part)) resolved.pop();
    else if (!singleDot.test(part)) resolved.push(part);
  }
  return resolved;
}

/** A repeated name holds a list. */
export type Keywords = { [name: string]: unknown };

export function createKeywords(): Keywords {
  return Object.create(null) as Keywords;
}

/** The keywords of a request without any. */
export const noKeywords: Readonly<Keywords> = Object.freeze(createKeywords());

/** Adds a value; a name that exists already becomes a list. Throws 400 beyond the limit of one list; the caller counts
 * the names. */
export function addKeyword(
  keywords: Keywords,
  name: string,
  value: unknown,
  { where, limits }: { readonly where: 'query' | 'body'; readonly limits: Limits },
): void {
  if (name === '__proto__') throw new BadRequest(`the ${where} holds a name that is not allowed`);
  if (!(name in keywords)) {
    keywords[name] = value;
    return;
  }
  const before = keywords[name];
  const list: unknown[] = Array.isArray(before) ? before : [before];
  if (list.length >= limits.listItems) {
    throw new BadRequest(`the ${where} repeats a name more than ${limits.listItems} times`);
  }
  list.push(value);
  keywords[name] = list;
}

/** How the names of a query are read. */
export interface QueryNames {
  /** Likely names. Using these saves a fifth of the time to bind a query, since the engine must intern a text that is
   * cut from another one before it can be the name of a property. */
  readonly expected: readonly string[];
  /** Names of lists that are separated by commas; an encoded comma is data (RFC 3986, section 2.2). */
  readonly commas: ReadonlySet<string>;
  /** Whether a keyword is true if it has no value. */
  isFlag(name: string): boolean;
}

const noNames: QueryNames = { expected: [], commas: new Set(), isFlag: () => false };

/** Parses `application/x-www-form-urlencoded`: a name without `=` has the empty text as its value, and brackets and
 * dots in names have no special meaning. Throws 400. */
export function parseUrlencoded(
  text: string,
  where: 'query' | 'body',
  limits: Limits,
  { expected, commas, isFlag }: QueryNames = noNames,
): Keywords {
  const keywords = createKeywords();
  const about = { where, limits };
  let names = 0;
  for (let from = 0; from < text.length; ) {
    const next = text.indexOf('&', from);
    const end = next < 0 ? text.length : next;
    const pair = text.slice(from, end);
    from = end + 1;
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const given = decodeForm(at < 0 ? pair : pair.slice(0, at), where);
    const name = expected.find((one) => one === given) ?? given;
    if (!(name in keywords)) names += 1;
    if (names > limits.keys) {
      throw new BadRequest(`the ${where} has more than ${limits.keys} names`);
    }
    const value = at < 0 ? '' : pair.slice(at + 1);
    if (at < 0 && isFlag(name)) {
      addKeyword(keywords, name, 'true', about);
    } else if (commas.has(name)) {
      for (const item of value.split(',', limits.listItems + 1)) {
        addKeyword(keywords, name, decodeForm(item, where), about);
      }
    } else {
      addKeyword(keywords, name, decodeForm(value, where), about);
    }
  }
  return keywords;
}

function decodeForm(text: string, where: 'query' | 'body'): string {
  return decodePercent(text.includes('+') ? text.replaceAll('+', ' ') : text, where);
}
