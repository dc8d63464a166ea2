// Checks of the mappings of a rules document beyond single fields: allowed keys, lists of rules and names,
// text without floats, free-form metadata.
import { toExcerpt } from '../../text-excerpt.ts';
import type { Reporter } from '../problem/reporter.ts';
import type { JsonObject, JsonValue } from '../rule.ts';
import { keysAt, type Section } from '../rule-keys.ts';
import { joinPath, listOf, MapReader } from '../yaml/map-reader.ts';
import type { TreeMap, TreeNode } from '../yaml/yaml-node.ts';

const keysOfSection: Readonly<Record<Section, readonly string[]>> = {
  document: keysAt('document'),
  descriptor: keysAt('descriptor'),
  rate_limit: keysAt('rate_limit'),
  replaces: keysAt('replaces'),
  lease: keysAt('lease'),
};
const allKeys: ReadonlySet<string> = new Set(Object.values(keysOfSection).flat());

/** The problems that were found among the keys of one mapping. */
export interface KeyFindings {
  /** True when a reported problem may explain the absence of `key`. */
  explainsAbsence(key: string): boolean;
  /** True when a reported problem may explain why the mapping has no useful content. */
  readonly isSuspect: boolean;
}

/**
 * Reports unknown keys, and known keys without effect in this section. The reference has one flat set of keys and
 * ignores misplaced ones, so they are only warnings.
 */
export function checkKeys(fields: MapReader, section: Section): KeyFindings {
  const { node: map } = fields;
  const guesses = new Set<string>();
  const misplaced: string[] = [];
  let hasUnexplained = map.isIncomplete === true;
  for (const [name, { key, value }] of map.entries) {
    if (key.kind !== 'text' || !allKeys.has(name)) {
      const guess = fields.refuseKey(name, keysOfSection[section]);
      if (guess === undefined) hasUnexplained = true;
      else guesses.add(guess);
    } else if (!keysOfSection[section].includes(name)) {
      if (!isMissedInside(map, name, section)) misplaced.push(name);
      if (name !== 'metadata') checkStrayValue(value, fields.pathOf(name), fields.reporter);
    }
  }
  reportMisplaced(fields, misplaced, section);
  return {
    explainsAbsence: (key) => hasUnexplained || guesses.has(key),
    isSuspect: hasUnexplained || guesses.size > 0 || misplaced.length > 0,
  };
}

/** Whether a required key of rate_limit is written beside it: it is reported where it is missing. */
function isMissedInside(map: TreeMap, name: string, section: Section): boolean {
  const limit = map.entries.get('rate_limit')?.value;
  return (
    section === 'descriptor' &&
    (name === 'unit' || name === 'requests_per_unit') &&
    limit?.kind === 'map' &&
    !limit.entries.has(name) &&
    !limit.entries.has('unlimited')
  );
}

/** Checks the keys of values that are never read, as the reference does. */
function checkStrayValue(value: TreeNode, path: string, reporter: Reporter): void {
  if (value.kind === 'float') reportFloat(value.source, value.offset, path, reporter);
  else if (value.kind === 'list') {
    value.items.forEach((item, index) => {
      const itemPath = `${path}[${index}]`;
      if (item.kind === 'map') checkStrayValue(item, itemPath, reporter);
      else reportListItem(item, path.endsWith('replaces') ? 'name' : 'key', itemPath, reporter);
    });
  } else if (value.kind === 'map') {
    const fields = new MapReader(value, path, reporter);
    for (const [name, entry] of value.entries) {
      if (entry.key.kind !== 'text' || !allKeys.has(name)) fields.refuseKey(name, [...allKeys]);
      else if (name !== 'metadata') checkStrayValue(entry.value, fields.pathOf(name), reporter);
    }
  }
}

/** Reports one warning for all keys that belong to the same other section: they are one mistake. */
function reportMisplaced(fields: MapReader, names: readonly string[], section: Section): void {
  const byHome = Map.groupBy(names, (name) => describeHome(name, section));
  for (const [home, group] of byHome) {
    const [first = ''] = group;
    const [verb, it] = group.length === 1 ? ['has', 'it'] : ['have', 'them'];
    const message = `${listOf(group.map((name) => `'${name}'`))} ${verb} no effect here`;
    const offset = fields.node.entries.get(first)?.key.offset;
    const hint = `move ${it} ${home}${describeColumn(fields, offset ?? 0, section)}`;
    fields.reporter.advise('misplaced-key', offset, fields.pathOf(first), message, hint);
  }
}

