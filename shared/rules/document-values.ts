// Reads single values of a rules document: text, flags, numbers, lists, free-form metadata. Each
// returns undefined for what it has reported, so that one mistake makes one problem.

import { toExcerpt } from '../text-excerpt.ts';
import { joinPath, reportFloat, reportListItem } from './document-keys.ts';
import type { DocumentReporter } from './document-reporter.ts';
import { describeRepairedWord } from './odd-character.ts';
import type { JsonObject, JsonValue } from './rule.ts';
import { maxCount } from './rule-keys.ts';
import { type TreeMap, type TreeNode, toNoun } from './yaml-node.ts';

/** The text of a field; '' when it is absent or null. Integers and booleans keep their source. */
export function readText(
  map: TreeMap,
  name: string,
  path: string,
  reporter: DocumentReporter,
): string | undefined {
  const node = map.entries.get(name)?.value;
  if (node === undefined || node.kind === 'null') return '';
  if (node.kind === 'text' || node.kind === 'int' || node.kind === 'bool') return node.source;
  const fieldPath = joinPath(path, name);
  if (node.kind === 'float') reportFloat(node.source, node.offset, fieldPath, reporter);
  else reportKind(node, name, 'text', fieldPath, reporter);
  return undefined;
}

/** False when absent or null. */
export function readFlag(
  map: TreeMap,
  name: string,
  path: string,
  reporter: DocumentReporter,
): boolean | undefined {
  const node = map.entries.get(name)?.value;
  if (node === undefined || node.kind === 'null') return false;
  if (node.kind === 'bool') return node.value === true;
  const fieldPath = joinPath(path, name);
  const isQuoted = 'isQuoted' in node && node.isQuoted && /^(?:true|false)$/i.test(node.source);
  const hint = isQuoted ? `write it without quotes: ${node.source.toLowerCase()}` : undefined;
  reportKind(node, name, 'true or false', fieldPath, reporter, hint);
  return undefined;
}

/** A whole number from 0 to 4294967295; `absent` when the field is absent or null. */
export function readCount(
  map: TreeMap,
  name: string,
  path: string,
  reporter: DocumentReporter,
): number | 'absent' | undefined {
  const node = map.entries.get(name)?.value;
  if (node === undefined || node.kind === 'null') return 'absent';
  const isCount = node.kind === 'int' && Number(node.value) >= 0 && Number(node.value) <= maxCount;
  if (isCount) return Number(node.value);
  const isQuoted = 'isQuoted' in node && node.isQuoted && /^[0-9]+$/.test(node.source);
  const hint = isQuoted ? `write it without quotes: ${toExcerpt(node.source)}` : undefined;
  const wanted = `a whole number from 0 to ${maxCount}`;
  reportKind(node, name, wanted, joinPath(path, name), reporter, hint);
  return undefined;
}

/**
 * What `readItem` makes of each mapping in a list; empty when absent or null. Items that are not
 * mappings are reported and left out.
 */
export function readList<Item>(
  map: TreeMap,
  name: string,
  path: string,
  reporter: DocumentReporter,
  readItem: (item: TreeMap, itemPath: string) => Item,
): readonly Item[] | undefined {
  const node = map.entries.get(name)?.value;
  if (node === undefined || node.kind === 'null') return Object.freeze([]);
  const listPath = joinPath(path, name);
  if (node.kind !== 'list') {
    reportKind(node, name, 'a list', listPath, reporter, describeList(node, name));
    return undefined;
  }
  const items: Item[] = [];
  node.items.forEach((item, index) => {
    const itemPath = `${listPath}[${index}]`;
    if (item.kind === 'map') items.push(readItem(item, itemPath));
    else reportListItem(item, name === 'replaces' ? 'name' : 'key', itemPath, reporter);
  });
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

/** `absent` when the field is absent or null. */
export function readMap(
  map: TreeMap,
  name: string,
  path: string,
  reporter: DocumentReporter,
): TreeMap | 'absent' | undefined {
  const node = map.entries.get(name)?.value;
  if (node === undefined || node.kind === 'null') return 'absent';
  if (node.kind === 'map') return node;
  const hint = name === 'rate_limit' ? describeLimit(node) : undefined;
  reportKind(node, name, 'a mapping', joinPath(path, name), reporter, hint);
  return undefined;
}

/** What is written `10/minute` elsewhere. */
function describeLimit(node: TreeNode): string {
  const source = 'source' in node ? node.source : '';
  const [, count = '3', unit = 'minute'] =
    /^(\d{1,9}) ?(?:\/|per) ?([a-z]+?)s?$/i.exec(source) ?? [];
  return `write it as a mapping: {unit: ${unit}, requests_per_unit: ${count}}`;
}

/** Free-form data. Keys that are not text become it; `absent` as for `readMap`. */
export function readMetadata(
  map: TreeMap,
  path: string,
  reporter: DocumentReporter,
): JsonObject | 'absent' | undefined {
  const metadata = readMap(map, 'metadata', path, reporter);
  if (metadata === undefined || metadata === 'absent') return metadata;
  return toJsonObject(metadata, joinPath(path, 'metadata'), reporter);
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

function reportKind(
  node: TreeNode,
  name: string,
  wanted: string,
  path: string,
  reporter: DocumentReporter,
  hint?: string,
): void {
  if (node.kind === 'gap') return;
  const shown = 'source' in node ? `'${toExcerpt(node.source)}'` : `a ${toNoun(node)}`;
  const oddity = 'source' in node ? describeRepairedWord(node.source, undefined) : undefined;
  reporter.error(
    'value-type',
    node.offset,
    path,
    `${name} is ${shown}, not ${wanted}`,
    oddity ?? hint,
  );
}
