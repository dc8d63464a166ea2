// Binds a request to the arguments of a method, by the method's declaration, which is compiled at start.
//
// The first argument is an object of fields, the keywords: of the query or the body. A part of the path is a position,
// and an argument of its own behind the fields: `GET({ size }, id)` is called with `({ size: 2 }, 7)` for
// `/zones/7?size=2`, or for `/zones?id=7&size=2` if the position can be passed by keyword. A body that is not an object
// of fields is an argument between the fields and the positions.
//
// A wrong position returns 404, since the path then names nothing; wrong keywords return 400, with all problems at once
// (behaviour: positions-404-keywords-400).

import { BadRequest, type FieldProblem, notFound, type SchemaProblem } from '../errors.ts';
import type { Limits } from '../limits.ts';
import type { BodyValue, Op } from '../op.ts';
import { type BodyArguments, noBody, type Origin } from '../request/body.ts';
import { createKeywords, type Keywords, noKeywords, type QueryNames } from '../request/target.ts';
import { closed, isPlain, type Plain, withListBound } from '../schema/json-schema.ts';
import { validate } from '../standard-schema.ts';
import type { CastValue } from './cast.ts';
import { type Parameter, toKeywords, toParameter } from './parameter.ts';
import type { SchemaCompiler } from './schema.ts';

export type Binder = ReturnType<typeof compileBinder>;

export interface BinderOptions {
  readonly compiler: SchemaCompiler;
  readonly limits: Limits;
  /** The handling of undeclared names in the query; `unread`: refused if any name is declared, otherwise ignored with
   * the whole query. */
  readonly unknownQuery: 'refuse' | 'ignore' | 'unread';
}

/** Maximum number of problems in one answer. */
const maxProblems = 20;

/** Keywords by name, and how those of the body are converted. The body takes precedence. */
interface Given {
  readonly query: Readonly<Keywords>;
  readonly body: Readonly<Keywords>;
  readonly from: Origin;
}

/** Throws an Error that names the invalid part of the declaration. The functions behind its result are closures: as
 * methods of a class they cost a request with a body a tenth more. */
