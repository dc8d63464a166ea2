// Compiles schemas at start. Values are checked as they are; cast.ts converts text, bind.ts adds defaults
// of keywords. TypeBox checks: it comes along for the declarations, and needs no `eval` where that is forbidden.
import type Type from 'typebox';
import Schema from 'typebox/schema';
import { Settings } from 'typebox/system';
import { type FormatCheck, knownFormats, readDeclared } from './declared-schema.ts';

export interface SchemaProblem {
  /** Inside the value: `` for the value itself, `/tags/3`. */
  readonly at: string;
  readonly reason: string;
}

/** The problems of the value, at most 20; empty when it is valid. May fill in defaults inside the value. */
export type Check = (value: unknown) => readonly SchemaProblem[];

export interface SchemaCompiler {
  /** Throws an Error that names what the schema has that is not supported. */
  compile(schema: Type.TSchema): Check;
}

const maxProblems = 20;
/** These hold for each part, too. */
const summaries: ReadonlySet<string> = new Set(['boolean', 'additionalProperties']);
const noProblems: readonly SchemaProblem[] = [];

/** `formats`: those of the application, beside the known ones. */
export function createSchemaCompiler(
  formats: Readonly<Record<string, FormatCheck>> = {},
): SchemaCompiler {
  const all = { ...knownFormats, ...formats };
  return {
    compile(declared) {
      // A default of the value itself may violate the schema.
      const { schema, fill } = readDeclared(declared as Record<string, unknown>, all);
      const validator = Schema.Compile(schema);
      return (value) => {
        fill?.(value);
        return validator.Check(value) ? noProblems : findProblems(schema, value);
      };
    },
  };
}

/** A field that is in a closed object: its schema is false. */
function isUndeclared({ keyword, schemaPath }: { keyword: string; schemaPath: string }): boolean {
  return keyword === 'boolean' && schemaPath.endsWith('/additionalProperties');
}

function findProblems(schema: object, value: unknown): readonly SchemaProblem[] {
  // The bound is TypeBox's for all users: it is restored before others can see it.
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: maxProblems });
  try {
    const [, errors] = Schema.Errors(schema, value);
    const telling = errors.filter((error) => isUndeclared(error) || !summaries.has(error.keyword));
    return (telling.length > 0 ? telling : errors).map((error) => ({
      at: error.instancePath,
      reason: isUndeclared(error) ? 'is unknown' : error.message,
    }));
  } finally {
    Settings.Set({ maxErrors });
  }
}
