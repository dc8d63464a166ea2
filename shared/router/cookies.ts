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
  const parts = [
    `${name}=${encodeURIComponent(value)}`,
    `Path=${path}`,
    ...(domain === undefined ? [] : [`Domain=${domain}`]),
    ...(maxAge === undefined ? [] : [`Max-Age=${maxAge}`]),
    ...(httpOnly ? ['HttpOnly'] : []),
    ...(secure ? ['Secure'] : []),
    `SameSite=${sameSite.charAt(0).toUpperCase()}${sameSite.slice(1)}`,
  ];
  headers.append('set-cookie', parts.join('; '));
}
