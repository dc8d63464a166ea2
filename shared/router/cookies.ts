// Cookies with secure defaults: unless the application sets it, scripts of pages, other sites and plain connections do
// not get them.

import { trimBlanks } from './request/listed-headers.ts';
import { token } from './request/media-type.ts';

export interface CookieOptions {
  /** Lifetime in seconds; absent: until the browser is closed. 0 removes the cookie. */
  readonly maxAge?: number;
  /** Default: /. */
  readonly path?: string;
  /** Default: this host only. */
  readonly domain?: string;
  /** Default: true, scripts cannot read it. */
  readonly httpOnly?: boolean;
  /** Default: true, only over TLS and on localhost. */
  readonly secure?: boolean;
  /** Default: lax, other sites send it only by a link. */
  readonly sameSite?: 'strict' | 'lax' | 'none';
}

const attribute = /^[\x20-\x3a\x3c-\x7e]*$/;

/** Browsers do not store longer ones. */
const maxCharacters = 4096;

/** The value of a request's cookie, without quotes around it; undefined if it is absent. Of several the first, in the
 * order of the browser. */
export function readCookie(headers: Headers, name: string): string | undefined {
  for (const pair of (headers.get('cookie') ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at < 0 || trimBlanks(pair.slice(0, at)) !== name) continue;
    const value = trimBlanks(pair.slice(at + 1)).replace(/^"(.*)"$/, '$1');
    try {
      return decodeURIComponent(value);
    } catch {
      return value;
    }
  }
  return undefined;
}

/** Adds a cookie to the headers of an answer; the value can be any text. Throws a TypeError for an invalid cookie. */
export function setCookie(
  headers: Headers,
  name: string,
  value: string,
  options: CookieOptions = {},
): void {
  const { maxAge, path = '/', domain, httpOnly = true, secure = true, sameSite = 'lax' } = options;
  if (!token.test(name)) throw new TypeError(`${JSON.stringify(name)} names no cookie`);
  if (!attribute.test(path) || !attribute.test(domain ?? '')) {
    throw new TypeError('the path or the domain of a cookie holds a character that ends it');
  }
  if (maxAge !== undefined && !Number.isSafeInteger(maxAge)) {
    throw new TypeError('the age of a cookie is a number of whole seconds');
  }
  if (!['strict', 'lax', 'none'].includes(sameSite)) {
    throw new TypeError(`sameSite must be strict, lax or none, not ${sameSite}`);
  }
  // A browser would silently drop these.
  if (sameSite === 'none' && !secure) throw new TypeError('sameSite none needs secure');
  if (/^__(?:Host|Secure|Http)-/i.test(name) && !secure)
    throw new TypeError(`${name} needs secure`);
  if (/^__(?:Host-)?Http-/i.test(name) && !httpOnly) throw new TypeError(`${name} needs httpOnly`);
  if (/^__Host-/i.test(name) && (path !== '/' || domain !== undefined)) {
    throw new TypeError(`${name} has the path / and no domain`);
  }
  const parts = [
    `${name}=${encodeURIComponent(value)}`,
    `Path=${path}`,
    ...(domain === undefined ? [] : [`Domain=${domain}`]),
    ...(maxAge === undefined ? [] : [`Max-Age=${maxAge}`]),
    ...(httpOnly ? ['HttpOnly'] : []),
    ...(secure ? ['Secure'] : []),
    `SameSite=${sameSite.charAt(0).toUpperCase()}${sameSite.slice(1)}`,
  ];
  const cookie = parts.join('; ');
  if (cookie.length > maxCharacters) throw new TypeError(`the cookie ${name} is too long`);
  headers.append('set-cookie', cookie);
}
