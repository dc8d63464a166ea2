// The nodes of a YAML document: plain objects with an offset each, without aliases. Unquoted scalars have the kind that
// YAML 1.1 gives them, as in the reference (behaviour: yaml-scalars).

export type TreeNode = TreeScalar | TreeList | TreeMap | TreeGap;

export interface TreeScalar extends ScalarValue {
  /** The text as written, without quotes. */
  readonly source: string;
  readonly isQuoted: boolean;
  readonly offset: number;
}

export interface TreeList {
  readonly kind: 'list';
  readonly items: readonly TreeNode[];
  readonly offset: number;
}

export interface TreeMap {
  readonly kind: 'map';
  /** The entries by their keys as written. */
  readonly entries: ReadonlyMap<string, TreeEntry>;
  /** Whether a merge, or a key of one, could not be read, which was reported. */
  readonly isIncomplete?: boolean;
  readonly offset: number;
}

export interface TreeEntry {
  readonly key: TreeScalar;
  readonly value: TreeNode;
}

/** Represents an unreadable value. It was reported, so readers skip it silently. */
export interface TreeGap {
  readonly kind: 'gap';
  readonly offset: number;
}

/** True when the field holds no item: absent, null, or an empty list. */
export function isEmptyList(map: TreeMap, name: string): boolean {
  const node = map.entries.get(name)?.value;
  if (node === undefined || node.kind === 'null') return true;
  return node.kind === 'list' && node.items.length === 0;
}

/** The node's name in messages, after "a". */
export function toNoun(node: TreeNode): string {
  if (node.kind === 'map') return 'mapping';
  return node.kind === 'list' ? 'list' : 'single value';
}

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

const anchor = /(?:^|[\s,:[{])&\S/;

/** Whether the text may have an anchor, which each alias copies: with aliases, 8 kB can contain thousands of rules. */
export function mayHaveAnchor(text: string): boolean {
  return anchor.test(text);
}
