// The kinds of settings: each function makes a row that parses its text and checks the range (behaviour:
// setting-texts). An empty text counts as given: it is a value for texts, lists and maps and a mistake for the others.
import { formatDuration, parseDuration } from '../duration.ts';
import { nearestWord } from '../nearest-word.ts';
import type { Setting, SettingNames, ValueResult } from './setting.ts';

/** Options of every row; see `Setting`. */
interface RowOptions {
  readonly names: SettingNames;
  readonly otherNames?: readonly string[];
  readonly doc: string;
  readonly defaultText?: string;
  readonly secret?: 'url' | 'file' | 'whole';
  readonly deprecated?: string;
}

/** Bounds are inclusive; `example` is for the message when the default does not serve as one. */
interface RangeOptions<D> {
  readonly default: D;
  readonly min?: number;
  readonly max?: number;
  readonly example?: number;
}

function toSetting<T>(
  options: RowOptions,
  rest: Pick<Setting<T>, 'kind' | 'default' | 'accepts' | 'parse' | 'format'> &
    Partial<Pick<Setting<T>, 'words'>>,
): Setting<T> {
  const { names, otherNames = [], doc, defaultText, secret = 'no', deprecated } = options;
  return Object.freeze({
    names,
    otherNames,
    doc,
    defaultText,
    secret,
    deprecated,
    words: undefined,
    ...rest,
  });
}

/** Any text, unchanged. `emptyMeans`: what an empty text means. */
export function text(
  options: RowOptions & { readonly default: string; readonly emptyMeans?: string },
): Setting<string> {
  return toSetting<string>(options, {
    kind: 'text',
    default: options.default,
    accepts: 'any text',
    parse: (value) => ({ ok: true, value: value || (options.emptyMeans ?? '') }),
    format: (value) => value,
  });
}

export const booleans: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((word) => [word, false] as const),
]);

export function bool<const D extends boolean | undefined>(
  options: RowOptions & { readonly default: D },
): Setting<boolean | D> {
  return toSetting<boolean | D>(options, {
    kind: 'bool',
    default: options.default,
    accepts: 'true or false',
    parse: (word) => {
      const value = booleans.get(word);
      return value === undefined ? bad(word, 'not a boolean') : { ok: true, value };
    },
    format: (value) => String(value ?? ''),
  });
}

/** A whole number, at most 2^53 - 1; `what` names it in messages. */
export function int<const D extends number | undefined>(
  options: RowOptions & RangeOptions<D> & { readonly what?: string },
): Setting<number | D> {
  return toSetting<number | D>(options, {
    kind: 'int',
    default: options.default,
    accepts: describeRange(options.what ?? 'a whole number', options, String),
    parse: (word) => {
      const value = parseInteger(word);
      if (value === undefined) return bad(word, 'not a whole number');
      return Number.isSafeInteger(value) ? inRange(value, options) : bad(word, 'out of range');
    },
    format: (value) => (value === undefined ? '' : String(value)),
  });
}

/** A TCP or UDP port; 0 lets the system choose one to listen on. */
export function port(options: RowOptions & { readonly default: number }): Setting<number> {
  return int({ ...options, what: 'a port', min: 0, max: 65_535 });
}

/** Decimal, or with a prefix (0x, 0o, 0b, or 0 for octal); `_` can separate digits. */
function parseInteger(word: string): number | undefined {
  const form =
    /^([+-]?)(?:(0x(?:_?[\da-f])+)|(0b(?:_?[01])+)|0o?((?:_?[0-7])+)|(0|[1-9](?:_?\d)*))$/i;
  const match = form.exec(word);
  if (match === null) return undefined;
  const [, sign, hex, binary, octal, decimal] = match;
  const digits = hex ?? binary ?? (octal === undefined ? decimal : `0o${octal}`) ?? '';
  const value = Number(digits.replaceAll('_', ''));
  return sign === '-' && value !== 0 ? -value : value;
}

/** A decimal number, optionally with an exponent. */
export function float(options: RowOptions & RangeOptions<number>): Setting<number> {
  return toSetting<number>(options, {
    kind: 'float',
    default: options.default,
    accepts: describeRange('a number', options, String),
    parse: (word) =>
      /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(word)
        ? // `-0` is 0.
          inRange(Number(word) + 0, options)
        : bad(word, 'not a number'),
    format: String,
  });
}

/** A little less than Node's longest timer (2^31 ms), with jitter of a tenth. */
const longestMs = 480 * 3_600_000;

/**
 * A duration in milliseconds. Without `min` and `max`: from 0 to 480h, which timers can wait. `bareUnit` is the unit of
 * a number without one.
 */
