// Groups of nodes that get the same domains: reads the file that defines them, reports all of its problems at once, and
// matches nodes to groups. build.ts makes their snapshots.
import { didYouMean } from '../../../shared/nearest-word.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import type { Reporter } from '../../../shared/rules/problem/reporter.ts';
import {
  type LocatedNode,
  type MapReader,
  readMap,
  reportKind,
} from '../../../shared/rules/yaml/map-reader.ts';
import { parseYamlTree } from '../../../shared/rules/yaml/yaml-tree.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { matchesGlob, reasonAgainstGlob } from '../../authoring/glob.ts';
import {
  createDocumentKeys,
  type JsonSchema,
  type SchemaRow,
} from '../../authoring/schema/document-schema.ts';
import { parseRolloutSteps, type RolloutStep } from './rollout-steps.ts';
import type { NodeIdentity } from './snapshot.ts';

/** Each group has a snapshot of its own, encoded in memory. */
export const maxGroups = 200;

type NodeGroupsSection = 'file' | 'group' | 'match';

const text: JsonSchema = { type: ['string', 'number', 'boolean'] };
const texts: JsonSchema = { anyOf: [text, { type: 'array', items: text }] };

/** One row for each key: they define which keys are valid and where, and the JSON Schema for editors. */
const nodeGroupsKeys = [
  {
    name: 'groups',
    sections: ['file'],
    type: 'list',
    holds: 'group',
    isRequired: true,
    items: [0, maxGroups],
    meaning: 'the groups; a node belongs to the first one that it matches; required',
  },
  {
    name: 'name',
    sections: ['group'],
    type: 'other',
    schema: { ...text, not: { const: 'default' } },
    isRequired: true,
    meaning: 'unique; `default` stands for the nodes that match no group; required',
  },
  {
    name: 'match',
    sections: ['group'],
    type: 'map',
    holds: 'match',
    meaning: 'the nodes of the group: all given fields must match; every node without them',
  },
  {
    name: 'domains',
    sections: ['group'],
    type: 'other',
    schema: texts,
    isRequired: true,
    meaning:
      'what they get: a pattern or a list of them, with `*` for any characters; `[]` for nothing; required',
  },
  {
    name: 'rollout',
    sections: ['group'],
    type: 'other',
    schema: text,
    meaning: 'its steps, such as `5%:60s,100%`, in place of those of `--rollout`',
  },
  {
    name: 'id',
    sections: ['match'],
    type: 'other',
    schema: texts,
    meaning: 'patterns for the id of a node, any of which matches',
  },
  {
    name: 'cluster',
    sections: ['match'],
    type: 'other',
    schema: texts,
    meaning: 'patterns for its cluster, any of which matches',
  },
  {
    name: 'metadata',
    sections: ['match'],
    type: 'other',
    schema: { type: 'object', additionalProperties: texts },
    meaning: 'patterns for its metadata, by key, each of which has to match',
  },
] as const satisfies readonly SchemaRow<NodeGroupsSection>[];

export const { keysAt: nodeGroupsKeysAt, formatSchema: formatNodeGroupsSchema } =
  createDocumentKeys<NodeGroupsSection>({
    title: 'Groups of nodes, and the domains that they get',
    rows: nodeGroupsKeys,
    root: 'file',
  });

/**
 * At the root of the store:
 *
 *     groups:
 *       - name: edge              # unique
 *         match:                  # all given conditions must match; without it, every node matches
 *           id: edge-*
 *           cluster: [eu-*, us-*] # any of them
 *           metadata:
 *             stage: production
 *         domains: [shop, mail-*]
 *         rollout: 5%:60s,100%:10m      # instead of the steps of `--rollout`
 *
 * A node belongs to the first group that it matches, and gets the domains that any of the group's patterns matches. (If
 * groups were combined instead, every combination would need a snapshot of its own, and reading one group would not
 * show what its nodes get.) A node that matches no group, as every node does without this file, gets all domains: a
 * last group without `match` and with `domains: []` prevents that.
 */
export const nodeGroupsFile = 'node-groups.yaml';

