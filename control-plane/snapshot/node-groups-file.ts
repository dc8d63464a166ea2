// Reads the file that says which workers get which domains, with every problem told at once.

import { nearestWord } from '../../shared/nearest-word.ts';
import {
  createDocumentReporter,
  type DocumentReporter,
} from '../../shared/rules/document-reporter.ts';
import type { Problem } from '../../shared/rules/problem.ts';
import {
  type TreeMap,
  type TreeNode,
  type TreeScalar,
  toNoun,
} from '../../shared/rules/yaml-node.ts';
import { parseYamlTree } from '../../shared/rules/yaml-tree.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { matchesGlob } from './glob.ts';
import {
  type NodeGroup,
  type NodeMatch,
  noConditions,
  otherNodes,
  type Pattern,
} from './node-group.ts';

/**
 * At the root of the store:
 *
 *     groups:
 *       - name: edge              # unique
 *         match:                  # all that is given must fit; without it, every node does
 *           id: edge-*
 *           cluster: [eu-*, us-*] # any of them
 *           metadata:
 *             stage: production
 *         domains: [shop, mail-*]
 *
 * A node belongs to the first group that it matches, and gets the domains that any of the group's
 * patterns matches. (Were groups added up instead, every combination of them would be a snapshot of
 * its own, and nobody could tell by reading one group what its nodes get.) A node that matches none,
 * as every node does without this file, gets all domains: a last group without `match` and with
 * `domains: []` gives them nothing.
 */
export const nodeGroupsFile = 'node-groups.yaml';

export interface NodeGroups {
  /** The last one is for all other nodes. */
  readonly groups: readonly NodeGroup[];
  /** Errors among them make the groups useless. */
  readonly problems: readonly Problem[];
}

/** Each group is a snapshot of its own, encoded in memory. */
const maxGroups = 200;

/** `text` is that of the file, undefined when there is none; `domains` are those of the rules, to find
 * patterns that match none of them. */
export function parseNodeGroups(text: string | undefined, domains: readonly string[]): NodeGroups {
  if (text === undefined) return { groups: [otherNodes], problems: [] };
  const yaml = text.startsWith('\ufeff') ? text.slice(1) : text;
  const reporter = createDocumentReporter(yaml, nodeGroupsFile);
  const root = parseYamlTree(yaml, reporter);
  const groups = root === undefined ? [] : readRoot(root, reporter);
  checkTogether(groups, reporter);
  checkDomains(groups, domains, reporter);
  return { groups: [...groups, otherNodes], problems: reporter.toProblems() };
}

type Keys = Readonly<Record<string, (value: TreeNode, path: string) => void>>;

/** Calls for each key of a mapping what reads its value; reports keys that nothing reads. Gives those
 * that are there, or were surely meant. */
function readKeys(
  map: TreeMap,
  path: string,
  keys: Keys,
  reporter: DocumentReporter,
): ReadonlySet<string> {
  const known = Object.keys(keys);
  const meant = new Set<string>();
  for (const [name, { key, value }] of map.entries) {
    const keyPath = path === '' ? toExcerpt(name) : `${path}.${toExcerpt(name)}`;
    if (Object.hasOwn(keys, name)) {
      meant.add(name);
      keys[name]?.(value, keyPath);
      continue;
    }
    const guess = nearestWord(name, known);
    if (guess !== undefined) meant.add(guess);
    const hint = guess ? `did you mean '${guess}'?` : `keys here: ${known.join(', ')}`;
    reporter.error('unknown-key', key.offset, keyPath, `unknown key '${toExcerpt(name)}'`, hint);
  }
  return meant;
}

function readRoot(root: TreeNode, reporter: DocumentReporter): NodeGroup[] {
  const groups: NodeGroup[] = [];
  const asMap = toMap(root, '', 'the document', reporter);
  if (asMap === undefined) return groups;
  const readGroups = (list: TreeNode, path: string) => {
    if (list.kind !== 'list') {
      reportKind(list, path, 'groups', 'a list', reporter);
      return;
    }
    if (list.items.length > maxGroups) {
      reporter.error('too-large', list.offset, path, `more than ${maxGroups} groups`);
      return;
    }
    list.items.forEach((item, index) => {
      const group = readGroup(item, `${path}[${index}]`, reporter);
      if (group !== undefined) groups.push(group);
    });
  };
  const meant = readKeys(asMap, '', { groups: readGroups }, reporter);
  if (!meant.has('groups')) {
    reporter.error(
      'node-groups',
      asMap.offset,
      '',
      'there are no groups',
      "begin the document with 'groups:'",
    );
  }
  return groups;
}

function readGroup(
  item: TreeNode,
  path: string,
  reporter: DocumentReporter,
): NodeGroup | undefined {
  const map = toMap(item, path, 'a group', reporter);
  if (map === undefined) return undefined;
  let name: string | undefined;
  let domains: readonly Pattern[] | undefined;
  let match = noConditions;
  const keys: Keys = {
    name: (value, at) => {
      name = readScalar(value, at, 'name', reporter)?.source;
    },
    match: (value, at) => {
      match = readMatch(value, at, reporter);
    },
    domains: (value, at) => {
      domains = readPatterns(value, at, 'domains', reporter);
    },
  };
  const meant = readKeys(map, path, keys, reporter);
  for (const key of ['name', 'domains']) {
    if (meant.has(key)) continue;
    const hint =
      key === 'name' ? 'give each group a name' : "write 'domains: []' for a group without any";
    reporter.error('node-groups', map.offset, path, `the group has no ${key}`, hint);
  }
  if (name === undefined || domains === undefined) return undefined;
  return { name, domains, match, offset: map.offset };
}