export function compileBinder(declared: Op | undefined, options: BinderOptions) {
  const { path, rest, bodyValue, keywords, known, others, foreign, acceptsUnparsed } =
    compileDeclaration(declared, options);
  const { unknownQuery } = options;
  const { listItems } = options.limits;
  // A position that cannot be passed by keyword must be present, with all before it.
  const minParts =
    path.findLastIndex((entry) => !entry.optional && entry.keyword === undefined) + 1;
  const maxParts = rest === undefined ? path.length : Number.POSITIVE_INFINITY;
  const acceptsKeywords = known.size > 0 || others.body !== undefined;
  const acceptsBody =
    acceptsUnparsed || rest !== undefined || bodyValue !== undefined || acceptsKeywords;
  const acceptsNothing = !acceptsBody && path.length === 0;
  const ignoresUnknown = unknownQuery === 'ignore';

  return {
    /** Whether the method accepts this many path parts, if its keywords are valid. */
    fits: (partCount: number) => partCount >= minParts && partCount <= maxParts,
    /** How its query is read, by the names of its keywords and their aliases. */
    query: toQueryNames(
      [...keywords, ...path.map((entry) => ({ ...entry, names: [entry.keyword ?? ''] }))],
      known,
      others.query,
    ),
    /** Whether its query is read; an undeclared query is ignored (behaviour: unasked-queries). */
    readsQuery:
      unknownQuery === 'refuse' || declared?.fields.query !== undefined || acceptsKeywords,
    /** Whether any argument of the method can come from a body. */
    acceptsBody,
    /** Throws 404 if there are more parts than the method accepts; called before the body is read. */
    refuseSurplus(partCount: number): void {
      if (partCount > maxParts) throw notFound();
    },
    /** Returns the arguments in order. Throws 404 or 400. */
    bind(parts: readonly string[], query: Readonly<Keywords>, body: BodyArguments): unknown[] {
      if (acceptsNothing && query === noKeywords && body === noBody) return [createKeywords()];
      const { value: sent, from } = body;
      const isOfFields = isPlain(sent);
      const items = isOfFields || sent === undefined ? [] : [sent].flat();
      const acceptsItems = bodyValue === undefined ? rest !== undefined : bodyValue.isBehind;
      if (items.length > 0 && !acceptsItems) {
        throw new BadRequest('the body is not an object of fields');
      }
      const problems: FieldProblem[] = [];
      const fieldsOfBody = bodyValue === undefined && isOfFields ? sent : noKeywords;
      const given: Given = { query, body: fieldsOfBody, from };
      // The fields follow at the end: the problems of positions are reported first.
      const args: unknown[] = [undefined];
      if (acceptsUnparsed) args.push(body.unparsed);
      const value = bodyValue && bindBodyValue(bodyValue, body);
      if (bodyValue?.isBehind) args.push(value);
      bindPath(args, parts, given, problems);
      bindRest(args, parts, bodyValue === undefined ? items : [], from, problems);
      const fields = bindKeywords(given, problems);
      args[0] = foreign.length > 0 ? applyForeign(fields, given, problems) : fields;
      refuse(problems);
      if (bodyValue?.isBehind === false) args[0] = join(fields, value);
      return args;
    },
  };

  /** A body that is more than its fields; its problems are thrown. */
  function bindBodyValue(
    { standard, ...parameter }: Parameter & Pick<BodyValue, 'standard'>,
    { from, value: sent }: BodyArguments,
  ): unknown {
    if (sent === undefined) throw new BadRequest('the body is missing');
    const problems: FieldProblem[] = [];
    const source = { in: 'body', name: '' } as const;
    // JSON values have types of their own.
    const cast: CastValue = from === 'json' ? (value) => ({ ok: true, value }) : parameter.cast;
    let value = readValue({ ...parameter, cast }, sent, from, source, problems);
    if (standard !== undefined && problems.length === 0) {
      const result = validate(standard, value);
      if ('value' in result) value = result.value;
      else problems.push(...result.issues.map((issue) => toFieldProblem(source, issue)));
    }
    refuse(problems);
    return value;
  }

  /** A position comes from the path, or, if the path is too short, from a keyword of its name. */
  function bindPath(
    args: unknown[],
    parts: readonly string[],
    given: Given,
    problems: FieldProblem[],
  ): void {
    for (let index = 0; index < path.length; index += 1) {
      const entry = path[index] as (typeof path)[number];
      const text = parts[index];
      const { keyword } = entry;
      const isNamed = keyword !== undefined && isGiven(keyword, given);
      if (text !== undefined) {
        if (isNamed) {
          const reason = 'is given in the path already';
          problems.push({ in: sourceOf(keyword, given), name: keyword, reason });
        }
        args.push(readPart(entry, text));
      } else if (isNamed) {
        args.push(readKeyword(entry, keyword, given, problems));
      } else if (entry.optional) {
        args.push(entry.makeDefault?.());
      } else {
        throw notFound();
      }
    }
  }

  /** Further parts of the path, and the items of a list as body, are further positions. */
  function bindRest(
    args: unknown[],
    parts: readonly string[],
    items: readonly unknown[],
    from: Origin,
    problems: FieldProblem[],
  ): void {
    if (rest === undefined) return;
    for (const text of parts.slice(path.length)) args.push(readPart(rest, text));
    if (items.length > listItems) {
      throw new BadRequest(`the body holds a list of more than ${listItems} items`);
    }
    items.forEach((value, index) => {
      const source = { in: 'body', name: String(index) } as const;
      args.push(readValue(rest, value, from, source, problems));
    });
  }

  /** All fields of the first argument: those declared, with defaults for those that are missing, and further ones. */
  function bindKeywords(given: Given, problems: FieldProblem[]): Keywords {
    const fields = createKeywords();
    const isSent = (name: string) => isGiven(name, given);
    for (const keyword of keywords) {
      const { names, makeDefault } = keyword;
      const [name] = names;
      const key = names.find(isSent);
      const other = names.length > 1 ? names.findLast(isSent) : key;
      if (other !== undefined && key !== other) {
        problems.push({ in: sourceOf(other, given), name, reason: 'is given under two names' });
      }
      if (key !== undefined) fields[name] = readKeyword(keyword, key, given, problems);
      else if (keyword.required) problems.push({ in: keyword.in, name, reason: 'is missing' });
      else if (makeDefault !== undefined) fields[name] = makeDefault();
    }
    for (const name of keysOf(given)) {
      if (known.has(name)) continue;
      const source = sourceOf(name, given);
      const other = others[source];
      if (other !== undefined) fields[name] = readKeyword(other, name, given, problems);
      else if (ignoresUnknown && source === 'query') continue;
      else problems.push({ in: source, name, reason: 'is unknown' });
    }
    return fields;
  }

  /** What the schemas of other libraries make of their fields. A field that already has a problem is not reported
   * twice. */
  function applyForeign(fields: Keywords, { body }: Given, problems: FieldProblem[]): unknown {
    const wrong = new Set(problems.map(({ name }) => fieldOf(name)));
    let all: unknown = fields;
    for (const { in: where, names, additionalProperties, schema } of foreign) {
      const isOther = (name: string) =>
        !known.has(name) &&
        (additionalProperties ?? (where === 'body' && Object.hasOwn(body, name))) !== false;
      const own = Object.entries(fields).filter(([name]) => names.includes(name) || isOther(name));
      const result = validate(schema, Object.fromEntries(own));
      if ('value' in result) {
        for (const [name] of own) delete fields[name];
        all = join(fields, result.value);
      } else {
        const found = result.issues.map((issue) => toFieldProblem({ in: where, name: '' }, issue));
        problems.push(...found.filter(({ name }) => !wrong.has(fieldOf(name))));
      }
    }
    return all;
  }

  /** Reads a keyword that is present. */
  function readKeyword(
    parameter: Parameter,
    name: string,
    { query, body, from }: Given,
    problems: FieldProblem[],
  ): unknown {
    if (!Object.hasOwn(body, name)) {
      return readValue(parameter, query[name], 'text', { in: 'query', name }, problems);
    }
    return readValue(parameter, body[name], from, { in: 'body', name }, problems);
  }

  /** A path that cannot be parsed matches nothing. */
  function readPart(parameter: Parameter, text: string): unknown {
    const cast = parameter.cast(text, 'text');
    if (!cast.ok || parameter.check(cast.value).length > 0) throw notFound();
    return cast.value;
  }
}

