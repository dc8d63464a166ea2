// Binds a request's parts and keywords to the arguments of a method: an error of positions is 404,
// an error of keywords is 400 with its problems at once (behaviour: positions-404-keywords-400).
// Declarations are compiled at start.

import { close } from '../closed-schema.ts';
import { BadRequest, type FieldProblem, notFound } from '../errors.ts';
import type { Limits } from '../limits.ts';
import type { Op } from '../op.ts';
import { type BodyArguments, noBody } from '../request/body.ts';
import { createKeywords, type Keywords, noKeywords } from '../request/keywords.ts';
import { validateFields } from '../standard-schema.ts';
import type { CastOptions } from './cast.ts';
import { toDefault } from './declared-schema.ts';
import { type Parameter, toKeywords, toParameter } from './parameter.ts';
import type { SchemaCompiler } from './schema.ts';

export interface Binder {
  /** Whether the method takes that many path parts, if its keywords are right. */
  fits(partCount: number): boolean;
  /** Whether any argument of the method can come from a body. */
  readonly takesBody: boolean;
  /** The names of the keywords that it takes, with their aliases. */
  readonly names: readonly string[];
  /** Whether its query is read; one that no method asked for is ignored (behaviour: unasked-queries). */
  readonly readsQuery: boolean;
  /** Throws 404 where there are more parts than the method takes; called before the body is read. */
  refuseSurplus(partCount: number): void;
  /** The arguments in order. Throws 404 or 400. */
  bind(parts: readonly string[], query: Readonly<Keywords>, body: BodyArguments): unknown[];
}

/** Keywords by name, and how those of the body are converted. The body wins. */
interface Given {
  readonly query: Readonly<Keywords>;
  readonly body: Readonly<Keywords>;
  readonly ofBody: CastOptions;
}

export interface BinderOptions {
  readonly compiler: SchemaCompiler;
  readonly limits: Limits;
  /** What is done with a name of the query that is not declared; `unread`: refused where any name is declared, ignored
   * with the whole query where none is. */
  readonly unknownQuery: 'refuse' | 'ignore' | 'unread';
}

/** One answer names no more problems. */
const maxProblems = 20;

