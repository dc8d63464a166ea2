// The OpenAPI 3.1 document of an application: of its declarations, in a stable order.

import { problemSchema, statusTitle } from '../answer/problem.ts';
import type { OpenApiDocument } from '../controller.ts';
import type { OpSpec, WholeBody } from '../op.ts';
import type { BodyKind } from '../request/body-kind.ts';
import type { Plain } from '../schema/json-schema.ts';
import { fillPath, type RouteEntry } from '../table/route-list.ts';
import { anyVerbs, type Verb } from '../table/verb.ts';
import { isUpload, uploadKeyword } from '../upload.ts';
import type { OpenApiFrame } from './frame.ts';
import { Models } from './models.ts';

type Json = { [name: string]: unknown };

export interface OpenApiOptions extends OpenApiFrame {
  readonly bodyKinds: readonly BodyKind[];
}

interface Variant {
  readonly path: string;
  /** Number of positional parameters in the path; further ones come by keyword, or not at all. */
  readonly count: number;
}

const withBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const problemRef = { $ref: '#/components/responses/Problem' };

export function toOpenApi(
  entries: readonly RouteEntry[],
  { info, servers, paths: otherPaths = {}, bodyKinds }: OpenApiOptions,
): OpenApiDocument {
  const paths: Record<string, Json> = {};
  const schemes: Json = {};
  const models = new Models({ Problem: problemSchema });
  const tags = new Set<string>();
  const ids = new Set<string>();
  const hasSchemes = entries.some(({ route }) => route.guards.some(({ security }) => security));
  for (const entry of entries) {
    const { route } = entry;
    tags.add(tagOf(entry));
    for (const { security } of route.guards) {
      if (security !== undefined) schemes[security.name] = security.scheme;
    }
    for (const verb of route.verb === 'ANY' ? anyVerbs : [route.verb]) {
      for (const variant of variantsOf(entry)) {
        paths[variant.path] ??= {};
        const item = paths[variant.path] as Json;
        // ANY stands for the verbs that the class does not have.
        if (route.verb === 'ANY' && hasVerb(entries, entry, verb)) continue;
        item[verb.toLowerCase()] = {
          operationId: toOperationId(verb, variant.path, ids),
          // Where other methods need credentials, this one states that it needs none.
          ...(hasSchemes && { security: [] }),
          ...toOperation(entry, verb, variant, { bodyKinds, models }),
        };
      }
    }
  }
  return {
    openapi: '3.1.1',
    info: { ...info },
    ...(servers && { servers: [...servers] }),
    tags: [...tags].sort().map((name) => ({ name })),
    paths: sorted({ ...paths, ...otherPaths }),
    components: {
      schemas: models.schemas,
      responses: {
        Problem: {
          description: 'The request failed',
          content: {
            'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
          },
        },
      },
      ...(Object.keys(schemes).length === 0 ? {} : { securitySchemes: sorted(schemes) }),
    },
  };
}

/** One path for each number of positional parameters that the method takes; of a rest parameter one is
 * shown. */
function variantsOf({ path, parameters, route }: RouteEntry): readonly Variant[] {
  const declared = route.op?.path ?? [];
  const least = declared.findLastIndex((entry) => !entry.optional && !entry.byKeyword) + 1;
  const variants: Variant[] = [];
  for (let count = least; count <= parameters.length; count += 1) {
    const given = parameters.slice(0, count);
    variants.push({ path: fillPath(path, given, (name) => `{${name}}`), count });
  }
  return variants;
}

interface Describing {
  readonly bodyKinds: readonly BodyKind[];
  readonly models: Models;
}

