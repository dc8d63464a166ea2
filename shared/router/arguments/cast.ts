// Converts text (or JSON of another type) to the type that a schema declares. Strict: an ambiguous value is refused
// (behaviour: strict-casts). The compiled schema checks constraints.
import type { Origin } from '../request/body.ts';
import {
  isPlain,
  noScope,
  type Plain,
  resolveRef,
  type Scope,
  scopeWithin,
} from '../schema/json-schema.ts';
import { isUpload } from '../upload.ts';

export type Cast =
  | { readonly ok: true; readonly value: unknown }
  /** `at`: the position inside the value, as in a SchemaProblem. */
  | { readonly ok: false; readonly reason: string; readonly at?: string };

type Refusal = Extract<Cast, { readonly ok: false }>;

const integer = /^-?\d+$/;
const number = /^-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
/** Browsers send `on` for a checkbox. */
const truths: ReadonlySet<string> = new Set(['1', 't', 'true', 'yes', 'on']);
const falsehoods: ReadonlySet<string> = new Set(['', '0', 'f', 'false', 'no', 'off']);

export type CastValue = (value: unknown, from: Origin) => Cast;

/** Whether a value matches a schema: a text alone does not decide between several alternatives. */
export type Accepts = (schema: Plain) => (value: unknown) => boolean;

/** Reads the schema once, not for each value. Throws an Error for an unresolved reference. `references`: the casts of
 * the schemas that references name. */
export function compileCast(
  schema: Plain,
  accepts: Accepts,
  scope: Scope = noScope,
  references = new Map<Plain, CastValue>(),
): CastValue {
  const inside = scopeWithin(scope, schema);
  const compile = (inner: unknown) => compileCast(inner as Plain, accepts, inside, references);
  if (isUpload(schema)) {
    return (value) => (value instanceof File ? { ok: true, value } : refuse('must be one file'));
  }
  if (schema['$ref'] !== undefined) {
    const target = resolveRef(inside, schema['$ref']);
    const cast = references.get(target) ?? castReference(() => compile(target));
    references.set(target, cast);
    return cast;
  }
  const literals = literalsOf(schema);
  if (literals !== undefined) return (value) => castLiteral(literals, value);
  const { type = 'properties' in schema ? 'object' : undefined } = schema;
  const branches = Array.isArray(type)
    ? type.map((one) => ({ ...schema, type: one }))
    : (schema['anyOf'] ?? schema['oneOf']);
  if (Array.isArray(branches)) {
    return castAlternatives(
      branches.filter(isPlain).map((branch) => {
        const complete = { ...branch, $defs: Object.fromEntries(defsOf(inside)) };
        return { cast: compile(branch), isOne: accepts(complete) };
      }),
    );
  }
  const parts = schema['allOf'];
  if (Array.isArray(parts)) {
    const { allOf: _parts, ...own } = schema;
    return castParts([...parts.filter(isPlain), own].map(compile));
  }
  if (type === 'array') return castList(schema, compile);
  if (type === 'object') return castObject(schema, compile);
  if (type === 'null') {
    return (value) => (value === null ? { ok: true, value } : refuse('must be null'));
  }
  if (type === undefined) return (value) => ({ ok: true, value });
  const name = String(type);
  return (value, from) => {
    if (Array.isArray(value)) {
      return refuse(from === 'text' ? 'is given more than once' : 'must be one value');
    }
    if (!isScalar(value)) return refuse(`must be ${article(name)}`);
    if (name === 'string') return { ok: true, value: String(value) };
    return castText(name, String(value));
  };
}

/** Compiled on first use, since the schema may refer to one that contains it. */
function castReference(compile: () => CastValue): CastValue {
  let cast: CastValue | undefined;
  const pending = new Set<unknown>();
  return (value, from) => {
    // One value stands for a list of itself, which a list of lists would take for another one without end.
    if (pending.has(value)) return refuse('must be a list');
    pending.add(value);
    try {
      cast ??= compile();
      return cast(value, from);
    } finally {
      pending.delete(value);
    }
  };
}

/** The schemas of a scope, in the form of `$defs`. */
function defsOf(scope: Scope): readonly (readonly [string, Plain])[] {
  return [...scope].flatMap(([ref, schema]) => {
    const [, name] = /^#\/\$defs\/(.*)$/.exec(ref) ?? [];
    return name === undefined ? [] : [[name, schema] as const];
  });
}

