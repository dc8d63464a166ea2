// Schemas compiled ahead of time, at start. Values are checked as they are: casting text is left
// to cast.ts, defaults of keywords to bind.ts.
import { Ajv, type ErrorObject } from 'ajv';
import type Type from 'typebox';
import { whyNotLinear } from './pattern.ts';
import { uploadKeyword } from './upload.ts';

export interface SchemaProblem {
  /** Inside the value: `` for the value itself, `/tags/3`. */
  readonly at: string;
  readonly reason: string;
}

/** No problems: an empty list. May fill in defaults inside the value. */
export type Check = (value: unknown) => readonly SchemaProblem[];

export interface SchemaCompiler {
  /** Throws an Error that says what the schema has that is not understood. */
  compile(schema: Type.TSchema): Check;
}

const maxProblems = 20;

const formats = {
  date: /^\d{4}-\d\d-\d\d$/,
  'date-time': /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/,
  uuid: /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/,
};

export function createSchemaCompiler(): SchemaCompiler {
  const ajv = new Ajv({
    allErrors: true,
    coerceTypes: false,
    useDefaults: true,
    strict: true,
    allowUnionTypes: true,
    formats,
    code: { regExp: Object.assign(createLinearRegExp, { code: 'createLinearRegExp' }) },
  });
  ajv.addKeyword({
    keyword: uploadKeyword,
    schemaType: 'boolean',
    validate: (_expected: boolean, value: unknown) => value instanceof File,
    error: { message: 'must be a file' },
  });
  return {
    compile(schema) {
      // A default of the value itself is not the checker's business, and it may break the schema.
      const { default: _default, $id: _id, ...rest } = schema as Record<string, unknown>;
      const validate = ajv.compile(rest);
      return (value) =>
        validate(value) ? [] : (validate.errors ?? []).slice(0, maxProblems).map(toProblem);
    },
  };
}

function createLinearRegExp(pattern: string, flags: string): RegExp {
  const reason = whyNotLinear(pattern);
  if (reason !== undefined) {
    throw new Error(`the pattern ${pattern} may take exponential time: ${reason}`);
  }
  return new RegExp(pattern, flags);
}

function toProblem(error: ErrorObject): SchemaProblem {
  return { at: error.instancePath, reason: error.message ?? 'is not valid' };
}