function readMatch(value: TreeNode, path: string, reporter: DocumentReporter): NodeMatch {
  const map = value.kind === 'null' ? undefined : toMap(value, path, 'match', reporter);
  if (map === undefined) return noConditions;
  const metadata = new Map<string, readonly Pattern[]>();
  let id: readonly Pattern[] | undefined;
  let cluster: readonly Pattern[] | undefined;
  const keys: Keys = {
    id: (patterns, at) => {
      id = readPatterns(patterns, at, 'id', reporter);
    },
    cluster: (patterns, at) => {
      cluster = readPatterns(patterns, at, 'cluster', reporter);
    },
    metadata: (node, at) => {
      const entries = toMap(node, at, 'metadata', reporter)?.entries ?? [];
      for (const [name, entry] of entries) {
        metadata.set(name, readPatterns(entry.value, `${at}.${toExcerpt(name)}`, name, reporter));
      }
    },
  };
  readKeys(map, path, keys, reporter);
  return { id, cluster, metadata };
}

/** One pattern or a list of them. */
function readPatterns(
  value: TreeNode,
  path: string,
  name: string,
  reporter: DocumentReporter,
): readonly Pattern[] {
  const items = value.kind === 'list' ? value.items : [value];
  return items.flatMap((item, index) => {
    const itemPath = value.kind === 'list' ? `${path}[${index}]` : path;
    const scalar = readScalar(item, itemPath, name, reporter);
    return scalar === undefined ? [] : [{ text: scalar.source, offset: scalar.offset }];
  });
}

/** Numbers and booleans stand for their text. Undefined for what has been reported. */
function readScalar(
  value: TreeNode,
  path: string,
  name: string,
  reporter: DocumentReporter,
): TreeScalar | undefined {
  if (value.kind === 'gap') return undefined;
  if (value.kind !== 'map' && value.kind !== 'list' && value.source !== '') return value;
  reportKind(value, path, name, 'text', reporter);
  return undefined;
}

function toMap(
  value: TreeNode,
  path: string,
  name: string,
  reporter: DocumentReporter,
): TreeMap | undefined {
  if (value.kind === 'map') return value;
  reportKind(value, path, name, 'a mapping', reporter);
  return undefined;
}

function reportKind(
  value: TreeNode,
  path: string,
  name: string,
  wanted: string,
  reporter: DocumentReporter,
): void {
  if (value.kind === 'gap') return;
  const shown =
    'source' in value
      ? value.source === ''
        ? 'empty'
        : `'${toExcerpt(value.source)}'`
      : `a ${toNoun(value)}`;
  reporter.error('value-type', value.offset, path, `${toExcerpt(name)} is ${shown}, not ${wanted}`);
}

/** What one group alone does not show. */
function checkTogether(groups: readonly NodeGroup[], reporter: DocumentReporter): void {
  const offsets = new Map<string, number>();
  let catchAll: NodeGroup | undefined;
  groups.forEach((group, index) => {
    const { name, offset = 0 } = group;
    const path = `groups[${index}]`;
    const first = offsets.get(name);
    if (name === otherNodes.name) {
      const hint = 'it stands for the nodes that match no group; take another name';
      reporter.error('node-groups', offset, path, `the name '${otherNodes.name}' is taken`, hint);
    } else if (first !== undefined) {
      const hint = `the first one is at ${reporter.place(first)}`;
      reporter.error(
        'node-groups',
        offset,
        path,
        `duplicate group name '${toExcerpt(name)}'`,
        hint,
      );
    } else {
      offsets.set(name, offset);
    }
    if (catchAll !== undefined) {
      const message = `no node gets to group '${toExcerpt(name)}', as group '${toExcerpt(catchAll.name)}' before it takes all`;
      reporter.warning('node-groups', offset, path, message, 'put the group that takes all last');
    } else if (takesAll(group.match)) {
      catchAll = group;
    }
  });
}

function checkDomains(
  groups: readonly NodeGroup[],
  domains: readonly string[],
  reporter: DocumentReporter,
): void {
  groups.forEach((group, index) => {
    group.domains.forEach((pattern, position) => {
      if (domains.some((domain) => matchesGlob(pattern.text, domain))) return;
      const path = `groups[${index}].domains[${position}]`;
      const guess = nearestWord(pattern.text, domains);
      const hint = guess && `did you mean '${toExcerpt(guess)}'?`;
      const message = `'${toExcerpt(pattern.text)}' matches no domain`;
      reporter.warning('node-groups', pattern.offset, path, message, hint);
    });
  });
}

function takesAll({ id, cluster, metadata }: NodeMatch): boolean {
  const isOpen = (patterns: readonly Pattern[] | undefined) =>
    patterns === undefined || patterns.some(({ text }) => /^\*+$/.test(text));
  return isOpen(id) && isOpen(cluster) && metadata.size === 0;
}
