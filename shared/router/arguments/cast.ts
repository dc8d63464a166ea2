// Converts text (or JSON of another type) to the type that a schema declares. Strict: a value without a
// single meaning is refused (behaviour: strict-casts). The compiled schema checks constraints.
import type Type from 'typebox';
import type { Origin } from '../request/body.ts';
import { isUpload } from '../upload.ts';

export type Cast =
  | { readonly ok: true; readonly value: unknown }
  /** `at`: inside the value, as a SchemaProblem has it. */
  | { readonly ok: false; readonly reason: string; readonly at?: string };

type Refusal = Extract<Cast, { readonly ok: false }>;

type PlainSchema = Readonly<Record<string, unknown>>;

const integer = /^-?\d+$/;
const number = /^-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const truths: ReadonlySet<string> = new Set(['1', 't', 'true', 'yes']);
const falsehoods: ReadonlySet<string> = new Set(['', '0', 'f', 'false', 'no']);

export interface CastOptions {
  readonly from: Origin;
  /** Items of one list, unless its schema has a bound. */
  readonly listItems: number;
  /** The whole body is too short for a list of so many items. */
  readonly isShort?: boolean;
}

export type CastValue = (value: unknown, options: CastOptions) => Cast;

/** Reads the schema once, and not for each value. */
export function compileCast(schema: Type.TSchema): CastValue {
  return compile(schema as PlainSchema);
}

function compile(schema: PlainSchema): CastValue {
  if (isUpload(schema)) {
    return (value) => (value instanceof File ? { ok: true, value } : refuse('must be one file'));
  }
  const literals = literalsOf(schema);
  if (literals !== undefined) return (value) => castLiteral(literals, value);
  const branches = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(branches)) {
    const casts = (branches as PlainSchema[]).map(compile);
    return (value, options) => castBranch(casts, value, options);
  }
  const type = schema['type'];
  const schemas = [schema];
  if (type === 'array') return compileList(schema);
  if (type === 'object') {
    return (value, options) => {
      if (options.from === 'xml') return castFields(schema, value, options);
      if (!isPlainObject(value)) return refuse('must be an object');
      return castWhole(schemas, value, options);
    };
  }
  if (type === 'null') {
    return (value) => (value === null ? { ok: true, value } : refuse('must be null'));
  }
  if (type === undefined || Array.isArray(type)) {
    return (value, options) => castWhole(schemas, value, options);
  }
  const name = String(type);
  return (value, { from }) => {
    if (Array.isArray(value)) {
      return refuse(from === 'text' ? 'is given more than once' : 'must be one value');
    }
    if (!isScalar(value)) return refuse(`must be ${article(name)}`);
    if (name === 'string') return { ok: true, value: String(value) };
    return castText(name, String(value));
  };
}

function castText(type: string, text: string): Cast {
  if (type === 'boolean') {
    const word = text.toLowerCase();
    if (truths.has(word)) return { ok: true, value: true };
    if (falsehoods.has(word)) return { ok: true, value: false };
    return refuse('must be true or false (1, yes, t, 0, no, f, or empty for false)');
  }
  const value = Number(text);
  if (type === 'integer') {
    const isInteger = integer.test(text) && Number.isSafeInteger(value);
    return isInteger ? { ok: true, value: value + 0 } : refuse('must be an integer');
  }
  const isNumber = number.test(text) && Number.isFinite(value);
  return isNumber ? { ok: true, value } : refuse('must be a number');
}

function compileList(schema: PlainSchema): CastValue {
  const declared = schema['maxItems'];
  const schemas = [schema];
  const of = schema['items'];
  const castItem = isSchema(of) ? compile(of) : undefined;
  return (value, options) => {
    const maxItems = typeof declared === 'number' ? declared : options.listItems;
    const hasCommas =
      options.from === 'text' || (options.from === 'json' && typeof value === 'string');
    const items: unknown[] = [];
    for (const item of Array.isArray(value) ? value : [value]) {
      const isText = hasCommas && typeof item === 'string';
      if (isText) items.push(...item.split(',', maxItems + 1));
      else items.push(item);
      if (items.length > maxItems) return refuse(`has more than ${maxItems} items`);
    }
    if (castItem === undefined) return castWhole(schemas, items, options);
    for (let at = 0; at < items.length; at += 1) {
      const result = castItem(items[at], options);
      if (!result.ok) return refuseAt(at, result);
      items[at] = result.value;
    }
    return { ok: true, value: items };
  };
}

