// Reads fields of an Envoy configuration from YAML or JSON as Envoy does: each name also in camel case, types by their
// `@type`. Unexpected values are skipped: Envoy itself rejects them.
import type { TreeMap, TreeNode } from '../../../shared/rules/yaml/yaml-node.ts';

/** `name` is in snake case. */
export function fieldOf(map: TreeMap, name: string): TreeNode | undefined {
  const camel = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return (map.entries.get(name) ?? map.entries.get(camel))?.value;
}

export function mapOf(map: TreeMap, name: string): TreeMap | undefined {
  const node = fieldOf(map, name);
  return node?.kind === 'map' ? node : undefined;
}

/** The items that are mappings. */
export function mapsOf(map: TreeMap, name: string): TreeMap[] {
  const node = fieldOf(map, name);
  return node?.kind === 'list' ? node.items.filter((item) => item.kind === 'map') : [];
}

/** '' where the field is missing. */
export function textOf(map: TreeMap, name: string): string {
  const node = fieldOf(map, name);
  const isText = node !== undefined && 'source' in node && node.kind !== 'null';
  return isText ? node.source : '';
}

export function isTrue(map: TreeMap, name: string): boolean {
  return textOf(map, name) === 'true';
}

/** Such as `config.route.v3.RouteConfiguration`: a name of the package `envoy`. */
function isOfType(map: TreeMap, type: string): boolean {
  return textOf(map, '@type').endsWith(`/envoy.${type}`);
}

/** All mappings of the type at or below `node`, in the order of the text. */
export function findAllOfType(node: TreeNode | undefined, type: string): TreeMap[] {
  const found: TreeMap[] = [];
  const visit = (each: TreeNode): void => {
    if (each.kind === 'list') each.items.forEach(visit);
    if (each.kind !== 'map') return;
    if (isOfType(each, type)) found.push(each);
    for (const { value } of each.entries.values()) visit(value);
  };
  if (node !== undefined) visit(node);
  return found;
}
