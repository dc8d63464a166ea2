// The parameters of a method, compiled from its declaration. bind.ts supplies the values.
import type Type from 'typebox';
import type { Op } from '../op.ts';
import { type CastValue, compileCast } from './cast.ts';
import type { Check, SchemaCompiler } from './schema.ts';

export interface Parameter {
  readonly schema: Type.TSchema;
  readonly cast: CastValue;
  readonly check: Check;
}

export interface Keyword extends Parameter {
  readonly name: string;
  /** Where it is documented; it may come from either. */
  readonly in: 'query' | 'body';
  readonly required: boolean;
}

export interface Keywords {
  readonly byName: ReadonlyMap<string, Keyword>;
  /** Schema of further keywords; undefined where none are allowed. */
  readonly others: Parameter | undefined;
  /** From an alias to the parameter's name. */
  readonly aliases: ReadonlyMap<string, string>;
}

/** Other schema keywords would be silently ignored, since each property is checked by itself. */
const understood: ReadonlySet<string> = new Set([
  'type',
  'properties',
  'required',
  'additionalProperties',
  'title',
  'description',
]);

export function toParameter(schema: Type.TSchema, compiler: SchemaCompiler): Parameter {
  return { schema, cast: compileCast(schema), check: compiler.compile(schema) };
}

/** Throws an Error that names the invalid part of the declaration. */
export function toKeywords(declared: Op | undefined, compiler: SchemaCompiler): Keywords {
  const byName = new Map<string, Keyword>();
  const positional = new Set(
    declared?.path.flatMap((entry) => (entry.byKeyword ? [entry.name] : [])),
  );
  let others: Parameter | undefined;
  for (const where of ['query', 'body'] as const) {
    const object = declared?.fields[where];
    if (object === undefined) continue;
    refuseUnderstoodByNobody(object, where);
    const required = new Set<string>(object.required);
    // Another library checks its own schemas, by its own rules.
    const isStandard = declared?.standard.some((one) => one.in === where) === true;
    for (const [name, schema] of Object.entries<Type.TSchema>(object.properties)) {
      if (byName.has(name) || positional.has(name) || name === '__proto__') {
        throw new Error(`the keyword ${name} cannot be declared, or is declared twice`);
      }
      byName.set(name, {
        ...(isStandard
          ? { schema, cast: compileCast(schema), check: () => [] }
          : toParameter(schema, compiler)),
        name,
        in: where,
        required: required.has(name) && !('default' in schema),
      });
    }
    const additional: unknown = 'additionalProperties' in object && object.additionalProperties;
    if (additional === true) others ??= { schema: {}, cast: compileCast({}), check: () => [] };
    else if (typeof additional === 'object' && additional !== null) {
      others ??= toParameter(additional, compiler);
    }
  }
  return { byName, others, aliases: toAliases(declared, byName) };
}

function toAliases(
  declared: Op | undefined,
  byName: ReadonlyMap<string, Keyword>,
): ReadonlyMap<string, string> {
  const aliases = new Map<string, string>();
  for (const [name, others] of Object.entries(declared?.spec.aliases ?? {})) {
    if (!byName.has(name)) throw new Error(`aliases are declared for ${name}, which is no keyword`);
    for (const alias of others) {
      if (byName.has(alias) || aliases.has(alias)) {
        throw new Error(`the alias ${alias} is the name of another keyword`);
      }
      aliases.set(alias, name);
    }
  }
  return aliases;
}

function refuseUnderstoodByNobody(object: Type.TObject, where: 'query' | 'body'): void {
  if (object.type !== 'object') {
    throw new Error(`${where} must be one object of named fields, as Type.Object({ ... })`);
  }
  const unknown = Object.keys(object).filter((key) => !understood.has(key));
  if (unknown.length > 0) {
    throw new Error(`${where} must be a plain object schema; remove ${unknown.join(', ')}`);
  }
}
