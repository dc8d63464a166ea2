// Declared objects take no field that they do not declare, at any depth, unless their schema has
// `additionalProperties` (behaviour: undeclared-fields). JSON Schema would take any.
import type Type from 'typebox';

type Plain = Readonly<Record<string, unknown>>;

const partsOfValue = ['items', 'prefixItems', 'additionalItems', 'additionalProperties'];
const partsByName = ['properties', 'patternProperties'];
const alternatives = ['anyOf', 'oneOf'];
/** Beside `properties` these declare together with it which fields an object has: none of them alone can close it. */
const sharing = ['allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', '$ref'];

/** The same schema with what is in it closed. */
export function closeParts<Schema extends Type.TSchema>(schema: Schema): Schema {
  // With what TypeBox hides: the kind, and functions that check.
  const closed: Record<string, unknown> = Object.defineProperties(
    {},
    Object.getOwnPropertyDescriptors(schema),
  );
  for (const keyword of [...partsOfValue, ...alternatives]) {
    if (keyword in closed) closed[keyword] = closeAny(closed[keyword]);
  }
  for (const keyword of partsByName) {
    const parts = closed[keyword];
    if (!isPlain(parts)) continue;
    closed[keyword] = Object.fromEntries(
      Object.entries(parts).map(([name, part]) => [name, closeAny(part)]),
    );
  }
  return closed as Schema;
}

/** The same schema closed itself, and in it. */
export function close<Schema extends Type.TSchema>(schema: Schema): Schema {
  return closeAny(schema) as Schema;
}

function closeAny(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closeAny);
  if (!isPlain(schema)) return schema;
  if (!isPlain(schema['properties'])) return closeParts(schema);
  if (sharing.some((keyword) => keyword in schema)) return schema;
  const closed = closeParts(schema);
  return 'additionalProperties' in schema
    ? closed
    : Object.assign(closed, { additionalProperties: false });
}

function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