export function duration<const D extends number | undefined>(
  options: RowOptions & RangeOptions<D> & { readonly bareUnit?: 's' },
): Setting<number | D> {
  const range = { ...options, min: options.min ?? 0, max: options.max ?? longestMs };
  const bare = options.bareUnit;
  const what = bare === undefined ? 'a duration' : 'a number of seconds or a duration';
  return toSetting<number | D>(options, {
    kind: 'duration',
    default: options.default,
    accepts: describeRange(what, range, formatDuration),
    parse: (word) => {
      const result = parseDuration(
        bare !== undefined && /^\d+$/.test(word) ? `${word}${bare}` : word,
      );
      return result.ok ? inRange(result.ms, range) : bad(word, result.reason);
    },
    format: (value) => (value === undefined ? '' : formatDuration(value)),
  });
}

/** Comma-separated items, not trimmed; a blank text is the empty list. */
export function list(
  options: RowOptions & { readonly example: string },
): Setting<readonly string[]> {
  return toSetting<readonly string[]>(options, {
    kind: 'list',
    default: Object.freeze([]),
    accepts: `a comma-separated list such as ${options.example}`,
    parse: (items) => ({ ok: true, value: splitList(items) }),
    format: (value) => value.join(','),
  });
}

export function splitList(items: string): readonly string[] {
  return items.trim() === '' ? [] : items.split(',');
}

/** Comma-separated `key:value` items, not trimmed; of two items with the same key the later counts. */
export function map(
  options: RowOptions & { readonly example: string },
): Setting<Readonly<Record<string, string>>> {
  return toSetting<Readonly<Record<string, string>>>(options, {
    kind: 'map',
    default: Object.freeze({}),
    accepts: `comma-separated key:value items such as ${options.example}`,
    parse: parseMap,
    format: (value) =>
      Object.entries(value)
        .map(([key, item]) => `${key}:${item}`)
        .join(','),
  });
}

function parseMap(items: string): ValueResult<Readonly<Record<string, string>>> {
  const entries: [string, string][] = [];
  for (const [index, item] of splitList(items).entries()) {
    const [key, value, ...more] = item.split(':');
    if (key === undefined || value === undefined || more.length > 0) {
      return bad(items, `item ${index + 1} does not have exactly one ":"`);
    }
    entries.push([key, value]);
  }
  return { ok: true, value: Object.fromEntries(entries) };
}

/**
 * One of several words, each with its value. With `anyCase`, upper and lower case are equal. The word '' is accepted
 * when it is listed, but not shown.
 */
export function choice<
  const W extends Readonly<Record<string, unknown>>,
  const D extends W[keyof W] | undefined,
>(
  options: RowOptions & {
    readonly words: W;
    /** Further words that are accepted, but not documented. */
    readonly otherWords?: ReadonlyMap<string, W[keyof W]>;
    readonly default: D;
    readonly anyCase?: true;
  },
): Setting<W[keyof W] | D> {
  type Value = W[keyof W] | D;
  const fold = (word: string) => (options.anyCase === true ? word.toLowerCase() : word);
  const shown = Object.keys(options.words).filter((word) => word !== '');
  const values = new Map<string, Value>([
    ...(options.otherWords ?? []),
    ...Object.entries(options.words).map(([word, value]) => [fold(word), value as Value] as const),
  ]);
  return toSetting<Value>(options, {
    kind: 'choice',
    words: shown,
    default: options.default,
    accepts: shown.length > 2 ? `one of ${shown.join(', ')}` : shown.join(' or '),
    parse: (word) => {
      const key = fold(word);
      if (values.has(key)) return { ok: true, value: values.get(key) as Value };
      const nearest = nearestWord(word, shown);
      const hint = nearest === undefined ? '' : `, did you mean ${nearest}?`;
      return bad(word, `unknown value${hint}`);
    },
    format: (value) => shown.find((word) => options.words[word] === value) ?? '',
  });
}

function describeRange(
  what: string,
  range: RangeOptions<number | undefined>,
  format: (value: number) => string,
): string {
  const { min, max } = range;
  const example = range.example ?? range.default;
  const bounds = [
    min === undefined ? '' : max === undefined ? ` of at least ${format(min)}` : '',
    max === undefined ? '' : min === undefined ? ` of at most ${format(max)}` : '',
    min === undefined || max === undefined ? '' : ` from ${format(min)} to ${format(max)}`,
  ];
  const such = example === undefined ? '' : ` such as ${format(example)}`;
  return what + bounds.join('') + such;
}

function inRange(
  value: number,
  { min = Number.NEGATIVE_INFINITY, max = Number.MAX_VALUE }: RangeOptions<unknown>,
): ValueResult<number> {
  return value >= min && value <= max ? { ok: true, value } : { ok: false, reason: 'out of range' };
}

function bad(word: string, reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason: word === '' ? 'empty' : reason };
}
