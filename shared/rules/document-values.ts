// Reads what only a rules document has: lists of rules and names, text without floats, free-form metadata.
import { toExcerpt } from '../text-excerpt.ts';
import { reportFloat, reportListItem } from './document-keys.ts';
import type { DocumentReporter } from './document-reporter.ts';
import { joinPath, MapReader } from './map-reader.ts';
import type { JsonObject, JsonValue } from './rule.ts';
import type { TreeMap, TreeNode } from './yaml-node.ts';

/** '' when it is absent or null, undefined for what has been reported. Integers and booleans keep their
 * source. */
export function readText(fields: MapReader, name: string): string | undefined {
  const node = fields.find(name);
  if (node === undefined) return '';
  if (node.kind !== 'float') return fields.toText(node, name);
  reportFloat(node.source, node.offset, fields.pathOf(name), fields.reporter);
  return undefined;
}

/**
 * What `readItem` makes of each mapping in a list; empty when absent or null. Items that are not
 * mappings are reported and left out.
 */
export function readList<Item>(
  fields: MapReader,
  name: 'descriptors' | 'replaces',
  readItem: (item: MapReader) => Item,
): readonly Item[] {
  const { reporter } = fields;
  const items: Item[] = [];
  for (const { node, path } of fields.items(name, (node) => describeList(node, name))) {
    if (node.kind === 'map') items.push(readItem(new MapReader(node, path, reporter)));
    else reportListItem(node, name === 'replaces' ? 'name' : 'key', path, reporter);
  }
  return Object.freeze(items);
}

function describeList(node: TreeNode, name: string): string | undefined {
  if (name === 'replaces') {
    const other = node.kind === 'map' ? node.entries.get('name')?.value : node;
    const shown = other !== undefined && 'source' in other ? toExcerpt(other.source) : 'name';
    return `write it as a list: [{name: ${shown}}]`;
  }
  return node.kind === 'map' ? "begin each item with '- '" : undefined;
}

/** Free-form data. Keys that are not text become it. */
export function readMetadata(fields: MapReader): JsonObject | undefined {
  const metadata = fields.map('metadata');
  return metadata && toJsonObject(metadata.node, metadata.path, metadata.reporter);
}

function toJsonObject(map: TreeMap, path: string, reporter: DocumentReporter): JsonObject {
  const members = [...map.entries].map(([name, { value }]): [string, JsonValue] => [
    name,
    toJson(value, joinPath(path, name), reporter),
  ]);
  // Unlike an assignment, fromEntries makes `__proto__` a member like any other.
  return Object.freeze(Object.fromEntries(members));
}

function toJson(node: TreeNode, path: string, reporter: DocumentReporter): JsonValue {
  if (node.kind === 'map') return toJsonObject(node, path, reporter);
  if (node.kind === 'list') {
    const items = node.items.map((item, index) => toJson(item, `${path}[${index}]`, reporter));
    return Object.freeze(items) as JsonValue[];
  }
  if (node.kind === 'gap') return null;
  if (typeof node.value === 'number' && !Number.isFinite(node.value)) {
    const message = `error parsing metadata: ${toExcerpt(node.source)} is not a finite number`;
    reporter.error('invalid-metadata', node.offset, path, message, 'for text, write it in quotes');
  }
  return node.value;
}
