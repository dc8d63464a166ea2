// Parses untrusted JSON into a safe value: bounded depth, no names that reach a prototype, no integers
// that a double cannot hold, no texts that UTF-8 cannot hold.
import { BadRequest } from '../errors.ts';

/** Parses bytes of JSON; calls `check` for each value other than a text, list or object, with its name ('' in a list
 * and at the top) and its source. */
export type JsonParser = (
  bytes: Uint8Array,
  maxDepth: number,
  check: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
) => unknown;

/** Number of bytes of a body that are parsed in a millisecond. */
export const fewBytes = 128 * 1024;

/** Throws 400. The last of duplicate names wins. */
export function parseJson(text: string, maxDepth: number): unknown {
  const isUnusual =
    hasUnusualNumber(text, maxDepth) ||
    text.includes('\\u') ||
    text.includes('__proto__') ||
    text.includes('constructor');
  try {
    return isUnusual ? JSON.parse(text, refuseUnsafe) : JSON.parse(text);
  } catch (error) {
    if (error instanceof BadRequest) throw error;
    throw new BadRequest('the body is not JSON');
  }
}

/** Throws 400 for a text that is nested too deep, before it is parsed, since the reviver recurses. Returns whether a
 * number has an exponent, or so many digits that it may be too large. */
function hasUnusualNumber(text: string, maxDepth: number): boolean {
  let depth = 0;
  let digits = 0;
  let isFound = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= 0x30 && code <= 0x39) {
      digits += 1;
      isFound ||= digits > 15;
      continue;
    }
    if (code === 0x22) {
      at = endOfString(text, at + 1);
    } else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > maxDepth) throw new BadRequest(`the body is nested deeper than ${maxDepth}`);
    } else if (code === 0x5d || code === 0x7d) {
      depth -= 1;
    } else if (digits > 0 && (code === 0x65 || code === 0x45)) {
      isFound = true;
    }
    digits = 0;
  }
  return isFound;
}

/** The index of the quote that ends a string. */
function endOfString(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x5c) at += 1;
    else if (code === 0x22) break;
  }
  return at;
}

/** Throws 400 for a member that a body must not contain. */
export function refuseUnsafe(key: string, value: unknown, context?: { source?: string }): unknown {
  if (key === '__proto__' || (key === 'constructor' && hasPrototypeKey(value))) {
    throw new BadRequest('the body holds a name that is not allowed');
  }
  for (const text of typeof value === 'string' ? [key, value] : [key]) {
    if (text.includes('\0')) throw new BadRequest('the body holds a NUL character');
    if (!text.isWellFormed()) throw new BadRequest('the body holds half of a character');
  }
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    if (!Number.isFinite(value) || /^-?\d+(?:\.0+)?$/.test(context?.source ?? '')) {
      throw new BadRequest('the body holds a number that is too large');
    }
  }
  return value;
}

function hasPrototypeKey(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype');
}
