// Binds a request's parts and keywords to the arguments of a method: trouble with positions is 404,
// trouble with keywords is 400 with its problems at once (behaviour: positions-404-keywords-400).
// Declarations are compiled at start.

import { BadRequest, type FieldProblem, notFound } from '../errors.ts';
import type { Limits } from '../limits.ts';
import type { Op } from '../op.ts';
import { createKeywords, type Keywords } from '../request/keywords.ts';
import { validateFields } from '../standard-schema.ts';
import type { CastOptions, Origin } from './cast.ts';
import { type Parameter, toKeywords, toParameter } from './parameter.ts';
import type { SchemaCompiler } from './schema.ts';

export interface Given {
  readonly parts: readonly string[];
  readonly query: Readonly<Keywords>;
  readonly body: BodyArguments;
}

export interface BodyArguments {
  readonly keywords: Readonly<Keywords>;
  /** Items of a list, a value that is neither list nor object, or a plain text. */
  readonly positionals: readonly unknown[];
  readonly from: Origin;
  /** Of the whole body. */
  readonly bytes: number;
}

export interface Binder {
  /** Whether the method takes that many path parts, if its keywords are right. */
  fits(partCount: number): boolean;
  /** Whether any argument of the method can come from a body. */
  readonly takesBody: boolean;
  /** Throws 404 where there are more parts than the method takes; called before the body is read. */
  refuseSurplus(partCount: number): void;
  /** The arguments in order. Throws 404 or 400. */
  bind(given: Given): unknown[];
}

/** The value of a keyword, and where it came from. */
interface Value {
  readonly value: unknown;
  readonly options: CastOptions;
  readonly in: 'query' | 'body';
}

/** How many problems one answer names. */
const maxProblems = 20;

