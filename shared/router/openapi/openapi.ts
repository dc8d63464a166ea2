// The OpenAPI 3.1 document of an application: made from its declarations, in a stable order.

import { problemSchema, statusTitle } from '../answer/problem.ts';
import type { OpenApiDocument, OpenApiFrame } from '../controller.ts';
import type { BodyValue, OpSpec } from '../op.ts';
import type { BodyKind } from '../request/media-type.ts';
import { mapSchemas, type Plain } from '../schema/json-schema.ts';
import { fillPath, type RouteEntry } from '../table/route-list.ts';
import { anyVerbs, type Verb } from '../table/verb.ts';
import { uploadKeyword } from '../upload.ts';
import { Models } from './models.ts';

type Json = { [name: string]: unknown };

interface Variant {
  readonly path: string;
  /** Number of positional parameters in the path; further ones are passed by keyword, or omitted. */
  readonly count: number;
}

const withBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const problemRef = { $ref: '#/components/responses/Problem' };

export function toOpenApi(
  routes: readonly RouteEntry[],
  { info, servers, otherPaths, bodyKinds }: OpenApiFrame & { readonly bodyKinds: Kinds },
): OpenApiDocument {
  // OpenAPI cannot describe WebSockets.
  const entries = routes.filter(({ route }) => route.verb !== 'CONNECT');
  const paths: Record<string, Json> = {};
  const schemes: Json = {};
  const models = new Models({ Problem: problemSchema });
  const operations = new Operations(models, bodyKinds);
  const ids = new Set<string>();
  const hasSchemes = entries.some(({ route }) => route.guards.some(({ security }) => security));
  for (const entry of entries) {
    const { route } = entry;
    for (const { security } of route.guards) {
      if (security !== undefined) schemes[security.name] = security.scheme;
    }
    for (const verb of route.verb === 'ANY' ? anyVerbs : [route.verb]) {
      for (const { path, count } of variantsOf(entry)) {
        paths[path] ??= {};
        const item = paths[path] as Json;
        // ANY represents the verbs that the class does not have.
        const isIts = (other: RouteEntry) => other.path === entry.path && other.route.verb === verb;
        if (route.verb === 'ANY' && entries.some(isIts)) continue;
        item[verb.toLowerCase()] = {
          operationId: toOperationId(verb, path, ids),
          // If other methods require credentials, this one states that it does not.
          ...(hasSchemes && { security: [] }),
          ...operations.describe(entry, verb, count),
        };
      }
    }
  }
  const problem = { schema: { $ref: '#/components/schemas/Problem' } };
  return {
    openapi: '3.1.1',
    info: { ...info },
    ...(servers.length > 0 && { servers }),
    tags: [...new Set(entries.map(tagOf))].sort().map((name) => ({ name })),
    paths: sorted({ ...paths, ...otherPaths }),
    components: {
      schemas: models.schemas,
      responses: {
        Problem: {
          description: 'The request failed',
          content: { 'application/problem+json': problem },
        },
      },
      ...(Object.keys(schemes).length > 0 && { securitySchemes: sorted(schemes) }),
    },
  };
}

/** One path for each number of positional parameters that the method accepts; a rest parameter is shown once. */
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

type Kinds = readonly (BodyKind | 'xml')[];

const parsedTypes: readonly (readonly [BodyKind | 'xml', string])[] = [
  ['json', 'application/json'],
  ['form', 'application/x-www-form-urlencoded'],
  ['xml', 'application/xml'],
];

/** Describes methods, and collects their models. */
class Operations {
  readonly #models: Models;
  readonly #bodyKinds: Kinds;

  constructor(models: Models, bodyKinds: Kinds) {
    this.#models = models;
    this.#bodyKinds = bodyKinds;
  }

