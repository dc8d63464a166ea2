// The nodes of a YAML document: plain objects with an offset each, without aliases.
import type { ScalarValue } from './yaml-scalar.ts';

export type TreeNode = TreeScalar | TreeList | TreeMap | TreeGap;

export interface TreeScalar extends ScalarValue {
  /** The text as written, without quotes. */
  readonly source: string;
  readonly isQuoted: boolean;
  readonly offset: number;
}

export interface TreeList {
  readonly kind: 'list';
  readonly items: readonly TreeNode[];
  readonly offset: number;
}

export interface TreeMap {
  readonly kind: 'map';
  /** The entries by their keys as written. */
  readonly entries: ReadonlyMap<string, TreeEntry>;
  /** Whether a merge, or a key of one, could not be read, which was reported. */
  readonly isIncomplete?: boolean;
  readonly offset: number;
}

export interface TreeEntry {
  readonly key: TreeScalar;
  readonly value: TreeNode;
}

/** Represents an unreadable value. It was reported, so readers skip it silently. */
export interface TreeGap {
  readonly kind: 'gap';
  readonly offset: number;
}

/** True when the field holds no item: absent, null, or an empty list. */
export function isEmptyList(map: TreeMap, name: string): boolean {
  const node = map.entries.get(name)?.value;
  if (node === undefined || node.kind === 'null') return true;
  return node.kind === 'list' && node.items.length === 0;
}

/** The node's name in messages, after "a". */
export function toNoun(node: TreeNode): string {
  if (node.kind === 'map') return 'mapping';
  return node.kind === 'list' ? 'list' : 'single value';
}