/** Throws an Error that names the invalid part of the declaration. */
export function compileBinder(
  declared: Op | undefined,
  { compiler, limits }: { readonly compiler: SchemaCompiler; readonly limits: Limits },
): Binder {
  const { listItems } = limits;
  const ofText: CastOptions = { from: 'text', listItems };
  const path = (declared?.path ?? []).map((entry) => ({
    ...entry,
    ...toParameter(entry.schema, compiler),
    keyword: entry.byKeyword ? entry.name : undefined,
  }));
  const restSchema = declared?.spec.rest;
  const rest = restSchema && toParameter(restSchema, compiler);
  const keywords = toKeywords(declared, compiler);
  const standard = declared?.standard ?? [];
  const positional = new Set(path.map(({ keyword }) => keyword));
  // A part that cannot come by keyword must be present, with all before it.
  const minParts = path.findLastIndex((entry) => !entry.optional && !entry.byKeyword) + 1;
  const maxParts = rest === undefined ? path.length : Number.POSITIVE_INFINITY;

  /** A path that does not parse names nothing. */
  function readPart(parameter: Parameter, text: string): unknown {
    const cast = parameter.cast(text, ofText);
    if (!cast.ok || parameter.check(cast.value).length > 0) throw notFound();
    return cast.value;
  }

  function readValue(
    parameter: Parameter,
    name: string,
    given: Value,
    problems: FieldProblem[],
  ): unknown {
    const cast = parameter.cast(given.value, given.options);
    if (!cast.ok) {
      problems.push({ in: given.in, name, reason: cast.reason });
      return undefined;
    }
    for (const { at, reason } of parameter.check(cast.value)) {
      problems.push({ in: given.in, name: `${name}${at}`, reason });
    }
    return cast.value;
  }

  /** A list of more than `listItems` items takes at least two bytes for each. */
  function optionsOf({ from, bytes }: BodyArguments): CastOptions {
    return { from, listItems, isShort: from === 'json' && bytes <= 2 * listItems };
  }

  /** By the parameter's own name; the body wins over the query. */
  function collect(given: Given, problems: FieldProblem[]): ReadonlyMap<string, Value> {
    const byKey = new Map<string, Value>();
    for (const key of Object.keys(given.query)) {
      byKey.set(key, { value: given.query[key], options: ofText, in: 'query' });
    }
    const options = optionsOf(given.body);
    for (const key of Object.keys(given.body.keywords)) {
      byKey.set(key, { value: given.body.keywords[key], options, in: 'body' });
    }
    if (keywords.aliases.size === 0) return byKey;
    const byName = new Map<string, Value>();
    for (const [key, value] of byKey) {
      const name = keywords.aliases.get(key) ?? key;
      if (byName.has(name)) {
        problems.push({ in: value.in, name, reason: 'is given under two names' });
      }
      byName.set(name, value);
    }
    return byName;
  }

  function bindPath(
    parts: readonly string[],
    values: ReadonlyMap<string, Value>,
    problems: FieldProblem[],
  ): unknown[] {
    return path.map((entry, index) => {
      const text = parts[index];
      const { keyword } = entry;
      const value = keyword === undefined ? undefined : values.get(keyword);
      if (text !== undefined) {
        if (keyword !== undefined && value !== undefined) {
          problems.push({ in: value.in, name: keyword, reason: 'is given in the path already' });
        }
        return readPart(entry, text);
      }
      if (keyword !== undefined && value !== undefined) {
        return readValue(entry, keyword, value, problems);
      }
      if (!entry.optional) throw notFound();
      return defaultOf(entry);
    });
  }

  function bindRest(given: Given, problems: FieldProblem[]): unknown[] {
    if (rest === undefined) return [];
    const options = optionsOf(given.body);
    return [
      ...given.parts.slice(path.length).map((text) => readPart(rest, text)),
      ...given.body.positionals.map((value, index) =>
        readValue(rest, String(index), { value, options, in: 'body' }, problems),
      ),
    ];
  }

  function bindKeywords(values: ReadonlyMap<string, Value>, problems: FieldProblem[]): Keywords {
    const fields = createKeywords();
    for (const keyword of keywords.byName.values()) {
      const { name } = keyword;
      const value = values.get(name);
      if (value !== undefined) fields[name] = readValue(keyword, name, value, problems);
      else if (keyword.required) problems.push({ in: keyword.in, name, reason: 'is missing' });
      else if ('default' in keyword.schema) fields[name] = defaultOf(keyword);
    }
    for (const [name, value] of values) {
      if (keywords.byName.has(name) || positional.has(name)) continue;
      if (keywords.others === undefined) {
        problems.push({ in: value.in, name, reason: 'is unknown' });
      } else {
        fields[name] = readValue(keywords.others, name, value, problems);
      }
    }
    return fields;
  }

  /** By the schemas of other libraries, which may convert as well. */
  function checkStandard(fields: Keywords, problems: FieldProblem[]): void {
    for (const { in: where, names, schema } of standard) {
      const own = names.filter((name) => name in fields).map((name) => [name, fields[name]]);
      const result = validateFields(schema, Object.fromEntries(own));
      if ('value' in result) Object.assign(fields, result.value);
      else for (const { name, reason } of result.issues) problems.push({ in: where, name, reason });
    }
  }

  return {
    fits: (partCount) => partCount >= minParts && partCount <= maxParts,
    takesBody:
      rest !== undefined ||
      keywords.byName.size > 0 ||
      keywords.others !== undefined ||
      path.some(({ byKeyword }) => byKeyword),
    refuseSurplus(partCount) {
      if (partCount > maxParts) throw notFound();
    },
    bind(given) {
      if (rest === undefined && given.body.positionals.length > 0) throw notFound();
      const problems: FieldProblem[] = [];
      const values = collect(given, problems);
      const positionals = [
        ...bindPath(given.parts, values, problems),
        ...bindRest(given, problems),
      ];
      const fields = bindKeywords(values, problems);
      if (standard.length > 0 && problems.length === 0) checkStandard(fields, problems);
      if (problems.length > 0) {
        throw new BadRequest('the arguments are not valid', problems.slice(0, maxProblems));
      }
      return [fields, ...positionals];
    },
  };
}

/** A copy, so that no request changes the default of the next. */
function defaultOf(parameter: Parameter): unknown {
  return 'default' in parameter.schema ? structuredClone(parameter.schema.default) : undefined;
}
