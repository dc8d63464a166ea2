// Compiles schemas at start: unsupported keywords are refused, patterns and formats become functions of ours. Values
// are checked as they are; cast.ts converts text. TypeBox does the checking: the declarations need it anyway, and it
// works without `eval` if that is forbidden.
import type Type from 'typebox';
import Format from 'typebox/format';
import Schema, { Pointer } from 'typebox/schema';
import { Settings } from 'typebox/system';
import type { SchemaProblem } from '../errors.ts';
import {
  eachSchema,
  holding,
  holdingByName,
  isPlain,
  mapSchemas,
  type Plain,
  scopeWithin,
} from '../schema/json-schema.ts';
import { patternCharacters, whyExponential } from '../schema/pattern.ts';
import { uploadKeyword } from '../upload.ts';

/** The problems of the value, at most 20; empty when it is valid. */
export type Check = (value: unknown) => readonly SchemaProblem[];

/** Whether a text has the format. */
export type FormatCheck = (text: string) => boolean;

export type SchemaCompiler = ReturnType<typeof createSchemaCompiler>;

const maxProblems = 20;
/** These also apply to each part. */
const summaries: ReadonlySet<string> = new Set([
  ...['boolean', 'additionalProperties', 'unevaluatedProperties', '$ref'],
]);
const noProblems: readonly SchemaProblem[] = [];

/** RFC 3339 only: TypeBox also accepts suffixes such as `[Europe/Paris]`. */
const dateTime = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;

const knownFormats: Readonly<Record<string, FormatCheck>> = {
  date: Format.IsDate,
  'date-time': (text) => dateTime.test(text) && Format.IsDateTime(text),
  email: Format.IsEmail,
  ipv4: Format.IsIPv4,
  ipv6: Format.IsIPv6,
  uri: Format.IsUri,
  uuid: Format.IsUuid,
};

const understood: ReadonlySet<string> = new Set([
  ...['type', 'const', 'enum', 'required', 'dependentRequired', 'uniqueItems', 'multipleOf'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'minContains', 'maxContains', 'minProperties', 'maxProperties'],
  ...['title', 'description', 'examples', 'deprecated', 'readOnly', 'writeOnly', '$comment'],
  ...['$id', '$ref', '$schema', 'contentEncoding', 'contentMediaType', 'default', '~refine'],
  ...['pattern', 'format', 'explode', uploadKeyword, ...holding, ...holdingByName],
]);

/** Any value would be valid for a type that TypeBox does not know, and none for its others. `undefined` occurs in
 * unions. */
const types: ReadonlySet<unknown> = new Set([
  ...['string', 'number', 'integer', 'boolean', 'object', 'array', 'null', 'undefined'],
]);

/** `formats`: those of the application, in addition to the known ones. */
export function createSchemaCompiler(formats: Readonly<Record<string, FormatCheck>> = {}) {
  const all = new Map(Object.entries({ ...knownFormats, ...formats }));
  let values: typeof import('typebox/value') | undefined;
  let needsValues = false;

  function loaded(): typeof import('typebox/value') {
    if (values === undefined) throw new TypeError('load() comes first');
    return values;
  }

  return {
    /** Compiles a schema of TypeBox. `$defs`: further schemas that its references name. Throws an Error that names each
     * unsupported keyword. */
    compile: (declared: Plain, $defs: Plain = {}): Check =>
      toCheck(toChecked(withDefs(declared, $defs), all)),
    /** Compiles the bounds of a schema of another library, which checks values itself: only the lengths of texts that
     * it matches against a pattern. Throws an Error for a pattern that is too slow. */
    compileBounds: (declared: Plain, $defs: Plain = {}): Check =>
      toCheck(toBounds(withDefs(declared, $defs))),
    /** Compiles a schema of another library only as far as it distinguishes alternatives. */
    compileShape: (declared: Plain): Check => toCheck(toShape(declared)),
    /** Adds the defaults to a value; undefined if there are none. The function works only after `load`. */
    compileDefaults(declared: Plain, $defs: Plain = {}) {
      let hasDefaults = false;
      eachSchema(withDefs(declared, $defs), (schema) => {
        hasDefaults ||= Object.values(schema['properties'] ?? {}).some((one) => 'default' in one);
      });
      if (!hasDefaults) return undefined;
      needsValues = true;
      return (value: unknown): unknown =>
        loaded().Default($defs as Type.TProperties, declared, value);
    },
    /** Removes what the schema does not declare from a value. The function works only after `load`. */
    compileFilter(declared: Plain) {
      needsValues = true;
      const schema = toCleaning(declared);
      const validator = Schema.Compile(schema);
      const named = Object.fromEntries(scopeWithin(new Map([['#', schema]]), schema));
      return (value: unknown): unknown => {
        const declaredOnly = loaded().Clean(named as Type.TProperties, schema, value);
        if (validator.Check(declaredOnly) || !mayHoldMore(schema, declaredOnly))
          return declaredOnly;
        throw new TypeError(
          'the result of the method differs from the shape that returns declares',
        );
      };
    },
    /** Loads what the compiled functions need: a thread with little memory imports the router, and builds no application. */
    async load(): Promise<void> {
      if (needsValues) values ??= await import('typebox/value');
    },
  };
}