export interface NodeGroup {
  readonly name: string;
  /** Patterns of domains. */
  readonly domains: readonly Pattern[];
  readonly match: NodeMatch;
  /** Rollout steps of its own; undefined if it is rolled out with the other workers. */
  readonly rollout: readonly RolloutStep[] | undefined;
  /** Index of the group in its file; undefined for the group of all other nodes. */
  readonly offset: number | undefined;
}

export interface Pattern {
  readonly text: string;
  readonly offset: number | undefined;
}

/** Undefined or empty: no condition. */
export interface NodeMatch {
  readonly id: readonly Pattern[] | undefined;
  readonly cluster: readonly Pattern[] | undefined;
  readonly metadata: ReadonlyMap<string, readonly Pattern[]>;
}

export const noConditions: NodeMatch = { id: undefined, cluster: undefined, metadata: new Map() };

/** The group of nodes that match no other group; its name is reserved. */
const otherNodes: NodeGroup = {
  name: 'default',
  domains: [{ text: '*', offset: undefined }],
  match: noConditions,
  rollout: undefined,
  offset: undefined,
};

export interface NodeGroups {
  /** The last group matches all other nodes. */
  readonly groups: readonly NodeGroup[];
  /** If it has errors, the groups must not be used. */
  readonly problems: readonly Problem[];
}

/** `text`: that of the file, undefined if absent. `domains`: those of the rules, to find patterns that match
 * none of them. */
export function parseNodeGroups(text: string | undefined, domains: readonly string[]): NodeGroups {
  if (text === undefined) return { groups: [otherNodes], problems: [] };
  const { root, reporter } = parseYamlTree(text, nodeGroupsFile);
  const fields = root && readMap(root, '', 'the document', reporter);
  const groups = fields ? readGroups(fields) : [];
  checkTogether(groups, reporter);
  checkDomains(groups, domains, reporter);
  return { groups: [...groups, otherNodes], problems: reporter.toProblems() };
}

export function matchesNode({ id, cluster, metadata }: NodeMatch, node: NodeIdentity): boolean {
  return (
    (id === undefined || matchesAny(id, node.id)) &&
    (cluster === undefined || matchesAny(cluster, node.cluster)) &&
    metadata.entries().every(([key, patterns]) => {
      const value = node.metadata.get(key);
      return value !== undefined && matchesAny(patterns, value);
    })
  );
}

export function matchesAny(patterns: readonly Pattern[], text: string): boolean {
  return patterns.some((pattern) => matchesGlob(pattern.text, text));
}

function readGroups(root: MapReader): NodeGroup[] {
  const meant = root.refuseOthers(nodeGroupsKeysAt('file'));
  const list = root.given('groups');
  if (list === undefined) {
    if (meant.has('groups')) return [];
    root.errorOfAll('node-groups', 'there are no groups', "begin the document with 'groups:'");
  } else if (list.node.kind !== 'list') {
    reportKind(list, 'groups', 'a list', root.reporter);
  } else if (list.node.items.length > maxGroups) {
    root.error('too-large', 'groups', `more than ${maxGroups} groups`);
  } else {
    return root.items('groups').flatMap(({ node, path }) => {
      const fields = readMap(node, path, 'a group', root.reporter);
      return (fields && readGroup(fields)) ?? [];
    });
  }
  return [];
}

function readGroup(fields: MapReader): NodeGroup | undefined {
  const { node, reporter } = fields;
  const meant = fields.refuseOthers(nodeGroupsKeysAt('group'));
  const given = fields.given('name');
  const name = given && readPattern(given, 'name', reporter);
  const match = fields.map('match');
  const conditions = match ? readMatch(match) : noConditions;
  const domains = readPatterns(fields, 'domains');
  const rollout = readRollout(fields);
  for (const key of ['name', 'domains']) {
    if (fields.given(key) !== undefined || meant.has(key)) continue;
    const hint =
      key === 'name' ? 'give each group a name' : "write 'domains: []' for a group without any";
    fields.errorOfAll('node-groups', `the group has no ${key}`, hint);
  }
  if (name === undefined || domains === undefined) return undefined;
  return { name: name.text, domains, match: conditions, rollout, offset: node.offset };
}

