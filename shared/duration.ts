// Durations as settings write them (`1m30s`, `150us`), read into milliseconds and written back. The
// settings table has the bounds.

import { trimEnd } from './trim-end.ts';
export type DurationResult =
  | { readonly ok: true; readonly ms: number }
  | { readonly ok: false; readonly reason: string };

/** The units that may follow a number, from short to long, for messages. */
export const durationUnits = 'ns, us, ms, s, m, h';

const nanosecondsPerUnit: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  ['\u00b5s', 1_000n], // micro sign
  ['\u03bcs', 1_000n], // Greek mu
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
]);

/** Limits the digits that are multiplied; no sensible duration comes near. */
const longestText = 64;

/** 2^63 - 1 nanoseconds, about 292 years: what the reference can hold. */
const mostNanoseconds = 2n ** 63n - 1n;

/**
 * Parses a signed sequence of numbers with units (behaviour: setting-texts). A bare `0` is accepted, any other number
 * needs a unit. The result has a fraction for parts of a millisecond; digits beyond the nanosecond are dropped.
 */
export function parseDuration(text: string): DurationResult {
  if (text === '') return bad('empty');
  if (text.length > longestText) return bad('too long');
  const sign = text.startsWith('-') ? -1n : 1n;
  const unsigned = text.replace(/^[+-]/, '');
  if (unsigned === '0') return { ok: true, ms: 0 };
  if (unsigned === '') return bad('not a duration');

  const part = /(\d*)(?:\.(\d*))?([^\d.]*)/y;
  let nanoseconds = 0n;
  while (part.lastIndex < unsigned.length) {
    const [, integer = '', fraction = '', unit = ''] = part.exec(unsigned) ?? [];
    if (integer === '' && fraction === '') return bad('not a duration');
    if (unit === '') return bad(`the unit is missing (one of ${durationUnits})`);
    const factor = nanosecondsPerUnit.get(unit);
    if (factor === undefined) {
      return bad(`unknown unit ${JSON.stringify(unit)} (one of ${durationUnits})`);
    }
    nanoseconds += BigInt(integer) * factor;
    nanoseconds += (BigInt(fraction) * factor) / 10n ** BigInt(fraction.length);
  }
  if (nanoseconds > mostNanoseconds) return bad('too long a time');
  return { ok: true, ms: Number(sign * nanoseconds) / 1e6 };
}

function bad(reason: string): DurationResult {
  return { ok: false, reason };
}

/** The shortest usual form, such as `1m30s`, `1.5s`, `150us` or `0s`; `ms` must be finite. */
export function formatDuration(ms: number): string {
  const signed = BigInt(Math.round(ms * 1e6));
  if (signed === 0n) return '0s';
  const sign = signed < 0n ? '-' : '';
  const nanoseconds = signed < 0n ? -signed : signed;
  if (nanoseconds < 1_000n) return `${sign}${nanoseconds}ns`;
  if (nanoseconds < 1_000_000n) return `${sign}${toDecimal(nanoseconds, 3)}us`;
  if (nanoseconds < 1_000_000_000n) return `${sign}${toDecimal(nanoseconds, 6)}ms`;
  const hours = nanoseconds / 3_600_000_000_000n;
  const minutes = (nanoseconds / 60_000_000_000n) % 60n;
  const rest = nanoseconds % 60_000_000_000n;
  const parts = [
    hours === 0n ? '' : `${hours}h`,
    minutes === 0n ? '' : `${minutes}m`,
    rest === 0n ? '' : `${toDecimal(rest, 9)}s`,
  ];
  return sign + parts.join('');
}

/** `value` / 10^`digits`, without trailing zeros. */
function toDecimal(value: bigint, digits: number): string {
  const text = value.toString().padStart(digits + 1, '0');
  const fraction = trimEnd(text.slice(-digits), '0');
  return text.slice(0, -digits) + (fraction === '' ? '' : `.${fraction}`);
}