/** What TypeBox cleans a value by: kinds of its own, without which it would leave a value as it is. A value is cut to
 * the first alternative that it fits, so alternatives with more fields come before those with fewer. */
function toCleaning(declared: Plain): Plain {
  const schema = mapSchemas(declared, toCleaning);
  const size = (one: Plain) => Object.keys(one['properties'] ?? {}).length;
  const { oneOf, anyOf = oneOf, prefixItems, properties, additionalProperties: others } = schema;
  if (Array.isArray(anyOf)) schema['anyOf'] = anyOf.toSorted((a, b) => size(b) - size(a));
  if ('~kind' in schema) return schema;
  delete schema['oneOf'];
  if (prefixItems !== undefined) schema['items'] = prefixItems;
  if (isPlain(others) && properties === undefined) {
    schema['patternProperties'] = { '^[^]*$': others };
    delete schema['additionalProperties'];
  }
  const kind = kinds.find(([keyword]) => keyword in schema)?.[1];
  if (kind !== undefined) schema['~kind'] = prefixItems === undefined ? kind : 'Tuple';
  return schema;
}

/** By the first of these keywords that a schema has. */
const kinds = Object.entries({
  $ref: 'Ref',
  anyOf: 'Union',
  allOf: 'Intersect',
  properties: 'Object',
  patternProperties: 'Record',
  items: 'Array',
});

function withDefs(schema: Plain, $defs: Plain): Plain {
  if (Object.keys($defs).length === 0) return schema;
  return { ...schema, $defs: { ...$defs, ...(schema['$defs'] as Plain | undefined) } };
}

function toCheck(schema: Plain): Check {
  const validator = Schema.Compile(schema);
  return (value) => (validator.Check(value) ? noProblems : findProblems(schema, value));
}

/** The form that TypeBox's checker accepts. */
function toChecked(declared: Plain, formats: ReadonlyMap<string, FormatCheck>): Plain {
  const unknown = Object.keys(declared).find((keyword) => !understood.has(keyword));
  if (unknown !== undefined) throw new Error(`unknown keyword "${unknown}"`);
  const wrong = [declared['type'] ?? []].flat().find((type) => !types.has(type));
  if (wrong !== undefined) throw new Error(`the type "${wrong}" does not occur in a request`);
  const {
    pattern,
    multipleOf,
    format,
    default: _default,
    explode: _explode,
    ...schema
  } = mapSchemas(declared, (inner) => toChecked(inner, formats));
  const isFile = schema[uploadKeyword] === true;
  delete schema[uploadKeyword];
  // The checks of `Type.Refine`, which are hidden.
  const refine = [...((declared['~refine'] as unknown[] | undefined) ?? [])];
  if (format !== undefined) refine.push(toFormatCheck(String(format), formats));
  if (multipleOf !== undefined) refine.push(toMultipleCheck(Number(multipleOf)));
  if (isFile) refine.push(fileCheck);
  if (pattern !== undefined) {
    schema['maxLength'] ??= patternCharacters;
    refine.push(toPatternCheck(String(pattern), Number(schema['maxLength'])));
  }
  for (const one of Object.keys(schema['patternProperties'] ?? {})) {
    refuseSlow(one);
    schema['propertyNames'] ??= { maxLength: patternCharacters };
  }
  return refine.length === 0 ? schema : { ...schema, '~refine': refine };
}

