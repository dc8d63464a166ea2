// A group of nodes that get the same domains, and whether a node belongs to it. node-groups-file.ts reads
// groups, build.ts makes their snapshots.
import { matchesGlob } from '../glob.ts';
import type { RolloutStep } from './rollout-steps.ts';
import type { NodeIdentity } from './snapshot.ts';

export interface NodeGroup {
  readonly name: string;
  /** Patterns of domains. */
  readonly domains: readonly Pattern[];
  readonly match: NodeMatch;
  /** Its own way of a rollout; undefined when it goes with the other workers. */
  readonly rollout: readonly RolloutStep[] | undefined;
  /** Place of the group in its file; undefined for the group of all others. */
  readonly offset: number | undefined;
}

export interface Pattern {
  readonly text: string;
  readonly offset: number | undefined;
}

/** Undefined or empty: no such condition. */
export interface NodeMatch {
  readonly id: readonly Pattern[] | undefined;
  readonly cluster: readonly Pattern[] | undefined;
  readonly metadata: ReadonlyMap<string, readonly Pattern[]>;
}

export const noConditions: NodeMatch = { id: undefined, cluster: undefined, metadata: new Map() };

/** For nodes that match no other group; its name is reserved. */
export const otherNodes: NodeGroup = {
  name: 'default',
  domains: [{ text: '*', offset: undefined }],
  match: noConditions,
  rollout: undefined,
  offset: undefined,
};

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
