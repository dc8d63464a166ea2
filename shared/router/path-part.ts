// Positional parameters: what an entry of `op({ path: [...] })` may be.
import Type from 'typebox';

/** A schema of TypeBox: neither a name nor a schema of another library, for which there are `query` and `body`. */
export interface PositionSchema extends Type.TSchema {
  readonly '~kind'?: unknown;
  readonly '~unsafe'?: unknown;
  readonly '~standard'?: never;
}

/** One positional parameter; `Optional` decides its type, `byKeyword` whether it may come as a keyword. */
export interface PathPart<
  Schema extends Type.TSchema = Type.TSchema,
  Optional extends boolean = boolean,
> {
  readonly kind: 'path-part';
  /** For descriptions, and the keyword where it may come by keyword. */
  readonly name: string | undefined;
  readonly schema: Schema;
  readonly optional: Optional;
  readonly byKeyword: boolean;
}

/** A positional parameter with a name for descriptions; it comes from the path alone. */
export function part<Schema extends PositionSchema>(
  name: string,
  schema: Schema,
): PathPart<Schema, false> {
  return { kind: 'path-part', name, schema, optional: false, byKeyword: false };
}

/** A parameter that comes from the path or as the keyword `name`, never from both. */
export function named(name: string): PathPart<Type.TString, false>;
export function named<Schema extends PositionSchema>(
  name: string,
  schema: Schema,
): PathPart<Schema, false>;
export function named(
  name: string,
  schema: Type.TSchema = Type.String(),
): PathPart<Type.TSchema, false> {
  return { kind: 'path-part', name, schema, optional: false, byKeyword: true };
}

/** Optional: when absent, the method gets the schema's default unchanged, or undefined. */
export function optional<Schema extends PositionSchema>(
  entry: Schema | PathPart<Schema, false>,
): PathPart<Schema, true> {
  return { ...toPathPart(entry), optional: true };
}

export function toPathPart<Schema extends Type.TSchema, Optional extends boolean>(
  entry: Schema | PathPart<Schema, Optional>,
): PathPart<Schema, Optional | false> {
  return isPathPart(entry)
    ? entry
    : { kind: 'path-part', name: undefined, schema: entry, optional: false, byKeyword: false };
}

function isPathPart<Schema extends Type.TSchema, Optional extends boolean>(
  entry: Schema | PathPart<Schema, Optional>,
): entry is PathPart<Schema, Optional> {
  return typeof entry === 'object' && 'kind' in entry && entry.kind === 'path-part';
}