function compileDeclaration(op: Op | undefined, { compiler, limits }: BinderOptions) {
  const bounded = (schema: object) => withListBound(schema as Plain, limits.listItems);
  const restSchema = op?.spec.rest;
  return {
    path: (op?.path ?? []).map((entry) => ({
      ...toParameter(bounded(entry.schema), compiler),
      optional: entry.optional,
      /** The name under which a keyword can replace the part of the path. */
      keyword: entry.byKeyword ? entry.name : undefined,
    })),
    rest: restSchema && toParameter(bounded(closed(restSchema)), compiler),
    /** A body that is more than its fields. */
    bodyValue: op?.bodyValue && {
      ...op.bodyValue,
      ...toParameter(bounded(op.bodyValue.schema), compiler, {
        isForeign: op.bodyValue.standard !== undefined,
      }),
    },
    ...toKeywords(op, bounded, compiler),
    /** The fields that a schema of another library checks. */
    foreign: (op?.standard ?? []).map((one) => {
      const { properties, additionalProperties } = op?.fields[one.in] ?? {};
      return { ...one, names: Object.keys(Object(properties)), additionalProperties };
    }),
    /** Whether an argument is the body as it was sent: its bytes, or a stream. */
    acceptsUnparsed: op?.spec.raw === true || op?.spec.stream === true,
  };
}

/** A schema can make another thing of its fields, such as an instance of a class or a list, which gets the others. */
function join(fields: Keywords, value: unknown): unknown {
  if (Object(value) !== value) return value;
  const isOfFields = [null, Object.prototype].includes(Object.getPrototypeOf(value));
  return isOfFields ? Object.assign(fields, value) : Object.assign(Object(value), fields);
}

function refuse(problems: readonly FieldProblem[]): void {
  if (problems.length === 0) return;
  throw new BadRequest('the arguments are not valid', problems.slice(0, maxProblems));
}

function toQueryNames(
  parameters: readonly (Parameter & { readonly names: readonly string[] })[],
  known: ReadonlySet<string>,
  others: Parameter | undefined,
): QueryNames {
  const namesOf = (has: (parameter: Parameter) => boolean) =>
    new Set(parameters.flatMap((parameter) => (has(parameter) ? parameter.names : [])));
  const flags = namesOf(isFlag);
  const areFlags = others !== undefined && isFlag(others);
  return {
    expected: [...known],
    commas: namesOf(({ schema }) => schema['explode'] === false),
    isFlag: (name) => flags.has(name) || (areFlags && !known.has(name)),
  };
}

/** Whether the value, or one of its list, can be true. */
function isFlag({ cast }: Parameter): boolean {
  const result = cast('true', 'text');
  return result.ok && [result.value].flat()[0] === true;
}

function readValue(
  { cast, check, complete }: Parameter,
  value: unknown,
  from: Origin,
  source: FieldSource,
  problems: FieldProblem[],
): unknown {
  const result = cast(value, from);
  if (!result.ok) {
    problems.push(toFieldProblem(source, result));
    return undefined;
  }
  const completed = complete === undefined ? result.value : complete(result.value);
  for (const problem of check(completed)) problems.push(toFieldProblem(source, problem));
  return completed;
}

type FieldSource = Pick<FieldProblem, 'in' | 'name'>;
type Located = Partial<SchemaProblem> & Pick<SchemaProblem, 'reason'>;

/** A value inside a whole body is named like a field. */
function toFieldProblem(source: FieldSource, { at = '', reason }: Located): FieldProblem {
  return { in: source.in, name: source.name === '' ? at.slice(1) : `${source.name}${at}`, reason };
}

/** The keyword that the problem concerns. */
function fieldOf(name: string): string {
  return name.split('/', 1)[0] ?? '';
}

/** Reads own names only: a JSON body must not reach those that every object inherits. */
function isGiven(name: string, { query, body }: Given): boolean {
  return Object.hasOwn(body, name) || Object.hasOwn(query, name);
}

function sourceOf(name: string, { body }: Given): 'query' | 'body' {
  return Object.hasOwn(body, name) ? 'body' : 'query';
}

/** Each name once. */
function keysOf({ query, body }: Given): readonly string[] {
  if (query === noKeywords) return Object.keys(body);
  const keys = Object.keys(query);
  if (body === noKeywords) return keys;
  return [...new Set([...keys, ...Object.keys(body)])];
}
