// The kind of an unquoted YAML 1.1 scalar, as the reference reads it (behaviour: yaml-scalars). The source text is
// always retained beside the value.

export type ScalarKind = 'text' | 'int' | 'float' | 'bool' | 'null';

export interface ScalarValue {
  /** `int` is a signed 64-bit integer; any other number, larger integers included, is `float`. */
  readonly kind: ScalarKind;
  /** An `int` beyond 2^53 is rounded. */
  readonly value: string | number | boolean | null;
}

const booleans = new Map<string, boolean>();
for (const word of ['y', 'yes', 'true', 'on']) addSpellings(word, true);
for (const word of ['n', 'no', 'false', 'off']) addSpellings(word, false);
const nulls = new Set(['', '~', 'null', 'Null', 'NULL']);
const specialFloat = /^(?:([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const integer = /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$/;
const decimal = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

/** Longer texts are not read as numbers: none is intended as one, and BigInt takes quadratic time. */
const maxNumberLength = 100;

/** Resolves the text of a plain (unquoted) scalar. */
export function toScalarValue(source: string): ScalarValue {
  if (nulls.has(source)) return { kind: 'null', value: null };
  const bool = booleans.get(source);
  if (bool !== undefined) return { kind: 'bool', value: bool };
  const first = source.charCodeAt(0);
  const isNumberStart = (first >= 0x30 && first <= 0x39) || '+-.'.includes(source.charAt(0));
  return (isNumberStart ? toNumber(source) : undefined) ?? { kind: 'text', value: source };
}

function toNumber(source: string): ScalarValue | undefined {
  const special = specialFloat.exec(source);
  if (special) {
    const infinity = special[1] === '-' ? -Infinity : Infinity;
    return { kind: 'float', value: special[1] === undefined ? Number.NaN : infinity };
  }
  const digits = source.startsWith('.') ? source : source.replaceAll('_', '');
  const parts = digits.length <= maxNumberLength ? integer.exec(digits) : null;
  if (parts) {
    const [, sign = '', magnitude = ''] = parts;
    const octal = /^0\d/.test(magnitude) ? `0o${magnitude.slice(1)}` : magnitude;
    const big = sign === '-' ? -BigInt(octal) : BigInt(octal);
    if (BigInt.asIntN(64, big) === big) return { kind: 'int', value: Number(big) };
    // The reference tries unsigned 64-bit next, then a decimal float; a larger hex number is text.
    if (BigInt.asUintN(64, big) === big) return { kind: 'float', value: Number(big) };
  }
  return decimal.test(digits) ? { kind: 'float', value: Number(digits) } : undefined;
}

function addSpellings(word: string, value: boolean): void {
  booleans.set(word, value);
  booleans.set(word.toUpperCase(), value);
  booleans.set(word.charAt(0).toUpperCase() + word.slice(1), value);
}