function toOperation(
  entry: RouteEntry,
  verb: Verb,
  { count }: Variant,
  { bodyKinds, models }: Describing,
): Json {
  const { route, parameters } = entry;
  const { path = [], spec: declared = {} } = route.op ?? {};
  const spec: OpSpec = { ...declared, ...declared.shorter?.[count] };
  const taken = withAliases(route.op?.fields.body, spec.aliases);
  const shownQuery = withAliases(
    (declared.shorter?.[count]?.query as Plain | undefined) ?? route.op?.fields.query,
    spec.aliases,
  );
  const takesBody = withBody.has(verb);
  const positional = parameters.slice(0, count).map((name, index) => ({
    name,
    in: 'path',
    required: true,
    schema: models.describe(path[index]?.schema ?? spec.rest ?? {}),
  }));
  const byKeyword = path
    .slice(count)
    .flatMap(({ name, byKeyword, optional, schema }) =>
      byKeyword
        ? [{ name, in: 'query', required: !optional, schema: models.describe(schema) }]
        : [],
    );
  const query = [shownQuery, takesBody ? undefined : taken].flatMap((object) =>
    toParameters(object, 'query', models),
  );
  const kinds = route.xml ? [...bodyKinds, 'xml' as const] : bodyKinds;
  const parsed = !takesBody
    ? undefined
    : route.op?.whole !== undefined
      ? toWholeBody(route.op.whole, kinds, spec.otherBodies, models)
      : taken && toRequestBody(taken, kinds, spec.otherBodies, models);
  const body = route.unparsed
    ? // Without a body the method is given no bytes.
      { required: false, content: toContent(spec.otherBodies ?? { '*/*': {} }, models) }
    : parsed;
  const all = [
    ...positional,
    ...byKeyword,
    ...query,
    ...toParameters(spec.headers as Plain | undefined, 'header', models),
  ];
  const security = Object.fromEntries(
    route.guards.flatMap(({ security }) => (security ? [[security.name, []]] : [])),
  );
  const isGuarded = route.guards.some((guard) => guard.authenticates);
  const failures = [
    400,
    ...(isGuarded ? [401, 403] : []),
    ...[404, 405],
    ...(route.negotiated ? [406] : []),
    ...(body === undefined ? [] : [413]),
    ...(parsed === undefined ? [] : [415]),
    500,
  ];
  return {
    tags: [tagOf(entry)],
    ...(spec.summary === undefined ? {} : { summary: spec.summary }),
    ...(spec.description === undefined ? {} : { description: spec.description }),
    ...(all.length === 0 ? {} : { parameters: all }),
    ...(body === undefined ? {} : { requestBody: body }),
    responses: {
      ...Object.fromEntries(failures.map((status) => [status, problemRef])),
      ...toFailures(spec.failures, models),
      ...toResponses(spec, route.negotiated, models),
    },
    ...(Object.keys(security).length === 0 ? {} : { security: [security] }),
  };
}

/** The other names stand beside a keyword's own, which need not be given then. */
function withAliases(
  object: Plain | undefined,
  aliases: OpSpec['aliases'] = {},
): Plain | undefined {
  if (object === undefined || Object.keys(aliases).length === 0) return object;
  const own = (object['properties'] ?? {}) as Readonly<Record<string, Plain>>;
  const properties = { ...own };
  for (const [name, others] of Object.entries(aliases)) {
    if (own[name] === undefined) continue;
    const { default: _own, ...described } = own[name];
    for (const other of others) properties[other] = { ...described, description: `As ${name}` };
  }
  const required = requiredOf(object).filter((name) => !Object.hasOwn(aliases, name));
  return { ...object, properties, required };
}

/** Those that a request must have. The member is missing where all properties are optional. */
function requiredOf(object: Plain): readonly string[] {
  const properties = (object['properties'] ?? {}) as Readonly<Record<string, Plain>>;
  return ((object['required'] as readonly string[] | undefined) ?? []).filter(
    (name) => !('default' in (properties[name] ?? {})),
  );
}

/** A field, with what its references name. */
function fieldsOf({ properties = {}, $defs }: Plain): readonly (readonly [string, Plain])[] {
  return Object.entries(properties as Readonly<Record<string, Plain>>).map(
    ([name, schema]) => [name, $defs === undefined ? schema : { $defs, ...schema }] as const,
  );
}

function toParameters(object: Plain | undefined, place: 'query' | 'header', models: Models) {
  if (object === undefined) return [];
  const required = requiredOf(object);
  return fieldsOf(object).map(([name, schema]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(schema['explode'] === false && { style: 'form', explode: false }),
    schema: models.describe(schema),
  }));
}

type Kinds = readonly (BodyKind | 'xml')[];

