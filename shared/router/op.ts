// Declares the arguments and results of a controller's method, as data beside it: the same schemas check, type and
// describe them. bind.ts binds them.
import type Type from 'typebox';
import type { Controller } from './controller.ts';
import type { Guard } from './guard.ts';
import { type Limits, type MethodLimits, methodLimits, refuseWrongLimits } from './limits.ts';
import type { MaybePromise } from './maybe-promise.ts';
import { refuseUnknownNames } from './near-names.ts';
import { type PathPart, type PositionSchema, toPathPart } from './path-part.ts';
import type { BodyStream } from './request/body-stream.ts';
import { closed, isOfFields, isOfObjects, noScope, unfold } from './schema/json-schema.ts';
import { isStandard, type StandardObject, toJsonSchema } from './standard-schema.ts';

/** Plain JSON Schema. Not imported, so that the types of the package need no more files. */
type Plain = Readonly<Record<string, unknown>>;

type PathEntry = PositionSchema | PathPart;

export interface OpSpec {
  /** Positional parameters in order; optional ones last. */
  readonly path?: readonly PathEntry[];
  /** Schema of each further path part, and of each item of a JSON array as body. */
  readonly rest?: PositionSchema;
  /** Keyword arguments, described as query parameters. */
  readonly query?: Type.TObject | StandardObject;
  /** Keyword arguments, described as fields of the body. Both kinds can be in the query or the body; the body takes
   * precedence. `additionalProperties: true`, or a schema, accepts any further keyword. Any other schema describes the
   * whole body: if all of its values are objects (alternatives, an intersection, a recursive schema), its fields are
   * keyword arguments; otherwise, as for a list, the body is the method's argument after the fields. */
  readonly body?: Type.TSchema | StandardObject;
  /** The body is not parsed, whatever its type: the method receives its bytes as sent, such as for a signature, as the
   * argument after the fields, a `Uint8Array` of at most `limits.bodyBytes`. Not with `body`. */
  readonly raw?: true;
  /** The body is not read before the method is called: the method receives it as the argument after the fields, a
   * `BodyStream` of at most `limits.bodyBytes`, which arrives as fast as the method reads. Not with `body` or `raw`. */
  readonly stream?: true;
  /** Aliases of keywords, by the parameter's name. */
  readonly aliases?: Readonly<Record<string, readonly string[]>>;
  /** Schemas by status; used in descriptions, and by `filter`. */
  readonly returns?: Readonly<Record<number, Type.TSchema | StandardObject>>;
  /** Only the fields that `returns` declares for its status are sent, at any depth; a status without a declaration is
   * answered 500. */
  readonly filter?: true;
  /** The media type of the result, unless the method sets another; default JSON. */
  readonly produces?: string;
  /** The method's own error statuses, with a schema if the body has more than the usual members of a problem. Used in
   * descriptions. */
  readonly failures?: Readonly<Record<number, Type.TSchema | StandardObject | undefined>>;
  /** Request headers that the method reads. Used in descriptions. */
  readonly headers?: Type.TObject;
  /** Other kinds of body, by media type. Used in descriptions. */
  readonly otherBodies?: Readonly<Record<string, Type.TSchema>>;
  /** Descriptions that apply when fewer positional parameters are passed, by their number. */
  readonly shorter?: Readonly<Record<number, Pick<OpSpec, 'summary' | 'description' | 'returns'>>>;
  /** Guards that run after those of the class, before the body is read, in addition to those that the method has in
   * base classes. */
  readonly guard?: Guard | readonly Guard[];
  /** Open to every caller: authenticating guards of the class, its bases, folders and the application do not run.
   * If a subclass inherits this method and has a guard of its own, that guard still applies. */
  readonly public?: boolean;
  /** The answer to a GET has an `ETag` of its body, or the one that the method sets, and conditional requests are
   * answered (304, 412). Its `Cache-Control` is `private, no-cache` if the method sets none. On any other method: the
   * conditions are checked before it runs, against the current tag of GET on the same path; GET is called for that. */
  readonly etag?: boolean;
  /** Limits for this method only; they override those of folders and the application. */
  readonly limits?: Partial<MethodLimits>;
  readonly summary?: string;
  readonly description?: string;
}

const brand: unique symbol = Symbol('op');

