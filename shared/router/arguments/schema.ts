// Compiles schemas at start. Values are checked as they are; cast.ts converts text, bind.ts adds defaults
// of keywords.
import { Ajv, type AnySchemaObject, type ErrorObject, str, type ValidateFunction } from 'ajv';
import type Type from 'typebox';
import { uploadKeyword } from '../upload.ts';
import { whyNotLinear } from './pattern.ts';

export interface SchemaProblem {
  /** Inside the value: `` for the value itself, `/tags/3`. */
  readonly at: string;
  readonly reason: string;
}

/** The problems of the value, at most 20; empty when it is valid. Of a large value only the first, or those
 * of all branches where none of several fits. May fill in defaults inside the value. */
export type Check = (value: unknown) => readonly SchemaProblem[];

export interface SchemaCompiler {
  /** Throws an Error that names what the schema has that is not supported. */
  compile(schema: Type.TSchema): Check;
}

const maxProblems = 20;
const noProblems: readonly SchemaProblem[] = [];
/** Up to this many nested values all problems are collected: a long list of wrong items would make as many
 * problems. */
const smallSize = 1_000;

const formats = {
  date: /^\d{4}-\d\d-\d\d$/,
  'date-time': /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/,
  uuid: /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/,
};

export function createSchemaCompiler(): SchemaCompiler {
  const first = createAjv(false);
  const all = createAjv(true);
  return {
    compile(schema) {
      // The checker ignores a default of the value itself, which may violate the schema.
      const { default: _default, $id: _id, ...rest } = schema as Record<string, unknown>;
      const validate = first.compile(rest);
      let validateWhole: ValidateFunction | undefined;
      return (value) => {
        if (validate(value)) return noProblems;
        const firstErrors = validate.errors ?? [];
        if (!isSmall(value)) return firstErrors.slice(0, maxProblems).map(toProblem);
        validateWhole ??= all.compile(rest);
        validateWhole(value);
        return (validateWhole.errors ?? firstErrors).slice(0, maxProblems).map(toProblem);
      };
    },
  };
}

function createAjv(allErrors: boolean): Ajv {
  const ajv = new Ajv({
    allErrors,
    coerceTypes: false,
    useDefaults: true,
    strict: true,
    allowUnionTypes: true,
    formats,
    code: {
      regExp: Object.assign(
        (pattern: string, flags: string) => createLinearRegExp(pattern, flags),
        { code: 'createLinearRegExp' },
      ),
    },
  });
  // Ajv's own keyword matches texts that are too long as well.
  ajv.removeKeyword('pattern');
  ajv.addKeyword({
    keyword: 'pattern',
    type: 'string',
    schemaType: 'string',
    compile: createPatternCheck,
    error: { message: ({ schemaCode }) => str`must match pattern "${schemaCode}"` },
  });
  ajv.addKeyword({
    keyword: uploadKeyword,
    schemaType: 'boolean',
    validate: (_expected: boolean, value: unknown) => value instanceof File,
    error: { message: 'must be a file' },
  });
  return ajv;
}

/** Counting stops at the bound, so a large value costs no more. */
function isSmall(value: unknown): boolean {
  const open = [value];
  for (let count = 0; count < open.length; count++) {
    if (open.length > smallSize) return false;
    const next = open[count];
    if (typeof next !== 'object' || next === null) continue;
    const inside = Object.values(next);
    if (inside.length > smallSize) return false;
    open.push(...inside);
  }
  return true;
}

/** A text longer than its schema allows is skipped: `maxLength` refuses it. */
function createPatternCheck(
  pattern: string,
  { maxLength }: AnySchemaObject,
): (text: string) => boolean {
  const bound = typeof maxLength === 'number' ? maxLength : Number.POSITIVE_INFINITY;
  const regExp = createLinearRegExp(pattern, 'u', bound);
  return (text) => isLonger(text, bound) || regExp.test(text);
}

/** In characters: each is one or two UTF-16 units. */
function isLonger(text: string, maxLength: number): boolean {
  if (text.length <= maxLength) return false;
  return text.length > 2 * maxLength || [...text].length > maxLength;
}

/** Also for names in `patternProperties`, whose length nothing bounds. */
function createLinearRegExp(pattern: string, flags: string, maxLength?: number): RegExp {
  const regExp = new RegExp(pattern, flags);
  const reason = whyNotLinear(pattern, maxLength);
  if (reason !== undefined) {
    throw new Error(`the pattern ${pattern} may take far more than linear time: ${reason}`);
  }
  return regExp;
}

function toProblem(error: ErrorObject): SchemaProblem {
  return { at: error.instancePath, reason: error.message ?? 'is not valid' };
}
