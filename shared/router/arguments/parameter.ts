// The parameters of a method, compiled from its declaration. bind.ts supplies the values.
import type { Op } from '../op.ts';
import { isOfFields, isPlain, noScope, type Plain, scopeWithin } from '../schema/json-schema.ts';
import { isUpload } from '../upload.ts';
import { type CastValue, compileCast } from './cast.ts';
import type { Check, SchemaCompiler } from './schema.ts';

export interface Parameter {
  readonly schema: Plain;
  readonly cast: CastValue;
  readonly check: Check;
  /** Adds defaults inside the value. */
  readonly complete: ((value: unknown) => unknown) | undefined;
  /** Creates its own default, a copy each time, so that no request can change that of the next; undefined if it has
   * none. */
  readonly makeDefault: (() => unknown) | undefined;
}

export interface Keyword extends Parameter {
  /** The parameter's own name, and its aliases. */
  readonly names: readonly [string, ...string[]];
  /** Where it is documented; it may come from either. */
  readonly in: 'query' | 'body';
  readonly required: boolean;
}

export interface Keywords {
  readonly keywords: readonly Keyword[];
  /** Names and aliases of keywords, and names of positions that can be passed by keyword. */
  readonly known: ReadonlySet<string>;
  /** Schemas of further keywords, by where they come from; undefined if none are allowed. */
  readonly others: { query?: Parameter; body?: Parameter };
}

/** `$defs`: those of the object that contains the field. `isForeign`: whether the schema is of another library, which
 * checks its schemas by its own rules. */
export function toParameter(
  schema: Plain,
  compiler: SchemaCompiler,
  { $defs = {}, isForeign = false }: { readonly $defs?: Plain; readonly isForeign?: boolean } = {},
): Parameter {
  const accepts = (inner: Plain) => {
    const check = isForeign ? compiler.compileShape(inner) : compiler.compile(inner);
    return (value: unknown) => check(value).length === 0;
  };
  const scope = new Map([...scopeWithin(noScope, { $defs }), ['#', schema]]);
  const complete = isForeign ? undefined : compiler.compileDefaults(schema, $defs);
  return {
    schema,
    cast: compileCast(schema, accepts, scope),
    check: isForeign ? compiler.compileBounds(schema, $defs) : compiler.compile(schema, $defs),
    complete,
    makeDefault: toDefault(schema, complete),
  };
}

/** Used unchecked: the default can be a value that no caller can send. */
function toDefault(
  schema: Plain,
  complete = (value: unknown) => value,
): (() => unknown) | undefined {
  if (!('default' in schema)) return undefined;
  const { default: value } = schema;
  return typeof value === 'object' ? () => complete(structuredClone(value)) : () => value;
}

/** Throws an Error that names the invalid part of the declaration. */
export function toKeywords(
  declared: Op | undefined,
  bounded: (schema: object) => Plain,
  compiler: SchemaCompiler,
): Keywords {
  const byName = new Map<string, Keyword>();
  const known = new Set<unknown>(
    declared?.path.flatMap((entry) => (entry.byKeyword ? [entry.name] : [])),
  ) as Set<string>;
  const others: Keywords['others'] = {};
  for (const where of ['query', 'body'] as const) {
    const given = declared?.fields[where];
    if (given === undefined) continue;
    if (!isOfFields(given)) {
      throw new Error('query must be one object of its fields alone, as Type.Object({ ... })');
    }
    const object = bounded(given);
    const required = new Set<unknown>((object['required'] as unknown[] | undefined) ?? []);
    const isForeign = declared?.standard.some((one) => one.in === where) === true;
    const $defs = (object['$defs'] ?? {}) as Plain;
    for (const [name, schema] of Object.entries((object['properties'] ?? {}) as Plain)) {
      if (known.has(name) || name === '__proto__') {
        throw new Error(`the keyword ${name} cannot be declared, or is declared twice`);
      }
      known.add(name);
      const field = schema as Plain;
      if (where === 'query' && isUpload(field)) {
        throw new Error(`the file ${name} is in the query; files come in a body`);
      }
      byName.set(name, {
        ...toParameter(field, compiler, { $defs, isForeign }),
        names: [name],
        in: where,
        required: required.has(name) && !('default' in field),
      });
    }
    // Another library drops, keeps or refuses the fields of a body that its schema does not name.
    const isLeft = isForeign && where === 'body' && object['additionalProperties'] === undefined;
    const { additionalProperties: additional = isLeft } = object;
    if (additional === false) continue;
    const further = isPlain(additional) ? additional : bounded({});
    const other = toParameter(further, compiler, { $defs, isForeign });
    others.body ??= other;
    if (!isLeft) others.query ??= other;
  }
  for (const [name, aliases] of Object.entries(declared?.spec.aliases ?? {})) {
    const keyword = byName.get(name);
    if (keyword === undefined) {
      throw new Error(`aliases are declared for ${name}, which is no keyword`);
    }
    if (!Array.isArray(aliases)) throw new Error(`aliases of ${name} are a list of names`);
    for (const alias of aliases) {
      if (known.has(alias)) throw new Error(`the alias ${alias} is the name of another keyword`);
      known.add(alias);
    }
    byName.set(name, { ...keyword, names: [name, ...aliases] });
  }
  return { keywords: [...byName.values()], known, others };
}