  /** The description with this many positional parameters in the path. */
  describe(entry: RouteEntry, verb: Verb, count: number): Json {
    const { route, parameters } = entry;
    const { path = [], spec: declared = {}, fields = {}, bodyValue } = route.op ?? {};
    const spec: OpSpec = { ...declared, ...declared.shorter?.[count] };
    const bodyFields = fields.body;
    const acceptsBody = withBody.has(verb);
    const all = [
      ...parameters
        .slice(0, count)
        .map((name, at) => this.#toParameter(name, 'path', path[at]?.schema ?? spec.rest, true)),
      ...path
        .slice(count)
        .filter(({ byKeyword }) => byKeyword)
        .map(({ name, optional, schema }) => this.#toParameter(name, 'query', schema, !optional)),
      ...this.#toParameters(fields.query),
      ...this.#toParameters(acceptsBody ? undefined : bodyFields),
      ...this.#toParameters(spec.headers as Plain | undefined, 'header'),
    ];
    const kinds = route.xml ? [...this.#bodyKinds, 'xml' as const] : this.#bodyKinds;
    const parsed = acceptsBody ? this.#toParsedBody(bodyFields, bodyValue, spec, kinds) : undefined;
    // The body is optional: without it the method receives zero bytes.
    const raw = { required: false, content: this.#toContent(spec.otherBodies ?? { '*/*': {} }) };
    const body = route.unparsed ? raw : parsed;
    const { guards, negotiated } = route;
    const security = Object.fromEntries(
      guards.flatMap(({ security }) => (security ? [[security.name, []]] : [])),
    );
    const failures = [
      400,
      ...(guards.some((guard) => guard.authenticates) ? [401, 403] : []),
      ...[404, 405],
      ...(negotiated ? [406] : []),
      ...(spec.etag ? [412] : []),
      ...(body === undefined ? [] : [413]),
      ...(parsed === undefined ? [] : [415]),
      ...guards.flatMap(({ refusal }) => refusal ?? []),
      500,
    ];
    const unchanged = spec.etag && verb === 'GET' && { 304: { description: statusTitle(304) } };
    return {
      tags: [tagOf(entry)],
      ...(spec.summary !== undefined && { summary: spec.summary }),
      ...(spec.description !== undefined && { description: spec.description }),
      ...(all.length > 0 && { parameters: all }),
      ...(body !== undefined && { requestBody: body }),
      responses: {
        ...unchanged,
        ...Object.fromEntries(failures.map((status) => [status, problemRef])),
        ...this.#toFailures(spec.failures),
        ...this.#toResponses(spec, negotiated),
      },
      ...(Object.keys(security).length > 0 && { security: [security] }),
    };
  }

  #toParameters(object: Plain | undefined, source: 'query' | 'header' = 'query'): readonly Json[] {
    if (object === undefined) return [];
    const required = requiredOf(object);
    return fieldsOf(object).map(([name, schema]) =>
      this.#toParameter(name, source, schema, required.includes(name)),
    );
  }

  #toParameter(
    name: string | undefined,
    source: string,
    schema: object = {},
    required: boolean,
  ): Json {
    const byCommas = Reflect.get(schema, 'explode') === false && { style: 'form', explode: false };
    return { name, in: source, required, ...byCommas, schema: this.#models.describe(schema) };
  }

  /** The schema of fields, or of a body that is more than its fields. */
  #toParsedBody(
    fields: Plain | undefined,
    bodyValue: BodyValue | undefined,
    { otherBodies = {} }: OpSpec,
    given: Kinds,
  ): Json | undefined {
    const declared = bodyValue?.schema ?? fields;
    if (declared === undefined) return undefined;
    const schema = toSent(declared);
    const isRequired = bodyValue !== undefined || 'required' in schema;
    const kinds = bodyValue?.isBehind ? given.filter((kind) => kind !== 'form') : given;
    const hasFile = JSON.stringify(schema).includes(`"${uploadKeyword}":true`);
    const types = hasFile ? ([['multipart', 'multipart/form-data']] as const) : parsedTypes;
    const described = this.#models.describe(schema);
    const content = types
      .filter(([kind]) => kinds.includes(kind))
      .map(([, type]) => [type, { schema: described }]);
    return {
      required: isRequired,
      content: { ...Object.fromEntries(content), ...this.#toContent(otherBodies) },
    };
  }

  #toContent(schemas: Readonly<Record<string, object>>): Json {
    return mapValues(schemas, (schema) => ({ schema: this.#models.describe(schema) }));
  }

  #toFailures(failures: OpSpec['failures'] = {}): Json {
    return mapValues(failures, (more, status) => {
      if (more === undefined) return problemRef;
      const problem = { $ref: '#/components/schemas/Problem' };
      const schema = { allOf: [problem, this.#models.describe(more)] };
      const content = { 'application/problem+json': { schema } };
      return { description: statusTitle(Number(status)), content };
    });
  }

  #toResponses({ returns, produces }: OpSpec, negotiated: boolean): Json {
    if (returns === undefined) {
      const content = produces === undefined ? {} : { content: { [produces]: {} } };
      return { 200: { description: statusTitle(200), ...content } };
    }
    const others = negotiated ? ['application/xml'] : [];
    const types = produces === undefined ? ['application/json', ...others] : [produces];
    return mapValues(returns, (returned, status) => {
      const description = statusTitle(Number(status));
      const schema = this.#models.describe(returned);
      const isEmpty = status === '204' || Reflect.get(Object(schema), 'type') === 'null';
      if (isEmpty) return { description };
      return { description, content: Object.fromEntries(types.map((type) => [type, { schema }])) };
    });
  }
}

/** The properties that a request must have. The member is omitted if all properties are optional. */
function requiredOf(object: Plain): readonly string[] {
  const properties = (object['properties'] ?? {}) as Readonly<Record<string, Plain>>;
  return ((object['required'] as readonly string[] | undefined) ?? []).filter(
    (name) => !('default' in (properties[name] ?? {})),
  );
}

/** The schema of a field, with the schemas that its references name. */
function fieldsOf({ properties = {}, $defs }: Plain): readonly (readonly [string, Plain])[] {
  return Object.entries(properties as Readonly<Record<string, Plain>>).map(
    ([name, schema]) => [name, $defs === undefined ? schema : { $defs, ...schema }] as const,
  );
}

/** The schema as callers see it: fields with a default are optional, at any depth. */
function toSent(declared: Plain): Plain {
  const schema = mapSchemas(declared, toSent);
  schema['required'] = requiredOf(schema);
  if (requiredOf(schema).length === 0) delete schema['required'];
  return schema;
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

function tagOf({ route }: RouteEntry): string {
  return route.module === '' ? 'root' : route.module;
}

function mapValues<Value>(
  record: Readonly<Record<string, Value>>,
  change: (value: Value, name: string) => unknown,
): Json {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, change(value, name)]),
  );
}

function sorted<Value>(record: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