/** The declaration of a method; the type parameter `Spec` holds its types. */
export interface Op<Spec extends OpSpec = OpSpec> {
  readonly [brand]: true;
  readonly spec: Spec;
  readonly path: readonly PathPart[];
  /** The same declaration as plain JSON Schema, whose objects are closed unless they declare otherwise. */
  readonly fields: { readonly query?: Plain; readonly body?: Plain };
  /** The schema of a body that is more than its fields. */
  readonly bodyValue: BodyValue | undefined;
  /** Fields whose schemas check values themselves. */
  readonly standard: readonly StandardFields[];
  /** The method, if it was passed together with its declaration. */
  readonly method: AnyMethod | undefined;
}

export interface BodyValue {
  readonly schema: Plain;
  readonly standard: StandardObject | undefined;
  /** The body is one argument, since not all of its values are objects. */
  readonly isBehind: boolean;
}

export interface StandardFields {
  readonly in: 'query' | 'body';
  readonly schema: StandardObject;
}

type AnyMethod = (...args: never) => unknown;

/** A declaration together with its method. */
export interface OpMethod<Spec extends OpSpec, Returned> extends Op<Spec> {
  readonly method: (...args: never) => Returned;
}

/** A method as operators and servers see it, without the internals of the table. */
export interface ServedMethod {
  /** The path without positional parameters, except folders that represent one: `/`, `/ops/drain`,
   * `/notes/[id]/comments`. */
  readonly path: string;
  /** Names of the positional parameters, consistent across the methods of a class. */
  readonly parameters: readonly string[];
  readonly route: {
    readonly verb: string;
    /** `<module>:<Class>.<method>`, human-readable. */
    readonly name: string;
    readonly op: Op | undefined;
    readonly limits: Limits;
  };
}

/** `static GET = op({ path: [optional(ID)], query: Type.Object({ limit: Type.Integer() }) })` declares the method of
 * the same name. With a function as well, `op` returns the method: its arguments, and its result if `returns` declares
 * it, have the declared types; `this` must be the controller, as the function declares:
 * `function (this: Notes, fields, id)`. A declaration that contradicts itself does not compile. */
export function op<const Spec extends OpSpec>(spec: Spec & Sound<Spec>): Op<Spec>;
export function op<
  const Spec extends OpSpec,
  Self extends Controller,
  Returned extends Result<Spec>,
>(
  spec: Spec & Sound<Spec>,
  method: (this: Self, ...args: SpecArgs<Spec>) => Returned,
): OpMethod<Spec, Returned>;
export function op<const Spec extends OpSpec>(given: Spec, method?: AnyMethod): Op<Spec> {
  const { returns, failures } = given;
  const spec: Spec = {
    ...given,
    ...(returns && { returns: describeAll(returns) }),
    ...(failures && { failures: describeAll(failures) }),
  };
  refuseUnknownNames('op', spec, specNames);
  refuseWrongLimits('op: limits', spec.limits, methodLimits);
  const path = (spec.path ?? []).map((entry) => {
    const part = toPathPart(entry);
    return { ...part, schema: closed(part.schema) };
  });
  const fields: { query?: Plain; body?: Plain } = {};
  const standard: StandardFields[] = [];
  let bodyValue: BodyValue | undefined;
  for (const where of ['query', 'body'] as const) {
    const declared = spec[where];
    if (declared === undefined) continue;
    const own = isStandard(declared) ? declared : undefined;
    const schema = unfold(own ? toJsonSchema(own, 'input') : closed(declared as Plain));
    if (isOfFields(schema)) {
      fields[where] = schema;
      if (own !== undefined) standard.push({ in: where, schema: own });
    } else if (where === 'body') {
      bodyValue = { schema, standard: own, isBehind: !isOfObjects(schema, noScope) };
    } else {
      fields.query = schema;
    }
  }
  return Object.freeze({ [brand]: true as const, spec, path, fields, bodyValue, standard, method });
}

function describeAll(schemas: NonNullable<OpSpec['failures']>): Record<number, object | undefined> {
  return Object.fromEntries(
    Object.entries(schemas).map(([status, schema]) => [
      status,
      isStandard(schema) ? toJsonSchema(schema, 'output') : schema,
    ]),
  );
}

/** The compiler accepts unknown names, and with a misspelt name a guard would never run. */
const specNames: readonly (keyof OpSpec)[] = [
  ...(['path', 'rest', 'query', 'body', 'raw', 'stream', 'aliases', 'returns', 'filter'] as const),
  ...(['produces', 'failures', 'headers', 'otherBodies', 'shorter', 'guard', 'public'] as const),
  ...(['etag', 'limits', 'summary', 'description'] as const),
];

