// Names and values from a query, a form or a JSON object that become keyword arguments. The objects have
// no prototype, so that a name is only data (behaviour: names-are-data).
import { BadRequest } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { decodePercent } from './target.ts';

/** A repeated name holds a list. */
export type Keywords = { [name: string]: unknown };

export function createKeywords(): Keywords {
  return Object.create(null) as Keywords;
}

/** Where there are none. */
export const noKeywords: Readonly<Keywords> = Object.freeze(createKeywords());

/** Adds a value; a name that is there already becomes a list. Throws 400 beyond the limit of one list; the caller
 * counts the names. */
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
  /** Names that are likely. What is found there is taken from there, since the engine must search for the equal of a text
   * that is cut from another one before an object can have it as a name: a fifth of what it takes to bind a query. */
  readonly expected: readonly string[];
  /** Lists that are separated by commas; an encoded comma is data (RFC 3986, section 2.2). */
  readonly commas: ReadonlySet<string>;
  /** Those that are true without a value. */
  readonly flags: ReadonlySet<string>;
}

const noNames: QueryNames = { expected: [], commas: new Set(), flags: new Set() };

/** `application/x-www-form-urlencoded`: a name without `=` has the empty text as its value, and
 * brackets and dots in names mean nothing. Throws 400. */
export function parseUrlencoded(
  text: string,
  where: 'query' | 'body',
  limits: Limits,
  { expected, commas, flags }: QueryNames = noNames,
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
    if (at < 0 && flags.has(name)) {
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