/** What bounds lists, and the texts that a pattern is tried on; of alternatives each may be tried. */
function toBounds(declared: Plain): Plain {
  const { $id, $ref, $defs, properties, additionalProperties, items, prefixItems, ...others } =
    mapSchemas(declared, (inner) => toBounds(inner));
  const alternatives = ['anyOf', 'oneOf', 'allOf'].flatMap((keyword) => others[keyword] ?? []);
  const { pattern, maxLength, maxItems } = declared;
  if (pattern !== undefined) refuseSlow(String(pattern));
  for (const one of Object.keys(declared['patternProperties'] ?? {})) refuseSlow(one);
  const held = { $id, $ref, $defs, properties, items, prefixItems, maxItems };
  return {
    ...Object.fromEntries(Object.entries(held).filter(([, value]) => value !== undefined)),
    ...(isPlain(additionalProperties) && { additionalProperties }),
    ...(alternatives.length > 0 && { allOf: alternatives }),
    ...(pattern !== undefined && { maxLength: maxLength ?? patternCharacters }),
  };
}

function toShape(declared: Plain): Plain {
  const { pattern: _pattern, format: _format, ...shape } = mapSchemas(declared, toShape);
  return shape;
}

/** A field that must not occur in a closed object, or an item behind a tuple: its schema is false. */
function isUndeclared({ keyword, schemaPath }: { keyword: string; schemaPath: string }): boolean {
  return keyword === 'boolean' && /\/additional(?:Properties|Items)$/.test(schemaPath);
}

function findProblems(schema: object, value: unknown): readonly SchemaProblem[] {
  const errors = errorsOf(schema, value);
  const specific = errors.filter((error) => isUndeclared(error) || !summaries.has(error.keyword));
  // For an object that has another problem it names all fields, so the innermost problem comes first.
  const [first] = errors;
  if (specific.length === 0 && first?.keyword === 'unevaluatedProperties') {
    const names = first.params.unevaluatedProperties.map(String);
    return names.map((name) => ({ at: `${first.instancePath}/${name}`, reason: 'is unknown' }));
  }
  return (specific.length > 0 ? specific : errors).map((error) => ({
    at: error.instancePath,
    reason: isUndeclared(error) ? 'is unknown' : error.message,
  }));
}

/** The bound applies to all users of TypeBox, so it is restored before other code can run. */
function errorsOf(schema: object, value: unknown) {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: maxProblems });
  try {
    return Schema.Errors(schema, value)[1];
  } finally {
    Settings.Set({ maxErrors });
  }
}

/** Whether an object or a list occurs where another type is declared: it is not cut to the declared type. */
function mayHoldMore(schema: object, value: unknown): boolean {
  const errors = errorsOf(schema, value);
  return (
    errors.length >= maxProblems ||
    errors.some(({ keyword, instancePath }) => {
      const isOther = keyword === 'type' || keyword === 'anyOf' || keyword === 'oneOf';
      return isOther && typeof Pointer.Get(value, instancePath) === 'object';
    })
  );
}

const fileCheck = {
  check: (value: unknown) => value instanceof File,
  error: () => 'must be a file',
};

/** Replaces the check of TypeBox, which refuses 1234567.89 as a multiple of 0.01: of a fraction, the remainder is less
 * exact the larger the value is. */
function toMultipleCheck(divisor: number) {
  const isMultiple = (value: number) =>
    Number.isInteger(divisor)
      ? value % divisor === 0
      : Math.abs(Math.round(value / divisor) * divisor - value) <= Number.EPSILON * Math.abs(value);
  return {
    check: (value: unknown) => typeof value !== 'number' || isMultiple(value),
    error: () => `must be multiple of ${divisor}`,
  };
}

function toFormatCheck(name: string, formats: ReadonlyMap<string, FormatCheck>) {
  const isFormed = formats.get(name);
  if (isFormed === undefined) {
    const known = [...formats.keys()].sort().join(', ');
    throw new Error(`unknown format "${name}"; known are ${known}`);
  }
  return {
    check: (value: unknown) => typeof value !== 'string' || isFormed(value),
    error: () => `must match format "${name}"`,
  };
}

/** A text longer than its schema allows is skipped, since `maxLength` refuses it. A character is one or two code
 * units. */
function toPatternCheck(pattern: string, maxLength: number) {
  refuseSlow(pattern);
  const regExp = new RegExp(pattern, 'u');
  return {
    check: (value: unknown) =>
      typeof value !== 'string' || value.length > 2 * maxLength || regExp.test(value),
    error: () => `must match pattern "${pattern}"`,
  };
}

function refuseSlow(pattern: string): void {
  const reason = whyExponential(pattern);
  if (reason === undefined) return;
  throw new Error(`the pattern ${pattern} can take exponential time: ${reason}`);
}
