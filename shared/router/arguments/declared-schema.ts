// A declared schema as it is checked: what is not understood is refused at the start, patterns and formats become
// functions of ours, and defaults inside values are filled in (TypeBox's checker ignores them).
import Format from 'typebox/format';
import { uploadKeyword } from '../upload.ts';
import { whyNotLinear } from './pattern.ts';

type Plain = Readonly<Record<string, unknown>>;

/** Whether a text has the form. */
export type FormatCheck = (text: string) => boolean;

export interface DeclaredSchema {
  readonly schema: Plain;
  /** Fills defaults into an object or a list; undefined where there are none. */
  readonly fill: Fill | undefined;
}

type Fill = (value: unknown) => void;

/** RFC 3339 alone: TypeBox takes suffixes such as `[Europe/Paris]` too. */
const dateTime = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;

export const knownFormats: Readonly<Record<string, FormatCheck>> = {
  date: Format.IsDate,
  'date-time': (text) => dateTime.test(text) && Format.IsDateTime(text),
  email: Format.IsEmail,
  ipv4: Format.IsIPv4,
  ipv6: Format.IsIPv6,
  uri: Format.IsUri,
  uuid: Format.IsUuid,
};

/** Keywords by what stands in them. */
const single = ['additionalItems', 'additionalProperties', 'contains', 'propertyNames'];
const alternative = ['not', 'if', 'then', 'else'];
const lists = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const named = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'];
const values = [
  ...[
    'type',
    'const',
    'enum',
    'required',
    'dependentRequired',
    'uniqueItems',
    'multipleOf',
    '$ref',
  ],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'minContains', 'maxContains', 'minProperties', 'maxProperties'],
  ...['title', 'description', 'examples', 'deprecated', 'readOnly', 'writeOnly', '$comment'],
  ...['$id', '$schema', 'contentEncoding', 'contentMediaType'],
];
const taken: ReadonlySet<string> = new Set(values);

/** Throws an Error that names what the schema has that is not supported. */
export function readDeclared(
  declared: Plain,
  formats: Readonly<Record<string, FormatCheck>>,
): DeclaredSchema {
  return readSchema(declared, formats, true);
}

/** `isCertain`: it holds for every value, so that its defaults can be filled in. */
function readSchema(
  declared: Plain,
  formats: Readonly<Record<string, FormatCheck>>,
  isCertain: boolean,
): DeclaredSchema {
  const schema: Record<string, unknown> = {};
  const fills: Fill[] = [];
  // Those of `Type.Refine`, which are no keyword to be found among the others.
  const refine: unknown[] = [...((declared['~refine'] as unknown[] | undefined) ?? [])];
  const read = (inner: unknown, certain: boolean): DeclaredSchema =>
    isPlain(inner)
      ? readSchema(inner, formats, certain)
      : { schema: inner as Plain, fill: undefined };

  for (const [keyword, value] of Object.entries(declared)) {
    if (keyword === '$id' || keyword === 'default') continue;
    if (keyword === 'pattern') refine.push(toPatternCheck(String(value), declared['maxLength']));
    else if (keyword === 'format') refine.push(toFormatCheck(String(value), formats));
    else if (keyword === uploadKeyword) refine.push(fileCheck);
    else if (taken.has(keyword)) schema[keyword] = value;
    else if (keyword === 'properties') {
      schema[keyword] = readProperties(value as Plain);
    } else if (named.includes(keyword)) {
      if (keyword === 'patternProperties') refuseSlow(Object.keys(value as Plain));
      schema[keyword] = mapValues(value as Plain, (inner) => read(inner, false).schema);
    } else if (keyword === 'items') {
      schema[keyword] = readItems(value);
    } else if (lists.includes(keyword)) {
      schema[keyword] = (value as unknown[]).map((inner) => {
        const one = read(inner, isCertain && keyword === 'allOf');
        if (one.fill !== undefined) fills.push(one.fill);
        return one.schema;
      });
    } else if (single.includes(keyword) || alternative.includes(keyword)) {
      schema[keyword] = read(value, false).schema;
    } else {
      throw new Error(`unknown keyword "${keyword}"`);
    }
  }

  function readProperties(properties: Plain): Plain {
    return mapValues(properties, (property, name) => {
      const inner = read(property, isCertain);
      const { fill } = inner;
      const makeDefault = isPlain(property) ? toDefault(property) : undefined;
      if (makeDefault !== undefined && !isCertain) {
        throw new Error(
          `default is ignored for ${name}: its schema may not be the one that applies`,
        );
      }
      if (makeDefault !== undefined || fill !== undefined) {
        fills.push((value) => {
          if (!isPlain(value)) return;
          if (value[name] === undefined && makeDefault !== undefined) {
            (value as Record<string, unknown>)[name] = makeDefault();
          }
          if (Object.hasOwn(value, name)) fill?.(value[name]);
        });
      }
      return inner.schema;
    });
  }

  function readItems(items: unknown): unknown {
    if (Array.isArray(items)) return items.map((item) => read(item, false).schema);
    const inner = read(items, isCertain);
    const { fill } = inner;
    if (fill !== undefined) {
      fills.push((value) => {
        if (Array.isArray(value)) for (const item of value) fill(item);
      });
    }
    return inner.schema;
  }

  if (refine.length > 0) schema['~refine'] = refine;
  const fill =
    fills.length === 0
      ? undefined
      : (value: unknown) => {
          for (const one of fills) one(value);
        };
  return { schema, fill };
}

/** Makes a copy each time, so that no request changes the default of the next; undefined where there is none. */
export function toDefault(schema: Plain): (() => unknown) | undefined {
  if (!('default' in schema)) return undefined;
  const value = schema['default'];
  return typeof value === 'object' ? () => structuredClone(value) : () => value;
}

const fileCheck = {
  check: (value: unknown) => value instanceof File,
  error: () => 'must be a file',
};

function toFormatCheck(name: string, formats: Readonly<Record<string, FormatCheck>>) {
  const isFormed = Object.hasOwn(formats, name) ? formats[name] : undefined;
  if (isFormed === undefined) {
    const known = Object.keys(formats).sort().join(', ');
    throw new Error(`unknown format "${name}"; known are ${known}`);
  }
  return {
    check: (value: unknown) => typeof value !== 'string' || isFormed(value),
    error: () => `must match format "${name}"`,
  };
}

/** A text longer than its schema allows is skipped: `maxLength` refuses it. */
function toPatternCheck(pattern: string, maxLength: unknown) {
  const bound = typeof maxLength === 'number' ? maxLength : Number.POSITIVE_INFINITY;
  refuseSlow([pattern], bound);
  const regExp = new RegExp(pattern, 'u');
  return {
    check: (value: unknown) =>
      typeof value !== 'string' || isLonger(value, bound) || regExp.test(value),
    error: () => `must match pattern "${pattern}"`,
  };
}

/** In characters: each is one or two UTF-16 units. */
function isLonger(text: string, maxLength: number): boolean {
  if (text.length <= maxLength) return false;
  return text.length > 2 * maxLength || [...text].length > maxLength;
}

/** The length of names, in `patternProperties`, is bounded by nothing. */
function refuseSlow(patterns: readonly string[], maxLength?: number): void {
  for (const pattern of patterns) {
    const reason = whyNotLinear(pattern, maxLength);
    if (reason === undefined) continue;
    throw new Error(`the pattern ${pattern} may take far more than linear time: ${reason}`);
  }
}

function mapValues(object: Plain, change: (value: unknown, name: string) => unknown): Plain {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, change(value, name)]),
  );
}

function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
