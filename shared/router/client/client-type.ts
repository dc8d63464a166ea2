// The type of a client, derived only from the types of the controllers' modules: callers pass what a method declares,
// and receive what it returns, in the form that it has after JSON. client.ts makes the calls.
import type Type from 'typebox';
import type { FieldProblem } from '../errors.ts';
import type { ServerEvent } from '../live/server-event.ts';
import type { ArgsBehind, IsBehind, Op, OpMethod, OpSpec, ValueOfSchema } from '../op.ts';

/** The type parameter has the types of modules by their paths (dots between parts, empty for the root module), such as
 * `{ '': typeof root; 'limits.zones': typeof zones }`: `Client<Modules>['limits']['zones']['BurstPolicy']['GET']` is a
 * function of the method's arguments. */
export type Client<Modules, Path extends string = ''> = (Path extends keyof Modules
  ? ModuleClient<Modules[Path]>
  : unknown) & {
  readonly [Key in keyof Modules & string as PartBelow<Key, Path>]: Client<
    Modules,
    Path extends '' ? PartBelow<Key, Path> : `${Path}.${PartBelow<Key, Path>}`
  >;
};

/** The outcome of a call, which never rejects because of the server or the network. */
export type Answer<Value, Declared = unknown> = Success<Value> | DeclaredFailure<Declared>;

export interface Success<Value> {
  readonly ok: true;
  readonly status: number;
  readonly headers: Headers;
  readonly value: Value;
}

export interface Failure<Status extends number = FailureStatus, Body = Problem> {
  readonly ok: false;
  /** 0 if no answer arrived: no connection, a timeout, or an interrupted answer. */
  readonly status: Status;
  readonly headers: Headers;
  readonly error: Body;
}

/** The `application/problem+json` with which the router answers errors. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  readonly requestId?: string;
  /** The problems of the arguments. */
  readonly errors?: readonly FieldProblem[];
}

// biome-ignore format: one line for a class of statuses
export type FailureStatus = 0
  | 400 | 401 | 402 | 403 | 404 | 405 | 406 | 407 | 408 | 409 | 410 | 411 | 412 | 413 | 414 | 415 | 416 | 417 | 421
  | 422 | 423 | 424 | 425 | 426 | 428 | 429 | 431 | 451
  | 500 | 501 | 502 | 503 | 504 | 505 | 506 | 507 | 508 | 511;

/** The next part of a module path below another path: of `limits.zones` below `limits` it is `zones`. */
type PartBelow<Key extends string, Path extends string> = FirstPart<
  Path extends '' ? Key : Key extends `${Path}.${infer More}` ? More : ''
>;
type FirstPart<Text extends string> = Text extends ''
  ? never
  : Text extends `${infer First}.${string}`
    ? First
    : Text;

type AnyClass = abstract new (...args: never) => unknown;

/** The class Default is served at the path of its module. */
type ModuleClient<Module> = (Module extends { readonly Default: infer Default extends AnyClass }
  ? ClassClient<Default>
  : unknown) & {
  readonly [Name in RoutedName<Module, Exclude<keyof Module, 'Default'>>]: NestedClient<
    Module[Name]
  >;
};

/** Calls to a class, by method; `static Inner` of it is one member, with its own calls. */
type NestedClient<Class> = Class extends AnyClass ? ClassClient<Class> : never;

/** Methods of the class, then methods that were passed to op(), then nested classes. */
type ClassClient<Class extends AnyClass> = {
  readonly [Name in keyof InstanceType<Class> as CallName<Name, keyof InstanceType<Class>>]: Call<
    Class,
    Name
  >;
} & {
  readonly [Name in keyof Class as Class[Name] extends OpMethod<OpSpec, unknown>
    ? CallName<Name, keyof Class>
    : never]: DeclaredCall<Class[Name], Name>;
} & { readonly [Name in RoutedName<Class, keyof Class>]: NestedClient<Class[Name]> };

/** The result of a method that was passed together with its declaration. */
type DeclaredCall<Declared, Name> =
  Declared extends OpMethod<infer Spec, infer Returned>
    ? (...args: CallArgs<Spec>) => Outcome<Name, Returned, Spec>
    : never;

/** A class with CONNECT is a WebSocket, whose messages are JSON. */
type Outcome<Name, Returned, Spec = unknown> = Name extends 'CONNECT'
  ? WebSocket
  : Promise<Answer<Arriving<Awaited<Returned>, Spec>, FailuresOf<Spec>>>;

/** Not the whole declaration, which a compiler would print in its errors. */
type FailuresOf<Spec> = Spec extends { failures: infer Failures }
  ? { failures: Failures }
  : unknown;

/** Names of classes that are not private. A private class whose subclasses can declare otherwise has the type
 * `boolean`, and these subclasses have `false`. */
type RoutedName<Holder, Name extends keyof Holder> = Name extends
  | `_${string}`
  | `${string}Controller`
  | 'prototype'
  ? never
  : Holder[Name] extends AnyClass
    ? Holder[Name] extends { readonly private: boolean }
      ? Holder[Name] extends { readonly private: false }
        ? Name
        : never
      : Name
    : never;

type AnyVerb = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
type CalledVerb = AnyVerb | 'HEAD' | 'OPTIONS';

/** The names under which a method is called: `POST_reset` by its own. ANY is called with the verbs that the class does
 * not have: `ANY` beside `GET` is `POST`, `PUT`, `PATCH` and `DELETE`. */
type CallName<Name, Names> = Name extends 'ANY'
  ? Exclude<AnyVerb, Names>
  : Name extends `ANY_${infer Suffix}`
    ? Exclude<`${AnyVerb}_${Suffix}`, Names>
    : Name extends CalledVerb | `${CalledVerb}_${string}` | 'CONNECT'
      ? Name
      : never;