function readRollout(fields: MapReader): readonly RolloutStep[] | undefined {
  const given = fields.given('rollout');
  const text = given && readPattern(given, 'rollout', fields.reporter);
  if (text === undefined) return undefined;
  const parsed = parseRolloutSteps(text.text);
  if (parsed.ok) return parsed.steps;
  fields.error('node-groups', 'rollout', `rollout: ${parsed.reason}`);
  return undefined;
}

function readMatch(fields: MapReader): NodeMatch {
  fields.refuseOthers(nodeGroupsKeysAt('match'));
  const id = readPatterns(fields, 'id');
  const cluster = readPatterns(fields, 'cluster');
  const given = fields.given('metadata');
  const metadata = given && readMap(given.node, given.path, 'metadata', fields.reporter);
  const keys = [...(metadata?.node.entries.keys() ?? [])];
  const patterns = keys.map(
    (key) => [key, (metadata && readPatterns(metadata, key)) ?? []] as const,
  );
  return { id, cluster, metadata: new Map(patterns) };
}

/** One pattern or a list of them; undefined if the key is missing. */
function readPatterns(fields: MapReader, name: string): readonly Pattern[] | undefined {
  const given = fields.given(name);
  const all = given?.node.kind === 'list' ? fields.items(name) : given && [given];
  return all?.flatMap((each) => readPattern(each, name, fields.reporter) ?? []);
}

/** Numbers and booleans are read as their text. */
function readPattern(given: LocatedNode, name: string, reporter: Reporter): Pattern | undefined {
  const { node, path } = given;
  if (!('source' in node) || node.source === '') {
    reportKind(given, name, 'text', reporter);
    return undefined;
  }
  const reason = reasonAgainstGlob(node.source);
  if (reason === undefined) return { text: node.source, offset: node.offset };
  reporter.error('too-large', node.offset, path, `${name}: ${reason}`);
  return undefined;
}

/** Checks that span several groups. */
function checkTogether(groups: readonly NodeGroup[], reporter: Reporter): void {
  const offsets = new Map<string, number>();
  let catchAll: NodeGroup | undefined;
  groups.forEach((group, index) => {
    const { name, offset = 0 } = group;
    const path = `groups[${index}]`;
    const first = offsets.get(name);
    if (name === otherNodes.name) {
      const hint = 'it is the name for nodes that match no group; choose another';
      reporter.error('node-groups', offset, path, `the name '${otherNodes.name}' is taken`, hint);
    } else if (first !== undefined) {
      const hint = `the first one is at ${reporter.positionText(first)}`;
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
      const message = `no node reaches group '${toExcerpt(name)}', as group '${toExcerpt(catchAll.name)}' before it matches all`;
      reporter.advise('node-groups', offset, path, message, 'put the group that matches all last');
    } else if (matchesAll(group.match)) {
      catchAll = group;
    }
  });
}

function checkDomains(
  groups: readonly NodeGroup[],
  domains: readonly string[],
  reporter: Reporter,
): void {
  groups.forEach((group, index) => {
    group.domains.forEach((pattern, position) => {
      if (domains.some((domain) => matchesGlob(pattern.text, domain))) return;
      const path = `groups[${index}].domains[${position}]`;
      const guess = reporter.nearestWord(pattern.text, domains);
      const message = `'${toExcerpt(pattern.text)}' matches no domain`;
      reporter.advise('node-groups', pattern.offset, path, message, didYouMean(guess));
    });
  });
}

/** Whether every node meets these conditions, so that no node reaches a later group. */
export function matchesAll({ id, cluster, metadata }: NodeMatch): boolean {
  const isOpen = (patterns: readonly Pattern[] | undefined) =>
    patterns === undefined ||
    patterns.some(({ text }) => text.startsWith('*') && /^\*+$/.test(text));
  return isOpen(id) && isOpen(cluster) && metadata.size === 0;
}
