// The OpenAPI 3.1 document of an application: of its declarations, in a stable order.
import type Type from 'typebox';
import { problemSchema, statusTitle } from '../answer/problem.ts';
import type { OpenApiDocument } from '../controller.ts';
import type { OpSpec } from '../op.ts';
import type { BodyKind } from '../request/body.ts';
import { fillPath, type RouteEntry } from '../table/route-list.ts';
import { anyVerbs, type Verb } from '../table/verb.ts';
import { isUpload, uploadKeyword } from '../upload.ts';
import type { OpenApiFrame } from './frame.ts';

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
          ...toOperation(entry, verb, variant, bodyKinds),
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
      schemas: { Problem: problemSchema },
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

function toOperation(
  entry: RouteEntry,
  verb: Verb,
  { count }: Variant,
  bodyKinds: readonly BodyKind[],
): Json {
  const { route, parameters } = entry;
  const { path = [], spec: whole = {} } = route.op ?? {};
  const spec: OpSpec = { ...whole, ...whole.shorter?.[count] };
  const taken = withAliases(route.op?.fields.body, spec.aliases);
  const shownQuery = withAliases(
    whole.shorter?.[count]?.query ?? route.op?.fields.query,
    spec.aliases,
  );
  const takesBody = withBody.has(verb);
  const positional = parameters.slice(0, count).map((name, index) => ({
    name,
    in: 'path',
    required: true,
    schema: toDescribedSchema(path[index]?.schema ?? spec.rest ?? {}),
  }));
  const byKeyword = path
    .slice(count)
    .flatMap(({ name, byKeyword, optional, schema }) =>
      byKeyword
        ? [{ name, in: 'query', required: !optional, schema: toDescribedSchema(schema) }]
        : [],
    );
  const query = [shownQuery, takesBody ? undefined : taken].flatMap((object) =>
    toParameters(object, 'query'),
  );
  const parsed =
    takesBody && taken !== undefined
      ? toRequestBody(taken, route.xml ? [...bodyKinds, 'xml'] : bodyKinds, spec.otherBodies)
      : undefined;
  const body = route.unparsed
    ? // Without a body the method is given no bytes.
      { required: false, content: toContent(spec.otherBodies ?? { '*/*': {} }) }
    : parsed;
  const all = [...positional, ...byKeyword, ...query, ...toParameters(spec.headers, 'header')];
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
      ...toFailures(spec.failures),
      ...toResponses(spec, route.negotiated),
    },
    ...(Object.keys(security).length === 0 ? {} : { security: [security] }),
  };
}

/** The other names stand beside a keyword's own, which need not be given then. */
function withAliases(
  object: Type.TObject | undefined,
  aliases: OpSpec['aliases'] = {},
): Type.TObject | undefined {
  if (object === undefined || Object.keys(aliases).length === 0) return object;
  const properties: Record<string, Type.TSchema> = { ...object.properties };
  for (const [name, others] of Object.entries(aliases)) {
    const schema = object.properties[name];
    if (schema === undefined) continue;
    const { default: _own, ...described } = { ...schema } as Json;
    for (const other of others) properties[other] = { ...described, description: `As ${name}` };
  }
  const required = [...new Set<string>(object.required)].filter(
    (name) => !Object.hasOwn(aliases, name),
  );
  return { ...object, properties, required } as Type.TObject;
}

function toParameters(object: Type.TObject | undefined, place: 'query' | 'header') {
  if (object === undefined) return [];
  const required = new Set<string>(object.required);
  return Object.entries<Type.TSchema>(object.properties).map(([name, schema]) => ({
    name,
    in: place,
    required: required.has(name) && !('default' in schema),
    schema: toDescribedSchema(schema),
  }));
}

function toRequestBody(
  object: Type.TObject,
  bodyKinds: readonly (BodyKind | 'xml')[],
  otherBodies: OpSpec['otherBodies'] = {},
): Json {
  const properties = Object.entries<Type.TSchema>(object.properties);
  // Despite its type, the schema lacks this member where all properties are optional.
  const isRequired = new Set<string>(object.required);
  const required = properties
    .filter(([name, schema]) => isRequired.has(name) && !('default' in schema))
    .map(([name]) => name);
  const schema = {
    type: 'object',
    properties: Object.fromEntries(
      properties.map(([name, property]) => [name, toDescribedSchema(property)]),
    ),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: toDescribedSchema(Reflect.get(object, 'additionalProperties') ?? false),
  };
  const hasFile = properties.some(([, property]) => isUpload({ ...property }));
  const types: readonly (readonly [BodyKind | 'xml', string])[] = hasFile
    ? [['multipart', 'multipart/form-data']]
    : [
        ['json', 'application/json'],
        ['form', 'application/x-www-form-urlencoded'],
        ['xml', 'application/xml'],
      ];
  return {
    required: required.length > 0,
    content: Object.fromEntries([
      ...types.filter(([kind]) => bodyKinds.includes(kind)).map(([, type]) => [type, { schema }]),
      ...Object.entries(toContent(otherBodies)),
    ]),
  };
}

function toContent(schemas: Readonly<Record<string, Type.TSchema>>): Json {
  return Object.fromEntries(
    Object.entries(schemas).map(([type, schema]) => [type, { schema: toDescribedSchema(schema) }]),
  );
}

function toFailures(failures: OpSpec['failures'] = {}): Json {
  return Object.fromEntries(
    Object.entries(failures).map(([status, more]) => {
      if (more === undefined) return [status, problemRef];
      const schema = {
        allOf: [{ $ref: '#/components/schemas/Problem' }, toDescribedSchema(more)],
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

function toResponses({ returns, produces }: OpSpec, negotiated: boolean): Json {
  if (returns === undefined) {
    const content = produces === undefined ? {} : { content: { [produces]: {} } };
    return { 200: { description: statusTitle(200), ...content } };
  }
  const mediaTypes = answerTypes(produces, negotiated);
  const responses: Json = {};
  for (const [status, schema] of Object.entries(returns)) {
    const described = toDescribedSchema(schema);
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

/** Plain JSON Schema 2020-12, without this package's own keywords; booleans stay. */
function toDescribedSchema(schema: Type.TSchema | boolean): unknown {
  return describe(JSON.parse(JSON.stringify(schema)));
}

function describe(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(describe);
  if (typeof value !== 'object' || value === null) return value;
  const described: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    if (key === uploadKeyword) continue;
    // A tuple, in the older drafts' way.
    if (key === 'items' && Array.isArray(inner)) described['prefixItems'] = describe(inner);
    else if (key === 'additionalItems') described['items'] = describe(inner);
    else described[key] = describe(inner);
  }
  return described;
}

function sorted<Value>(record: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
