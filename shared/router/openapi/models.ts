// Schemas in the form of OpenAPI: plain JSON Schema 2020-12, whose named models (`$id`, and schemas that a `$ref`
// names) are listed once each among the components.
import {
  eachSchema,
  isPlain,
  mapSchemas,
  noScope,
  type Plain,
  resolveRef,
  type Scope,
  scopeWithin,
} from '../schema/json-schema.ts';
import { uploadKeyword } from '../upload.ts';

export class Models {
  /** By name. */
  readonly schemas: Record<string, unknown>;
  /** From the requested name and the text of a schema to its assigned name. */
  readonly #names = new Map<string, string>();

  constructor(schemas: Readonly<Record<string, unknown>>) {
    this.schemas = { ...schemas };
  }

  /** Removes the router's own keywords. */
  describe(given: unknown): unknown {
    const schema: unknown = JSON.parse(JSON.stringify(given));
    if (!isPlain(schema)) return schema;
    return this.#describe(schema, new Map([...noScope, ['#', schema]]), false);
  }

  #describe(schema: Plain, scope: Scope, isModel: boolean): unknown {
    const inside = scopeWithin(scope, schema);
    const { $ref: ref, $id: id, $defs: _defs, [uploadKeyword]: _file, ...own } = schema;
    if (ref !== undefined) {
      const { explode: _explode, ...beside } = own;
      return { ...beside, $ref: this.#refer(resolveRef(inside, ref), String(ref), inside) };
    }
    if (typeof id === 'string' && !isModel) return { $ref: this.#refer(schema, id, inside) };
    const described: Record<string, unknown> = {};
    const changed = mapSchemas(own, (inner) => this.#describe(inner, inside, false));
    for (const [keyword, value] of Object.entries(changed)) {
      if (keyword === 'explode' || keyword === '~refine') continue;
      // In JSON it is a member that is absent.
      if (keyword === 'type' && value === 'undefined') return { not: {} };
      // A tuple, as older drafts express it.
      if (keyword === 'items' && Array.isArray(value)) described['prefixItems'] = value;
      else if (keyword === 'additionalItems') described['items'] = value;
      else described[keyword] = value;
    }
    return described;
  }

  #refer(target: Plain, ref: string, scope: Scope): string {
    const wanted = toName(target, ref);
    const key = `${wanted} ${contentOf(target, scope)}`;
    let name = this.#names.get(key);
    if (name === undefined) {
      name = wanted;
      for (let number = 2; name in this.schemas; number += 1) name = `${wanted}${number}`;
      this.#names.set(key, name);
      this.schemas[name] = {};
      this.schemas[name] = this.#describe(target, scope, true);
    }
    return `#/components/schemas/${name}`;
  }
}

function toName({ $id: id, title }: Plain, ref: string): string {
  const given = String(id ?? title ?? ref.replace('#/$defs/', '')).replace(/[^\w.-]+/g, '-');
  return /^[A-Za-z]/.test(given) ? given : `Model${given.replace(/^\W+/, '')}`;
}

/** Equal for schemas that differ only in order, in their names, and in accepting further fields, as in an answer. It
 * includes the schemas that it refers to: two schemas can have different ones of one name. */
function contentOf(schema: Plain, scope: Scope): string {
  const all = new Set([schema]);
  for (const one of all) {
    eachSchema(one, ({ $ref: ref }) => {
      const target = scope.get(String(ref));
      if (target !== undefined) all.add(target);
    });
  }
  return [...new Set([...all].map(textOf))].join();
}

function textOf(schema: Plain): string {
  return JSON.stringify(schema, (keyword, value: unknown) => {
    if (/^(?:additional|unevaluated)Properties$/.test(keyword) && value === false) return undefined;
    if (keyword === '$id' || keyword === '$defs') return undefined;
    if (!isPlain(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
