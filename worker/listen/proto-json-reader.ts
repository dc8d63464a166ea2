// Reads the proto3 JSON form of a RateLimitRequest: stricter than JSON.parse (repeated and unknown members
// are errors) and exact for 64-bit integers.
import type { Entry } from '../../shared/rules/rule.ts';
import { unitNumbers } from '../../shared/rules/unit.ts';
import { trimEnd } from '../../shared/trim-end.ts';
import { hashEntries } from '../decision/hit.ts';
import type { RateLimitRequest, RequestDescriptor } from '../decision/message.ts';
import {
  defaultRequestBounds,
  type RequestBounds,
  RequestTooLarge,
  tooManyDescriptors,
  tooManyEntries,
} from '../decision/request-bounds.ts';
import { JsonCursor, JsonError } from './proto-json-cursor.ts';

export type JsonRequest =
  | { readonly ok: true; readonly request: RateLimitRequest }
  | { readonly ok: false; readonly problem: string; readonly isTooLarge?: boolean };

const maxUint32 = 2n ** 32n - 1n;
const maxUint64 = 2n ** 64n - 1n;

/**
 * Accepts what the reference accepts (behaviour: json-endpoint). The problem names line and column, or the exceeded
 * limit, at which reading stopped.
 */
export function parseJsonRequest(
  body: Uint8Array,
  bounds: RequestBounds = defaultRequestBounds,
): JsonRequest {
  try {
    const cursor = new JsonCursor(decodeText(body));
    const request = readRequest(cursor, bounds);
    cursor.expectEnd();
    return { ok: true, request };
  } catch (error) {
    if (error instanceof JsonError) return { ok: false, problem: error.message };
    if (error instanceof RequestTooLarge) {
      return { ok: false, problem: error.message, isTooLarge: true };
    }
    throw error;
  }
}

function decodeText(body: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw new JsonError('the body is not UTF-8');
  }
}

/** Functions that read a value, by the name of the member in camelCase. */
type Fields = Readonly<Record<string, () => void>>;

/** A member may be written in camelCase or in snake_case, at most once; null leaves it unset. */
function readMessage(cursor: JsonCursor, fields: Fields): void {
  const seen = new Set<string>();
  cursor.readObject((written, position) => {
    const name = toFieldName(written, fields);
    if (name === undefined) {
      throw cursor.error(`unknown field ${quote(written)}`, position);
    }
    if (seen.has(name)) throw cursor.error(`duplicate field ${quote(written)}`, position);
    seen.add(name);
    if (!cursor.acceptWord('null')) fields[name]?.();
  });
}

function toFieldName(written: string, fields: Fields): string | undefined {
  if (Object.hasOwn(fields, written)) return written;
  return Object.keys(fields).find((field) => toSnakeCase(field) === written);
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function readRequest(cursor: JsonCursor, bounds: RequestBounds): RateLimitRequest {
  let domain = '';
  let hitsAddend = 0;
  const descriptors: RequestDescriptor[] = [];
  let entryCount = 0;
  const countEntry = () => {
    if (++entryCount > bounds.maxEntries) throw tooManyEntries(bounds);
  };
  readMessage(cursor, {
    domain: () => {
      domain = cursor.readString();
    },
    descriptors: () =>
      cursor.readArray(() => {
        if (descriptors.length >= bounds.maxDescriptors) throw tooManyDescriptors(bounds);
        descriptors.push(readDescriptor(cursor, countEntry));
      }),
    hitsAddend: () => {
      hitsAddend = Number(readInteger(cursor, 0n, maxUint32));
    },
  });
  return { domain, descriptors, hitsAddend };
}

function readDescriptor(cursor: JsonCursor, countEntry: () => void): RequestDescriptor {
  const entries: Entry[] = [];
  let limit: RequestDescriptor['limit'];
  let hitsAddend: number | bigint | undefined;
  let isNegativeHits = false;
  readMessage(cursor, {
    entries: () =>
      cursor.readArray(() => {
        countEntry();
        entries.push(readEntry(cursor));
      }),
    limit: () => {
      limit = readLimit(cursor);
    },
    hitsAddend: () => {
      const exact = readInteger(cursor, 0n, maxUint64);
      hitsAddend = exact <= Number.MAX_SAFE_INTEGER ? Number(exact) : exact;
    },
    isNegativeHits: () => {
      isNegativeHits = readBoolean(cursor);
    },
  });
  // All ports make descriptors of the same shape: every decision then sees one hidden class.
  return { entries, hash: hashEntries(entries), limit, hitsAddend, isNegativeHits };
}

function readEntry(cursor: JsonCursor): Entry {
  let key = '';
  let value = '';
  readMessage(cursor, {
    key: () => {
      key = cursor.readString();
    },
    value: () => {
      value = cursor.readString();
    },
  });
  return { key, value };
}

function readLimit(cursor: JsonCursor): { requestsPerUnit: number; unit: number } {
  let requestsPerUnit = 0;
  let unit = 0;
  readMessage(cursor, {
    requestsPerUnit: () => {
      requestsPerUnit = Number(readInteger(cursor, 0n, maxUint32));
    },
    unit: () => {
      unit = readUnit(cursor);
    },
  });
  return { requestsPerUnit, unit };
}

/** A name of envoy.type.v3.RateLimitUnit, which has no week, or any number of 32 bits. */
function readUnit(cursor: JsonCursor): number {
  if (cursor.peek() !== '"') return Number(readInteger(cursor, -(2n ** 31n), 2n ** 31n - 1n));
  const position = cursor.position();
  const name = cursor.readString();
  if (name === 'UNKNOWN') return 0;
  for (const [unit, number] of Object.entries(unitNumbers)) {
    if (unit !== 'week' && unit.toUpperCase() === name) return number;
  }
  throw cursor.error(`unknown unit ${quote(name)}`, position);
}

function readBoolean(cursor: JsonCursor): boolean {
  if (cursor.acceptWord('true')) return true;
  if (cursor.acceptWord('false')) return false;
  throw cursor.error('expected true or false');
}

/** A number, or a string that holds one; `1.0` and `1e2` are integers too. */
function readInteger(cursor: JsonCursor, least: bigint, most: bigint): bigint {
  const position = cursor.position();
  const digits = cursor.peek() === '"' ? cursor.readString() : cursor.readNumber();
  const integer = toInteger(digits);
  if (integer === undefined || integer < least || integer > most) {
    const what = quote(digits);
    throw cursor.error(`expected an integer from ${least} to ${most}, not ${what}`, position);
  }
  return integer;
}

/** Undefined for other values, fractions, and more digits than 64 bits can hold. */
function toInteger(text: string): bigint | undefined {
  const parts = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (parts === null) return undefined;
  const full = parts[2] === '0' ? '' : (parts[2] ?? '');
  const fraction = trimEnd(parts[3] ?? '', '0');
  if (full === '' && fraction === '') return 0n;
  const exponent = Number(parts[4] ?? '0');
  const zeros = exponent - fraction.length;
  if (zeros >= 0) {
    if (full.length + exponent > 20) return undefined;
    return BigInt(`${parts[1]}${full}${fraction}${'0'.repeat(zeros)}`);
  }
  const digits = full.length + exponent;
  if (fraction !== '' || digits <= 0 || digits > 20 || /[^0]/.test(full.slice(digits)))
    return undefined;
  return BigInt(`${parts[1]}${full.slice(0, digits)}`);
}

/** The caller's text, short enough for a log line. */
function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
}