function castText(type: string, text: string): Cast {
  if (type === 'boolean') {
    const word = text.toLowerCase();
    if (truths.has(word)) return { ok: true, value: true };
    if (falsehoods.has(word)) return { ok: true, value: false };
    return refuse('must be true or false (1, yes, t, on, 0, no, f, off, or empty for false)');
  }
  const value = Number(text);
  if (type === 'integer') {
    const isInteger = integer.test(text) && Number.isSafeInteger(value);
    return isInteger ? { ok: true, value: value + 0 } : refuse('must be an integer');
  }
  const isNumber = number.test(text) && Number.isFinite(value);
  return isNumber ? { ok: true, value } : refuse('must be a number');
}

function castList(schema: Plain, compile: (inner: unknown) => CastValue): CastValue {
  const { maxItems, items: of, prefixItems: first = of } = schema;
  const castFirst = Array.isArray(first) ? first.map(compile) : [];
  const castOther = isPlain(of) ? compile(of) : undefined;
  return (value, from) => {
    const items: unknown[] = Array.isArray(value) ? [...value] : [value];
    if (items.length > Number(maxItems)) return refuse(`has more than ${maxItems} items`);
    for (let at = 0; at < items.length; at += 1) {
      const castItem = castFirst[at] ?? castOther;
      if (castItem === undefined) break;
      const result = castItem(items[at], from);
      if (!result.ok) return refuseAt(at, result);
      items[at] = result.value;
    }
    return { ok: true, value: items };
  };
}

/** A value in a JSON object has a type of its own; fields of a form and of XML are texts. An empty XML element is an
 * empty object. */
function castObject(schema: Plain, compile: (inner: unknown) => CastValue): CastValue {
  const compileAll = (all: unknown) =>
    new Map(Object.entries(all ?? {}).map(([name, inner]) => [name, compile(inner)] as const));
  const named = compileAll(schema['properties']);
  const [patterned] = compileAll(schema['patternProperties']).values();
  const additional = schema['additionalProperties'];
  const others = patterned ?? (isPlain(additional) ? compile(additional) : undefined);
  return (value, from) => {
    if (from === 'xml' && typeof value === 'string' && value.trim() === '') {
      return { ok: true, value: {} };
    }
    if (!isPlain(value) || value instanceof File) return refuse('must be an object');
    if (from === 'json') return { ok: true, value };
    const fields = new Map<string, unknown>();
    for (const [name, field] of Object.entries(value)) {
      const result = (named.get(name) ?? others)?.(field, from) ?? { ok: true, value: field };
      if (!result.ok) return refuseAt(name, result);
      fields.set(name, result.value);
    }
    return { ok: true, value: Object.fromEntries(fields) };
  };
}

/** The first alternative that accepts the value, else the first that can convert it. JSON that one accepts is not
 * converted: its values have types. */
function castAlternatives(
  branches: readonly { readonly cast: CastValue; readonly isOne: (value: unknown) => boolean }[],
): CastValue {
  return (value, from) => {
    if (from === 'json' && branches.some(({ isOne }) => isOne(value))) return { ok: true, value };
    let first: Cast | undefined;
    let refusal: Cast | undefined;
    for (const { cast, isOne } of branches) {
      const result = cast(value, from);
      if (result.ok && isOne(result.value)) return result;
      if (result.ok) first ??= result;
      else refusal ??= result;
    }
    return first ?? refusal ?? { ok: true, value };
  };
}

function castParts(parts: readonly CastValue[]): CastValue {
  return (value, from) => {
    let result: Cast = { ok: true, value };
    for (const cast of parts) {
      if (result.ok) result = cast(result.value, from);
    }
    return result;
  };
}

function castLiteral(literals: readonly unknown[], value: unknown): Cast {
  if (literals.includes(value)) return { ok: true, value };
  const meant = isScalar(value)
    ? literals.find((literal) => literal !== null && String(literal) === String(value))
    : undefined;
  return meant === undefined
    ? refuse(`must be ${literals.map(String).join(' or ')}`)
    : { ok: true, value: meant };
}

/** The closed set of values of a schema that only lists values. */
function literalsOf(schema: Plain): readonly unknown[] | undefined {
  if ('const' in schema) return [schema['const']];
  if (Array.isArray(schema['enum'])) return schema['enum'];
  const branches = schema['anyOf'] ?? schema['oneOf'];
  if (!Array.isArray(branches)) return undefined;
  const literals = (branches as Plain[]).map(literalsOf);
  return literals.every((list) => list !== undefined) ? literals.flat() : undefined;
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
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
