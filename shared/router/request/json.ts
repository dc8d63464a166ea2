// Parses untrusted JSON into a safe value: bounded depth, no names that reach a prototype, no integers
// that a double cannot hold.
import { BadRequest } from '../errors.ts';

/** What may hide something to refuse: a name or a NUL written with escapes, a number with many digits or an
 * exponent. Texts without it need no look at each of their values. */
const unusual = /__proto__|constructor|\\u|\0|\d{16}|\d[eE]/;

/** Throws 400. The last of duplicate names wins. */
export function parseJson(text: string, maxDepth: number): unknown {
  refuseDepth(text, maxDepth);
  try {
    return unusual.test(text) ? JSON.parse(text, refuseUnsafe) : JSON.parse(text);
  } catch (error) {
    if (error instanceof BadRequest) throw error;
    throw new BadRequest('the body is not JSON');
  }
}

/** Before parsing, since the reviver recurses. */
function refuseDepth(text: string, maxDepth: number): void {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === 0x5c) at += 1;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) {
      inString = true;
    } else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > maxDepth) throw new BadRequest(`the body is nested deeper than ${maxDepth}`);
    } else if (code === 0x5d || code === 0x7d) {
      depth -= 1;
    }
  }
}

/** Throws 400 for a member that no body may hold. */
export function refuseUnsafe(key: string, value: unknown, context?: { source?: string }): unknown {
  if (key === '__proto__' || (key === 'constructor' && hasPrototypeKey(value))) {
    throw new BadRequest('the body holds a name that is not allowed');
  }
  if (key.includes('\0') || (typeof value === 'string' && value.includes('\0'))) {
    throw new BadRequest('the body holds a NUL character');
  }
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    if (!Number.isFinite(value) || /^-?\d+$/.test(context?.source ?? '')) {
      throw new BadRequest('the body holds a number that is too large');
    }
  }
  return value;
}

function hasPrototypeKey(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype');
}