/** The column where the keys of that section begin; '' if the text does not show it. */
function describeColumn({ node, reporter }: MapReader, offset: number, section: Section): string {
  const limit = node.entries.get('rate_limit');
  if (section === 'descriptor' && limit?.value.kind === 'null') {
    const column = reporter.position(limit.key.offset)?.column;
    return column === undefined ? '' : `, to column ${column + 2}`;
  }
  const list = node.entries.get('descriptors')?.value;
  const items = section === 'document' && list?.kind === 'list' ? list.items : [];
  const before = items.findLast((item) => item.kind === 'map' && item.offset < offset);
  const first = before?.kind === 'map' ? before.entries.values().next().value : undefined;
  // In braces the columns of keys mean nothing.
  const isBlock = first !== undefined && first.key.offset === before?.offset;
  const column = isBlock ? reporter.position(first.key.offset)?.column : undefined;
  return column === undefined ? '' : `, to column ${column} where its keys begin`;
}

function describeHome(name: string, section: Section): string {
  if (name === 'domain') return 'to the top of the document';
  if (keysOfSection.rate_limit.includes(name)) {
    return section === 'document' ? 'into the rate_limit of a descriptor' : 'into rate_limit';
  }
  return section === 'document' ? 'into an item of descriptors' : 'out, beside the key';
}

/** `firstKey` is the usual first key of an item. */
function reportListItem(item: TreeNode, firstKey: string, path: string, reporter: Reporter): void {
  if (item.kind === 'gap') return;
  const source = 'source' in item ? item.source : '';
  const shown = 'source' in item ? toExcerpt(source) || 'null' : 'a list';
  const message = `list of type other than map: ${shown}`;
  const [, key, value] = /^(\w+):\s*(\S.*)$/s.exec(source) ?? [];
  const hint =
    key !== undefined && value !== undefined
      ? `write a space after the colon: '- ${key}: ${toExcerpt(value)}'`
      : `write each item as a mapping, such as '- ${firstKey}: ${toExcerpt(source) || 'name'}'`;
  reporter.error('list-item-type', item.offset, path, message, hint);
}

function reportFloat(source: string, offset: number, path: string, reporter: Reporter): void {
  const shown = toExcerpt(source);
  const message = `${shown} is neither text nor a whole number`;
  reporter.error('value-type', offset, path, message, `for text, write it in quotes: '${shown}'`);
}

/**
 * The text; '' when it is absent or null, undefined when a problem was reported. Integers and booleans keep their
 * source.
 */
export function readText(fields: MapReader, name: string): string | undefined {
  const node = fields.find(name);
  if (node === undefined) return '';
  if (name === 'value' && node.kind === 'list') {
    return fields.refuse(node, name, 'text', 'write one item for each value');
  }
  if (node.kind !== 'float') return fields.toText(node, name);
  reportFloat(node.source, node.offset, fields.pathOf(name), fields.reporter);
  return undefined;
}

/**
 * Reads each mapping of a list by `readItem`; empty when the list is absent or null. Items that are not mappings
 * are reported and left out.
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

/** Free-form data. Keys that are not text are converted to text. */
export function readMetadata(fields: MapReader): JsonObject | undefined {
  const metadata = fields.map('metadata');
  return metadata && toJsonObject(metadata.node, metadata.path, metadata.reporter);
}

function toJsonObject(map: TreeMap, path: string, reporter: Reporter): JsonObject {
  const members = [...map.entries].map(([name, { value }]): [string, JsonValue] => [
    name,
    toJson(value, joinPath(path, name), reporter),
  ]);
  // Unlike an assignment, fromEntries makes `__proto__` a member like any other.
  return Object.freeze(Object.fromEntries(members));
}

function toJson(node: TreeNode, path: string, reporter: Reporter): JsonValue {
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
