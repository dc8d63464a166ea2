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

/** Adds a value; a name that is there already becomes a list. Throws 400 beyond the limits. */
export function addKeyword(
  keywords: Keywords,
  name: string,
  value: unknown,
  { where, limits }: { readonly where: 'query' | 'body'; readonly limits: Limits },
): void {
  if (name === '__proto__') throw new BadRequest(`the ${where} holds a name that is not allowed`);
  if (!(name in keywords)) {
    if (Object.keys(keywords).length >= limits.keys) {
      throw new BadRequest(`the ${where} has more than ${limits.keys} names`);
    }
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

/** `application/x-www-form-urlencoded`: a name without `=` has the empty text as its value, and
 * brackets and dots in names mean nothing. Throws 400. */
export function parseUrlencoded(text: string, where: 'query' | 'body', limits: Limits): Keywords {
  const keywords = createKeywords();
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const [name, value] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
    addKeyword(keywords, decodeForm(name, where), decodeForm(value, where), { where, limits });
  }
  return keywords;
}

function decodeForm(text: string, where: 'query' | 'body'): string {
  return decodePercent(text.replaceAll('+', ' '), where);
}
