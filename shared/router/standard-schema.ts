// Schemas of other libraries (zod, valibot, ArkType) in their common interface, https://standardschema.dev: they check
// and convert values themselves; their JSON Schema defines what texts are converted to, and describes them.

import type { SchemaProblem } from './errors.ts';
import { mapSchemas, type Plain } from './schema/json-schema.ts';
import { uploadKeyword } from './upload.ts';

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type Outcome<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

type Describe = (options: {
  readonly target: 'draft-2020-12';
  readonly libraryOptions?: Record<string, unknown>;
}) => Record<string, unknown>;

/** An object of named fields. */
export interface StandardObject<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Outcome<Output> | Promise<Outcome<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Zod has it since 4.2; valibot with `toStandardJsonSchema`. */
    readonly jsonSchema?: { readonly [Side in 'input' | 'output']: Describe };
  };
}

export function isStandard(value: unknown): value is StandardObject {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    '~standard' in value
  );
}

/** A check of valibot that JSON Schema cannot express is left out of it, as zod does: the library still checks it. */
const libraryOptions = {
  overrideAction: ({ errors, jsonSchema }: Record<string, unknown>) => errors && jsonSchema,
};

/** Of the values that are sent, or of those that the schema makes of them. Throws a TypeError if the library provides
 * none. */
export function toJsonSchema(
  { '~standard': { vendor, jsonSchema } }: StandardObject,
  side: 'input' | 'output',
): Readonly<Record<string, unknown>> {
  if (jsonSchema === undefined) {
    throw new TypeError(`op: this schema of ${vendor} has no JSON Schema (~standard.jsonSchema)`);
  }
  try {
    const { $schema: _draft, ...described } = jsonSchema[side]({
      target: 'draft-2020-12',
      ...(vendor === 'valibot' && { libraryOptions }),
    });
    return withUploads(described);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : cause;
    throw new TypeError(
      `op: a schema of ${vendor} has no JSON Schema: ${reason}; declare the text that is sent and let the schema convert it, as z.iso.date().transform((text) => new Date(text))`,
      { cause },
    );
  }
}

/** zod describes a file as a text. */
function withUploads(schema: Plain): Plain {
  if (schema['contentEncoding'] !== 'binary') return mapSchemas(schema, withUploads);
  const { type: _text, format: _format, contentEncoding: _encoding, ...own } = schema;
  return { contentMediaType: 'application/octet-stream', ...own, [uploadKeyword]: true };
}

/** The converted value, or its problems. Throws a TypeError for an asynchronous schema, and for one of zod that throws:
 * it is tried again asynchronously. */
export function validate(
  schema: StandardObject,
  value: unknown,
): { readonly value: unknown } | { readonly issues: readonly SchemaProblem[] } {
  const outcome = schema['~standard'].validate(value);
  if (outcome instanceof Promise) {
    outcome.catch(() => {});
    throw new TypeError(
      'a schema of arguments must neither wait nor throw: check that in the method',
    );
  }
  if (outcome.issues === undefined) return { value: outcome.value };
  return { issues: outcome.issues.map(toProblem) };
}

function toProblem({ message, path = [] }: Issue): SchemaProblem {
  const keys = path.map((key) => `/${String(typeof key === 'object' ? key.key : key)}`);
  return { at: keys.join(''), reason: message };
}
