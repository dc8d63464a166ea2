// Positional parameters: the entries of `op({ path: [...] })`.
import Type from 'typebox';

/** A schema of TypeBox: neither a name nor a schema of another library, which `query` and `body` accept. */
export interface PositionSchema extends Type.TSchema {
  readonly '~kind'?: unknown;
  readonly '~unsafe'?: unknown;
  readonly '~standard'?: 'a position is of TypeBox';
}

/** One positional parameter; `Optional` decides its type, `byKeyword` whether it may come as a keyword. */
export interface PathPart<
  Schema extends Type.TSchema = Type.TSchema,
  Optional extends boolean = boolean,
> {
  readonly kind: 'path-part';
  /** The name for descriptions, and the keyword if the parameter can be passed by keyword. */
  readonly name: string | undefined;
  readonly schema: Schema;
  readonly optional: Optional;
  readonly byKeyword: boolean;
}

/** A positional parameter with a name for descriptions; it is accepted only in the path. */
export function part<Schema extends PositionSchema>(
  name: string,
  schema: Schema,
): PathPart<Schema, false> {
  return { kind: 'path-part', name, schema, optional: false, byKeyword: false };
}

/** A parameter that is accepted in the path or as the keyword `name`, but not both. */
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

/** Makes a parameter optional: if it is absent, the method receives the schema's default unchanged, or undefined. */
export function optional<Schema extends PositionSchema>(
  entry: Schema | PathPart<Schema, false>,
): PathPart<Schema, true> {
  return { ...toPathPart(entry), optional: true };
}

export function toPathPart<Schema extends Type.TSchema, Optional extends boolean>(
  entry: Schema | PathPart<Schema, Optional>,
): PathPart<Schema, Optional | false> {
  return 'kind' in entry && entry.kind === 'path-part'
    ? (entry as PathPart<Schema, Optional>)
    : {
        kind: 'path-part',
        name: undefined,
        schema: entry as Schema,
        optional: false,
        byKeyword: false,
      };
}
