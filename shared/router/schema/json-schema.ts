// The structure of JSON Schema: which keywords contain schemas, and what a reference resolves to. Data in a schema
// (`default`, `const`, `enum`, `examples`, names of properties) is never interpreted as a schema.

import { patternCharacters } from './pattern.ts';

export type Plain = Readonly<Record<string, unknown>>;

/** Keywords whose value is a schema, or a list of schemas. */
export const holding: ReadonlySet<string> = new Set([
  ...['items', 'additionalItems', 'additionalProperties', 'contains', 'propertyNames', 'not'],
  ...['unevaluatedProperties', 'if', 'then', 'else', 'anyOf', 'oneOf', 'allOf', 'prefixItems'],
]);
/** Keywords whose value has schemas by their names. */
export const holdingByName: ReadonlySet<string> = new Set([
  ...['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'],
]);

export function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A copy of the schema, including what TypeBox hides in it, with its inner schemas changed. `keyword`: the one that
 * contains the inner schema. */
export function mapSchemas(
  schema: Plain,
  change: (inner: Plain, keyword: string) => unknown,
): Record<string, unknown> {
  const mapped: Record<string, unknown> = Object.defineProperties(
    {},
    Object.getOwnPropertyDescriptors(schema),
  );
  for (const [keyword, value] of Object.entries(schema)) {
    const changeOne = (inner: unknown) => (isPlain(inner) ? change(inner, keyword) : inner);
    if (holding.has(keyword)) {
      mapped[keyword] = Array.isArray(value) ? value.map(changeOne) : changeOne(value);
    } else if (holdingByName.has(keyword) && isPlain(value)) {
      mapped[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [name, changeOne(inner)]),
      );
    }
  }
  return mapped;
}

/** Calls `visit` for the schema and each schema in it. */
export function eachSchema(schema: Plain, visit: (schema: Plain) => void): void {
  visit(schema);
  mapSchemas(schema, (inner) => eachSchema(inner, visit));
}

/** A copy of the schema in which every list without a declared bound has this one, and so has every value of any
 * type. */
export function withListBound(schema: Plain, maxItems: number): Plain {
  const bounded = mapSchemas(schema, (inner) => withListBound(inner, maxItems));
  if (schema['type'] === 'array' || Object.keys(schema).length === 0)
    bounded['maxItems'] ??= maxItems;
  return bounded;
}

/** Schemas by the texts with which a `$ref` refers to them: `#/$defs/Name`, and the `$id`. */
export type Scope = ReadonlyMap<string, Plain>;

export const noScope: Scope = new Map();

/** The scope inside of a schema. */
export function scopeWithin(scope: Scope, schema: Plain): Scope {
  const { $defs: defs } = schema;
  if (!isPlain(defs)) return scope;
  const inner = new Map(scope);
  for (const [name, one] of Object.entries(defs)) {
    if (!isPlain(one)) continue;
    inner.set(`#/$defs/${name}`, one);
    if (typeof one['$id'] === 'string') inner.set(one['$id'], one);
  }
  return inner;
}

/** Throws an Error if the reference names no schema. */
export function resolveRef(scope: Scope, ref: unknown): Plain {
  const found = scope.get(String(ref));
  if (found === undefined) {
    throw new Error(
      `$ref ${ref} names no schema: define it in $defs, or give it as the $id of one there`,
    );
  }
  return found;
}

/** If the schema only refers to one in its `$defs`, returns that one. */
export function unfold(schema: Plain): Plain {
  const { $ref: ref, $defs: defs } = schema;
  if (ref === undefined || !isPlain(defs)) return schema;
  const target = resolveRef(scopeWithin(noScope, schema), ref);
  const name = String(ref).replace('#/$defs/', '');
  return Object.defineProperties(
    { $id: name, $defs: defs },
    Object.getOwnPropertyDescriptors(target),
  );
}

/** Whether the schema declares that all of its values are objects. */
export function isOfObjects(schema: Plain, scope: Scope, within: readonly Plain[] = []): boolean {
  if (within.includes(schema)) return true;
  const inside = scopeWithin(scope, schema);
  const isOne = (inner: unknown) =>
    isPlain(inner) && isOfObjects(inner, inside, [...within, schema]);
  const { type, $ref: ref, allOf } = schema;
  if (type !== undefined) return type === 'object';
  if (ref !== undefined) return isOne(resolveRef(inside, ref));
  const branches = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(branches)) return branches.every(isOne);
  return Array.isArray(allOf) ? allOf.some(isOne) : 'properties' in schema;
}

/** The schemas in these keywords are conditions, or parts of an object. */
const partial = ['allOf', 'not', 'if', 'then', 'else', 'dependentSchemas', 'contains'];

/** A copy of the schema whose objects accept no undeclared field, at any depth, unless they have `additionalProperties`
 * (behaviour: undeclared-fields); JSON Schema would accept any. Texts with a pattern are bounded. */
export function closed<Schema extends object>(schema: Schema): Schema {
  // A named schema can be part of an intersection: then each reference to it from outside closes the object.
  const isShared = JSON.stringify(schema).includes('"allOf"');
  const close = (one: Plain, isComplete: boolean, scope: Scope): Plain => {
    const inside = scopeWithin(scope, one);
    const isOfParts =
      ['allOf', 'if', 'dependentSchemas'].some((keyword) => keyword in one) ||
      ('properties' in one && ('anyOf' in one || 'oneOf' in one)) ||
      ('$ref' in one && isShared);
    const changed = mapSchemas(one, (inner, keyword) => {
      const isPart = partial.includes(keyword) || (isShared && keyword === '$defs');
      const isAlternative = keyword === 'anyOf' || keyword === 'oneOf';
      return close(inner, !isPart && !(isAlternative && (isOfParts || !isComplete)), inside);
    });
    if ('pattern' in one) changed['maxLength'] ??= patternCharacters;
    // A record of TypeBox: by its pattern, a name with a line break would have any value.
    const ofAnyName = Object(changed['patternProperties'])['^.*$'];
    if (ofAnyName !== undefined) {
      delete changed['patternProperties'];
      changed['additionalProperties'] = ofAnyName;
    }
    if (isComplete && isOfParts && !('additionalProperties' in one)) {
      if (isOfObjects(one, inside)) changed['unevaluatedProperties'] ??= false;
    } else if (isComplete && ('properties' in one || 'patternProperties' in one)) {
      changed['additionalProperties'] ??= false;
    }
    // A part also declares the fields that it requires.
    else if (Array.isArray(one['required'])) {
      const required = one['required'].map((name) => [name, {}] as const);
      changed['properties'] = { ...Object.fromEntries(required), ...Object(changed['properties']) };
    }
    return changed;
  };
  return close(schema as Plain, true, new Map([['#', schema as Plain]])) as Schema;
}

/** Beside other keywords of an object, its properties would not describe all of it. */
const ofFields: ReadonlySet<string> = new Set([
  ...['type', 'properties', 'required', 'additionalProperties', 'title', 'description'],
  ...['$id', '$defs', '$schema', 'unevaluatedProperties'],
]);

/** Whether an object consists only of its fields, each of which is then an argument. */
export function isOfFields(schema: Plain): boolean {
  if (schema['type'] !== 'object' || !isPlain(schema['properties'])) return false;
  // A reference to the object itself has no meaning inside a field.
  if (JSON.stringify(schema).includes('"$ref":"#"')) return false;
  return Object.keys(schema).every((keyword) => ofFields.has(keyword));
}
