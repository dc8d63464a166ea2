// Whole numbers as metric lines have them.

/** In digits, without a fraction; receivers do not read the exponents that large numbers are
 * otherwise written with. */
export function toDecimal(value: number): string {
  const whole = Math.trunc(value);
  if (Number.isSafeInteger(whole)) return String(whole);
  return Number.isFinite(whole) ? BigInt(whole).toString() : '0';
}