/** An object of XML, where an empty element is an empty object. */
function castFields(schema: PlainSchema, value: unknown, options: CastOptions): Cast {
  if (typeof value === 'string' && value.trim() === '') return { ok: true, value: {} };
  if (!isPlainObject(value)) return refuse('must be an object');
  const branches = toBranches(schema);
  const fields = new Map<string, unknown>();
  for (const [name, field] of Object.entries(value as object)) {
    const [declared, ...others] = schemasAt(branches, name);
    // Of several schemas that apply, none alone decides what the text means.
    if (declared === undefined || others.length > 0) {
      fields.set(name, field);
      continue;
    }
    const result = compile(declared)(field, options);
    if (!result.ok) return refuseAt(name, result);
    fields.set(name, result.value);
  }
  return castWhole([schema], Object.fromEntries(fields), options);
}

/** A value that is not converted, as everything within an object: its lists are bounded too. */
function castWhole(
  schemas: readonly PlainSchema[],
  value: unknown,
  { listItems, isShort }: CastOptions,
): Cast {
  if (isShort) return { ok: true, value };
  const tooLong = findLongList(schemas, value, listItems);
  return tooLong === undefined
    ? { ok: true, value }
    : refuse(`holds a list of more than ${tooLong} items`);
}

/** The bound of a list within the value that exceeds it, if any does. */
function findLongList(
  schemas: readonly PlainSchema[],
  value: unknown,
  listItems: number,
): number | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const all = schemas.flatMap(toBranches);
  if (Array.isArray(value)) {
    const declared = all
      .map((schema) => schema['maxItems'])
      .filter((max) => typeof max === 'number');
    // The largest bound of several branches: the compiled schema decides which branch applies.
    const maxItems = declared.length === 0 ? listItems : Math.max(...declared);
    if (value.length > maxItems) return maxItems;
  }
  for (const [key, inside] of Object.entries(value)) {
    if (typeof inside !== 'object' || inside === null) continue;
    const found = findLongList(schemasAt(all, key), inside, listItems);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The schema and all that it combines (allOf, anyOf, oneOf). */
function toBranches(schema: PlainSchema): readonly PlainSchema[] {
  const within = ['anyOf', 'oneOf', 'allOf'].flatMap((keyword) => schema[keyword] ?? []);
  return [schema, ...within.filter(isSchema).flatMap(toBranches)];
}

/** Schemas that apply to a property or an item. */
function schemasAt(schemas: readonly PlainSchema[], key: string): readonly PlainSchema[] {
  return schemas
    .flatMap(({ properties, patternProperties, additionalProperties, items }) => {
      if (isSchema(properties) && Object.hasOwn(properties, key)) return [properties[key]];
      if (Array.isArray(items)) return [items[Number(key)]];
      const patterned = isSchema(patternProperties) ? Object.values(patternProperties) : [];
      return [...patterned, additionalProperties, items];
    })
    .filter(isSchema);
}

function isSchema(value: unknown): value is PlainSchema {
  return isPlainObject(value);
}

function castBranch(branches: readonly CastValue[], value: unknown, options: CastOptions): Cast {
  let first: Cast | undefined;
  for (const cast of branches) {
    const result = cast(value, options);
    if (result.ok) return result;
    first ??= result;
  }
  return first ?? { ok: true, value };
}

function castLiteral(literals: readonly unknown[], value: unknown): Cast {
  if (literals.includes(value)) return { ok: true, value };
  const meant = isScalar(value)
    ? literals.find((literal) => literal !== null && String(literal) === String(value))
    : undefined;
  return meant === undefined ? refuse(choiceReason(literals)) : { ok: true, value: meant };
}

/** The closed set of values of a schema that is nothing else. */
function literalsOf(schema: PlainSchema): readonly unknown[] | undefined {
  if ('const' in schema) return [schema['const']];
  if (Array.isArray(schema['enum'])) return schema['enum'];
  const branches = schema['anyOf'] ?? schema['oneOf'];
  if (!Array.isArray(branches)) return undefined;
  const literals = (branches as PlainSchema[]).map(literalsOf);
  return literals.every((list) => list !== undefined) ? literals.flat() : undefined;
}

function choiceReason(literals: readonly unknown[]): string {
  return `must be ${literals.map(String).join(' or ')}`;
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function article(type: string): string {
  return type === 'integer' ? 'an integer' : type === 'string' ? 'a text' : `a ${type}`;
}

function refuse(reason: string): Cast {
  return { ok: false, reason };
}

function refuseAt(key: string | number, { at = '', reason }: Refusal): Cast {
  return { ok: false, at: `/${key}${at}`, reason };
}