/** The call of a method, with the arguments of its static op(); without one only a POST has arguments. */
type Call<
  Class extends AnyClass,
  Name extends keyof InstanceType<Class>,
> = InstanceType<Class>[Name] extends (...args: infer Arguments) => infer Returned
  ? Name extends keyof Class
    ? Class[Name] extends Op<infer Spec>
      ? (...args: CallArgs<Spec>) => Outcome<Name, Returned, Spec>
      : never
    : (...args: Name extends 'POST' | `POST_${string}` ? Arguments : []) => Outcome<Name, Returned>
  : never;

/** `[fields, id]` of `op({ query, path: [Type.Integer()] })`; the fields can be omitted if nothing is required. */
type CallArgs<Spec extends OpSpec> =
  SentBehind<Spec> extends infer More extends unknown[]
    ? [object, []] extends [SentFields<Spec>, More]
      ? [fields?: SentFields<Spec>, ...More]
      : [fields: SentFields<Spec>, ...More]
    : never;

/** Fields of the query and of the body are one object: `{ size, name }` of `query: { size }` and `body: { name }`. */
type SentFields<Spec> = Flat<
  Sent<Spec extends { query: infer Query } ? Query : undefined> &
    Sent<Spec extends { body: infer Body } ? Body : undefined>
>;

/** A field whose type includes a default, as of `Type.With(schema, { default })`, is optional. */
type Sent<Schema> =
  Schema extends Type.TObject<infer Fields>
    ? {
        readonly [Name in keyof Fields as MayBeOmitted<Fields[Name]> extends true
          ? never
          : Name]: Type.Static<Fields[Name]>;
      } & {
        readonly [Name in keyof Fields as MayBeOmitted<Fields[Name]> extends true ? Name : never]?:
          | Type.Static<Fields[Name]>
          | undefined;
      }
    : IsBehind<ValueOfSchema<Schema, 'sent'>> extends true
      ? unknown
      : ValueOfSchema<Schema, 'sent'>;

/** A body that is one argument: `[['a', 'b']]` of `body: Type.Array(Type.String())`; otherwise none. */
type SentBody<Spec> = Spec extends { body: infer Body }
  ? IsBehind<ValueOfSchema<Body, 'sent'>> extends true
    ? // A value that is not a list looks like a position.
      [body: ValueOfSchema<Body, 'sent'> & readonly unknown[]]
    : []
  : [];

/** Whether a caller can omit a field: `Type.Optional(...)`, or a schema with a default. A schema whose type has any name
 * declares nothing about its default. */
type MayBeOmitted<Schema> = Schema extends { '~optional': true }
  ? true
  : string extends keyof Schema
    ? false
    : 'default' extends keyof Schema
      ? true
      : false;

/** What a caller passes after the fields: a body, positions, and the rest. */
type SentBehind<Spec> = ArgsBehind<
  Spec,
  Blob | Uint8Array<ArrayBuffer>,
  Blob | FormData | Uint8Array<ArrayBuffer>,
  SentBody<Spec>
>;

/** Of `failures: { 409: schema }`: a failure 409 with that body, or any other status with a problem. */
type DeclaredFailure<Spec> = Spec extends { failures: infer Failures }
  ?
      | {
          [Status in keyof Failures & number]: Failure<
            Status,
            Failures[Status] extends object ? ValueOfSchema<Failures[Status]> : Problem
          >;
        }[keyof Failures & number]
      | Failure<Exclude<FailureStatus, keyof Failures>>
  : Failure;

/** Values that encode.ts sends unchanged; a text if its type is `text/*`. */
type Bytes =
  | ArrayBuffer
  | ArrayBufferView
  | Blob
  | ReadableStream
  | { pipe(...args: never): unknown; destroy(...args: never): unknown }
  | { readonly fd: number; createReadStream(...args: never): unknown };

/** What a caller receives of a result: `string` of a Date, `Blob | string` of bytes, a list of what a generator yields. */
type Arriving<Value, Spec = unknown> =
  IsAny<Value> extends true
    ? unknown
    : Value extends undefined | null
      ? undefined
      : Value extends Response
        ? unknown
        : Value extends Bytes
          ? Blob | string
          : Value extends AsyncIterable<infer Item> | Generator<infer Item>
            ? Spec extends { produces: 'text/event-stream' }
              ? AsyncIterable<Json<EventData<Item>>>
              : Json<Item>[]
            : Json<Value>;

/** A client receives only the data of an event with a name or an id. */
type EventData<Item> = Item extends ServerEvent<infer Data> ? Data : Item;

type IsAny<Value> = 0 extends 1 & Value ? true : false;

/** A value after a round trip through JSON. */
export type Json<Value> =
  IsAny<Value> extends true
    ? unknown
    : Value extends string | number | boolean | null | undefined
      ? Value
      : Value extends { toJSON(...args: never): infer Text }
        ? Json<Text>
        : Value extends readonly unknown[]
          ? { [Index in keyof Value]: JsonItem<Value[Index]> }
          : Value extends object
            ? {
                [Name in keyof Value as Value[Name] extends AnyFunction ? never : Name]: Json<
                  Value[Name]
                >;
              }
            : unknown;

/** What JSON does not have is null in a list. */
type JsonItem<Item> = Item extends undefined | AnyFunction ? null : Json<Item>;

type AnyFunction = (...args: never) => unknown;

/** One object in place of an intersection, for readers of editors and errors. */
type Flat<Value> = { [Name in keyof Value]: Value[Name] };