/** Throws an Error that names the invalid part of the declaration. */
export function compileBinder(
  declared: Op | undefined,
  { compiler, limits, unknownQuery }: BinderOptions,
): Binder {
  const { listItems } = limits;
  const ofText: CastOptions = { from: 'text', listItems };
  const ofXml: CastOptions = { from: 'xml', listItems };
  const ofJson: CastOptions = { from: 'json', listItems };
  const ofShortJson: CastOptions = { ...ofJson, isShort: true };
  const path = (declared?.path ?? []).map((entry) => ({
    ...toParameter(entry.schema, compiler),
    optional: entry.optional,
    makeDefault: toDefault({ ...entry.schema }),
    keyword: entry.byKeyword ? entry.name : undefined,
  }));
  const restSchema = declared?.spec.rest;
  const rest = restSchema && toParameter(close(restSchema), compiler);
  const { byName, others, aliases } = toKeywords(declared, compiler);
  const keywords = [...byName.values()].map((keyword) => ({
    ...keyword,
    makeDefault: toDefault({ ...keyword.schema }),
  }));
  const standard = declared?.standard ?? [];
  const takesUnparsed = declared?.spec.raw === true || declared?.spec.stream === true;
  const known = new Set(byName.keys());
  for (const { keyword } of path) if (keyword !== undefined) known.add(keyword);
  // A part that cannot come by keyword must be present, with all before it.
  const minParts =
    path.findLastIndex((entry) => !entry.optional && entry.keyword === undefined) + 1;
  const maxParts = rest === undefined ? path.length : Number.POSITIVE_INFINITY;

  const declaresQuery =
    declared?.fields.query !== undefined || known.size > 0 || others !== undefined;
  const ignoresUnknown = unknownQuery === 'ignore';
  const readsQuery = unknownQuery === 'refuse' || declaresQuery;
  const takesNothing =
    path.length === 0 &&
    rest === undefined &&
    known.size === 0 &&
    others === undefined &&
    !takesUnparsed;

  /** A list of more than `listItems` items takes at least two bytes for each. */
  function optionsOf({ from, bytes }: BodyArguments): CastOptions {
    if (from === 'json') return bytes <= 2 * listItems ? ofShortJson : ofJson;
    return from === 'xml' ? ofXml : ofText;
  }

  /** A path that does not parse names nothing. */
  function readPart(parameter: Parameter, text: string): unknown {
    const cast = parameter.cast(text, ofText);
    if (!cast.ok || parameter.check(cast.value).length > 0) throw notFound();
    return cast.value;
  }

  /** Reads a keyword that is given. */
  function readKeyword(
    parameter: Parameter,
    name: string,
    { query, body, ofBody }: Given,
    problems: FieldProblem[],
  ): unknown {
    if (!Object.hasOwn(body, name)) {
      return readValue(parameter, query[name], ofText, { in: 'query', name }, problems);
    }
    return readValue(parameter, body[name], ofBody, { in: 'body', name }, problems);
  }

  /** Under the parameters' own names. */
  function withoutAliases(given: Given, problems: FieldProblem[]): Given {
    const named = { query: createKeywords(), body: createKeywords() };
    for (const key of keysOf(given)) {
      const name = aliases.get(key) ?? key;
      const where = placeOf(key, given);
      if (name in named.query || name in named.body) {
        problems.push({ in: where, name, reason: 'is given under two names' });
      }
      named[where][name] = given[where][key];
    }
    return { ...named, ofBody: given.ofBody };
  }

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
          problems.push({ in: placeOf(keyword, given), name: keyword, reason });
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

  function bindRest(
    args: unknown[],
    {
      parts,
      values,
      ofBody,
    }: {
      readonly parts: readonly string[];
      readonly values: readonly unknown[];
      readonly ofBody: CastOptions;
    },
    problems: FieldProblem[],
  ): void {
    if (rest === undefined) return;
    for (const text of parts.slice(path.length)) args.push(readPart(rest, text));
    values.forEach((value, index) => {
      const place = { in: 'body', name: String(index) } as const;
      args.push(readValue(rest, value, ofBody, place, problems));
    });
  }

  function bindKeywords(given: Given, problems: FieldProblem[]): Keywords {
    const fields = createKeywords();
    for (const keyword of keywords) {
      const { name, makeDefault } = keyword;
      if (isGiven(name, given)) fields[name] = readKeyword(keyword, name, given, problems);
      else if (keyword.required) problems.push({ in: keyword.in, name, reason: 'is missing' });
      else if (makeDefault !== undefined) fields[name] = makeDefault();
    }
    for (const name of keysOf(given)) {
      if (known.has(name)) continue;
      if (others !== undefined) fields[name] = readKeyword(others, name, given, problems);
      else if (ignoresUnknown && placeOf(name, given) === 'query') continue;
      else problems.push({ in: placeOf(name, given), name, reason: 'is unknown' });
    }
    return fields;
  }

  /** By the schemas of other libraries, which may convert as well. What is wrong with a field already is not reported twice. */
  function checkStandard(fields: Keywords, problems: FieldProblem[]): void {
    const wrong = new Set(problems.map(({ name }) => fieldOf(name)));
    for (const { in: where, names, schema } of standard) {
      const own = names.filter((name) => name in fields).map((name) => [name, fields[name]]);
      const result = validateFields(schema, Object.fromEntries(own));
      if ('value' in result) Object.assign(fields, result.value);
      else {
        for (const { name, reason } of result.issues) {
          if (!wrong.has(fieldOf(name))) problems.push({ in: where, name, reason });
        }
      }
    }
  }

  return {
    fits: (partCount) => partCount >= minParts && partCount <= maxParts,
    names: [...known, ...aliases.keys()],
    readsQuery,
    takesBody: takesUnparsed || rest !== undefined || known.size > 0 || others !== undefined,
    refuseSurplus(partCount) {
      if (partCount > maxParts) throw notFound();
    },
    bind(parts, query, body) {
      if (takesNothing && query === noKeywords && body === noBody) return [createKeywords()];
      if (rest === undefined && body.positionals.length > 0) {
        throw new BadRequest('the body is not an object of fields');
      }
      const problems: FieldProblem[] = [];
      const ofBody = optionsOf(body);
      const sent: Given = { query, body: body.keywords, ofBody };
      const given = aliases.size === 0 ? sent : withoutAliases(sent, problems);
      const args: unknown[] = [undefined];
      if (takesUnparsed) args.push(body.unparsed);
      bindPath(args, parts, given, problems);
      bindRest(args, { parts, values: body.positionals, ofBody }, problems);
      const fields = bindKeywords(given, problems);
      if (standard.length > 0) checkStandard(fields, problems);
      if (problems.length > 0) {
        throw new BadRequest('the arguments are not valid', problems.slice(0, maxProblems));
      }
      args[0] = fields;
      return args;
    },
  };
}

function readValue(
  { cast, check }: Parameter,
  value: unknown,
  options: CastOptions,
  place: Pick<FieldProblem, 'in' | 'name'>,
  problems: FieldProblem[],
): unknown {
  const result = cast(value, options);
  if (!result.ok) {
    const { at = '', reason } = result;
    problems.push({ in: place.in, name: `${place.name}${at}`, reason });
    return undefined;
  }
  for (const { at, reason } of check(result.value)) {
    problems.push({ in: place.in, name: `${place.name}${at}`, reason });
  }
  return result.value;
}

/** The keyword that a problem is about. */
function fieldOf(name: string): string {
  return name.split('/', 1)[0] ?? '';
}

/** Names of a JSON body stand beside those that every object inherits. */
function isGiven(name: string, { query, body }: Given): boolean {
  return Object.hasOwn(body, name) || Object.hasOwn(query, name);
}

function placeOf(name: string, { body }: Given): 'query' | 'body' {
  return Object.hasOwn(body, name) ? 'body' : 'query';
}

/** Each name once. */
function keysOf({ query, body }: Given): readonly string[] {
  if (query === noKeywords) return Object.keys(body);
  const keys = Object.keys(query);
  if (body === noKeywords) return keys;
  return [...new Set([...keys, ...Object.keys(body)])];
}
