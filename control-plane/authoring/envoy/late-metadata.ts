// Finds dynamic metadata that Envoy writes in a filter behind the rate limit filter, so that the latter's actions find
// nothing.
import type { TreeMap, TreeNode } from '../../../shared/rules/yaml/yaml-node.ts';
import { fieldOf, findAllOfType, mapOf, textOf } from './envoy-fields.ts';

/** Namespaces, each with the name of the filter that writes to it too late. */
export type LateMetadata = ReadonlyMap<string, string>;

/** Filters that write metadata from requests, with their default namespace. */
const writers = [
  [
    'extensions.filters.http.json_to_metadata.v3.JsonToMetadata',
    'envoy.filters.http.json_to_metadata',
  ],
  ['extensions.filters.http.header_to_metadata.v3.Config', 'envoy.lb'],
] as const;

/** The namespaces that only filters behind `position` write to. */
export function findLateMetadata(filters: readonly TreeMap[], position: number): LateMetadata {
  const early = new Set(filters.slice(0, position).flatMap(namespacesOf));
  const late = new Map<string, string>();
  for (const filter of filters.slice(position + 1)) {
    for (const namespace of namespacesOf(filter)) {
      if (!early.has(namespace)) late.set(namespace, textOf(filter, 'name'));
    }
  }
  return late;
}

/** The namespace that an action reads from the request's metadata; undefined for other actions. */
export function namespaceRead(action: TreeMap): string | undefined {
  const map = mapOf(action, 'metadata') ?? mapOf(action, 'dynamic_metadata');
  const key = map && mapOf(map, 'metadata_key');
  if (map === undefined || key === undefined) return undefined;
  // The routes' own metadata is always there.
  return ['ROUTE_ENTRY', '1'].includes(textOf(map, 'source')) ? undefined : textOf(key, 'key');
}

function namespacesOf(filter: TreeMap): string[] {
  const config = fieldOf(filter, 'typed_config');
  return writers.flatMap(([type, standard]) =>
    findAllOfType(config, type).flatMap((map) =>
      findValues(fieldOf(map, 'request_rules')).map((value) => {
        return textOf(value, 'metadata_namespace') || standard;
      }),
    ),
  );
}

/** The mappings that name a key of metadata: `on_present`, `on_header_missing` and the like. */
function findValues(node: TreeNode | undefined): TreeMap[] {
  if (node?.kind === 'list') return node.items.flatMap(findValues);
  if (node?.kind !== 'map') return [];
  return [...node.entries].flatMap(([name, { value }]) =>
    /^on[_A-Z]/.test(name) && value.kind === 'map' ? [value] : findValues(value),
  );
}
