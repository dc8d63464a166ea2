// The push output's lines: `name:value|type` (reference-behaviour 6.3).
import type { LineFormat } from './line-sink.ts';

export const statsdFormat: LineFormat = {
  counter: (name, delta) => `${name}:${toDecimal(delta)}|c\n`,
  gauge: (name, value) => `${name}:${toDecimal(value)}|g\n`,
  timer: (name, ms) => `${name}:${Number.isInteger(ms) ? toDecimal(ms) : ms.toFixed(6)}|ms\n`,
  flushed: () => '',
};

/** A whole number; receivers do not read the exponents that large ones are otherwise written with. */
function toDecimal(value: number): string {
  const whole = Math.trunc(value);
  if (Number.isSafeInteger(whole)) return String(whole);
  return Number.isFinite(whole) ? BigInt(whole).toString() : '0';
}