function toRequestBody(
  object: Plain,
  kinds: Kinds,
  otherBodies: OpSpec['otherBodies'],
  models: Models,
): Json {
  const { $id, $defs, title, properties = {}, additionalProperties = false } = object;
  const required = requiredOf(object);
  const schema = models.describe({
    ...($id !== undefined && { $id }),
    ...($defs !== undefined && { $defs }),
    ...(title !== undefined && { title }),
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties,
  });
  const hasFile = fieldsOf(object).some(([, property]) => isUpload(property));
  return {
    required: required.length > 0,
    content: toContents(schema, kinds, otherBodies, hasFile, models),
  };
}

function toWholeBody(
  { schema, isBehind }: WholeBody,
  kinds: Kinds,
  otherBodies: OpSpec['otherBodies'],
  models: Models,
): Json {
  const fitting = isBehind ? kinds.filter((kind) => kind !== 'form') : kinds;
  const described = models.describe(schema);
  const hasFile = JSON.stringify(schema).includes(`"${uploadKeyword}":true`);
  return { required: true, content: toContents(described, fitting, otherBodies, hasFile, models) };
}

function toContents(
  schema: unknown,
  kinds: Kinds,
  otherBodies: OpSpec['otherBodies'],
  hasFile: boolean,
  models: Models,
): Json {
  const types: readonly (readonly [BodyKind | 'xml', string])[] = hasFile
    ? [['multipart', 'multipart/form-data']]
    : [
        ['json', 'application/json'],
        ['form', 'application/x-www-form-urlencoded'],
        ['xml', 'application/xml'],
      ];
  const parsed = types.filter(([kind]) => kinds.includes(kind));
  return {
    ...Object.fromEntries(parsed.map(([, type]) => [type, { schema }])),
    ...toContent(otherBodies ?? {}, models),
  };
}

function toContent(schemas: Readonly<Record<string, object>>, models: Models): Json {
  return Object.fromEntries(
    Object.entries(schemas).map(([type, schema]) => [type, { schema: models.describe(schema) }]),
  );
}

function toFailures(failures: OpSpec['failures'] = {}, models: Models): Json {
  return Object.fromEntries(
    Object.entries(failures).map(([status, more]) => {
      if (more === undefined) return [status, problemRef];
      const schema = {
        allOf: [{ $ref: '#/components/schemas/Problem' }, models.describe(more)],
      };
      const content = { 'application/problem+json': { schema } };
      return [status, { description: statusTitle(Number(status)), content }];
    }),
  );
}

function answerTypes(produces: string | undefined, negotiated: boolean): readonly string[] {
  if (produces !== undefined) return [produces];
  return negotiated ? ['application/json', 'application/xml'] : ['application/json'];
}

function toResponses({ returns, produces }: OpSpec, negotiated: boolean, models: Models): Json {
  if (returns === undefined) {
    const content = produces === undefined ? {} : { content: { [produces]: {} } };
    return { 200: { description: statusTitle(200), ...content } };
  }
  const mediaTypes = answerTypes(produces, negotiated);
  const responses: Json = {};
  for (const [status, schema] of Object.entries(returns)) {
    const described = models.describe(schema);
    const isEmpty = Number(status) === 204 || Reflect.get(Object(described), 'type') === 'null';
    responses[status] = {
      description: statusTitle(Number(status)),
      ...(isEmpty
        ? {}
        : {
            content: Object.fromEntries(mediaTypes.map((type) => [type, { schema: described }])),
          }),
    };
  }
  return responses;
}

/** Verb, path, and the positional parameters after `With`: `getWidgetsWithId`. */
function toOperationId(verb: Verb, path: string, ids: Set<string>): string {
  const words = (text: string) =>
    text.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_all, first: string) => first.toUpperCase());
  const [, base = '', parameters = ''] = /^([^{]*)(.*)$/.exec(path) ?? [];
  const name = words(base.replace(/\/$/, '')) || 'Root';
  const suffix = parameters === '' ? '' : `With${words(parameters).replace(/[^A-Za-z0-9]/g, '')}`;
  const wanted = `${verb.toLowerCase()}${name}${suffix}`;
  let id = wanted;
  for (let number = 2; ids.has(id); number += 1) id = `${wanted}${number}`;
  ids.add(id);
  return id;
}

function hasVerb(entries: readonly RouteEntry[], { path }: RouteEntry, verb: Verb): boolean {
  return entries.some((entry) => entry.path === path && entry.route.verb === verb);
}

function tagOf({ route }: RouteEntry): string {
  return route.module === '' ? 'root' : route.module;
}

function sorted<Value>(record: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