export function isOp(value: unknown): value is Op {
  return typeof value === 'object' && value !== null && brand in value;
}

/** What callers send as a value of the schema, or what the method receives. A schema whose type has its result alone is
 * sent what it makes. */
export type ValueOfSchema<Schema, Side extends 'sent' | 'received' = 'received'> =
  Schema extends StandardObject<infer Sent, infer Received>
    ? { sent: unknown extends Sent ? Received : Sent; received: Received }[Side]
    : Schema extends Type.TSchema
      ? Type.Static<Schema>
      : unknown;

/** Whether the body is one argument. */
export type IsBehind<Value> = [Value] extends [object]
  ? [Value] extends [readonly unknown[]]
    ? true
    : false
  : true;

type FieldsOf<Schema> = Schema extends undefined
  ? unknown
  : IsBehind<ValueOfSchema<Schema, 'sent'>> extends true
    ? unknown
    : ValueOfSchema<Schema>;

type BodyArg<Spec> = Spec extends { body: infer Body }
  ? IsBehind<ValueOfSchema<Body, 'sent'>> extends true
    ? [body: NoInfer<ValueOfSchema<Body>>]
    : []
  : [];

/** The type of the keyword object for a method with this declaration. */
export type Fields<Declared extends Op> =
  Declared extends Op<infer Spec>
    ? FieldsOf<Spec extends { query: infer Query } ? Query : undefined> &
        FieldsOf<Spec extends { body: infer Body } ? Body : undefined>
    : never;

type Positionals<Path> = Path extends readonly [infer Entry, ...infer More]
  ? Entry extends PathPart<infer Schema, infer Optional>
    ? Optional extends true
      ? [part?: NoInfer<Type.Static<Schema>>, ...Positionals<More>]
      : [part: NoInfer<Type.Static<Schema>>, ...Positionals<More>]
    : [part: Entry extends Type.TSchema ? NoInfer<Type.Static<Entry>> : never, ...Positionals<More>]
  : [];

/** The types of the arguments after the fields. */
export type ArgsBehind<Spec, Raw, Stream, Body extends readonly unknown[]> = [
  ...(Spec extends { raw: true } ? [body: Raw] : []),
  ...(Spec extends { stream: true } ? [body: Stream] : []),
  ...Body,
  ...Positionals<Spec extends { path: infer Path } ? Path : []>,
  ...(Spec extends { rest: infer Rest extends Type.TSchema } ? NoInfer<Type.Static<Rest>>[] : []),
];

/** The types of all arguments of a method with this declaration, in order. */
export type Args<Declared extends Op> = Declared extends Op<infer Spec> ? SpecArgs<Spec> : never;

/** Types are only inferred from the declaration, never from the function: a compiler that also infers from the function
 * tries all kinds of schemas, which takes seconds. */
type SpecArgs<Spec extends OpSpec> = [
  fields: NoInfer<Fields<Op<Spec>>>,
  ...ArgsBehind<Spec, Uint8Array, BodyStream, BodyArg<Spec>>,
];

/** A member that contradicts another has the reason as its type. */
type Sound<Spec> = (Spec extends { raw: true } | { stream: true }
  ? { readonly body?: 'the body is not parsed' }
  : unknown) &
  (Spec extends { raw: true; stream: true } ? { readonly raw: 'the body is streamed' } : unknown) &
  (Spec extends { filter: true } ? { readonly returns: object } : unknown) &
  (Spec extends { path: infer Path } ? InOrder<Path> : unknown);

type InOrder<Path, IsBehindOptional = false> = Path extends readonly [infer Entry, ...infer More]
  ? Entry extends PathPart<Type.TSchema, true>
    ? InOrder<More, true>
    : IsBehindOptional extends true
      ? { readonly path: 'a required position follows an optional one' }
      : InOrder<More>
  : unknown;

/** A method that declares successful statuses returns one of their results, or a `Response`; a method of events returns
 * a generator of them. */
type Result<Spec> = Spec extends { produces: 'text/event-stream' }
  ? MaybePromise<AsyncGenerator | Response | undefined>
  : Spec extends { returns: infer Returns }
    ? MaybePromise<Success<Returns> | Response>
    : unknown;

/** The results of all statuses: the type does not depend on which status a method sets. */
type Success<Returns> = {
  [Status in keyof Returns]:
    | ValueOfSchema<Returns[Status]>
    | (Status extends 204 ? undefined : never);
}[keyof Returns];
