// Holds the snapshots that every node is served at this moment, and is the only place that changes them:
// listeners are told of each change, and compare a node's snapshot before with the one now (xds/session.ts sends
// nothing twice).
import { announcesEnds, extensionsKey } from '../../shared/rules/wire/resource-fields.ts';
import type { Revision, RevisionInfo } from '../store/revision.ts';
import type { Said } from './admission.ts';
import type { BuiltSnapshots, GroupSnapshots } from './build.ts';
import { matchesNode } from './node-groups.ts';
import type { NodeIdentity, Snapshot, SnapshotProvider } from './snapshot.ts';

export interface InForce {
  readonly revision: RevisionInfo;
  /** Wall time. */
  readonly sinceMs: number;
  readonly built: BuiltSnapshots;
  /** Whether this control plane has given it to all without steps, as its author wants it. */
  readonly isAtOnce: boolean;
}

export interface Trial extends Pick<InForce, 'sinceMs' | 'built'> {
  /** With its files, which are kept when it has come through. */
  readonly whole: Revision;
  /** About an earlier try of it, or of its content. */
  readonly saidBefore: Said | undefined;
  /** The nodes that get it. */
  readonly isOffered: (node: NodeIdentity) => boolean;
}

export interface Serving {
  /** The revision that all others get; undefined: they keep what they have. */
  readonly inForce: InForce | undefined;
  /** The revision that only some nodes get. */
  readonly trial: Trial | undefined;
}

export interface Served extends SnapshotProvider {
  readonly now: Serving;
  /**
   * Serves this from now on; fields that are left out stay as they are. Where no node gets anything else nobody
   * is told.
   */
  change(to: Partial<Serving>): void;
  /** Calls `listener` after `current` has changed for any node. The returned function unsubscribes. */
  onChange(listener: () => void): () => void;
  /** The name of a node's group; undefined while nothing is served to it. */
  groupOf(node: NodeIdentity): string | undefined;
  /** The snapshots of a node without and with the trial; undefined when nothing is on trial. */
  compare(
    node: NodeIdentity,
  ): { readonly before: Snapshot | undefined; readonly after: Snapshot | undefined } | undefined;
}

export function createServed(): Served {
  const listeners = new Set<() => void>();
  let now: Serving = { inForce: undefined, trial: undefined };

  function servedTo(node: NodeIdentity): BuiltSnapshots | undefined {
    return (now.trial?.isOffered(node) ? now.trial : now.inForce)?.built;
  }

  function select(built: BuiltSnapshots | undefined, node: NodeIdentity): Snapshot | undefined {
    return built && selectSnapshot(built.groups, node);
  }

  /** Equal snapshots stay the same objects, so that what is derived from them is kept. */
  function keepEqualGroups<Part extends Pick<InForce, 'built'>>(
    part: Part | undefined,
  ): Part | undefined {
    const known = [now.inForce, now.trial];
    if (part === undefined || known.some((each) => each?.built === part.built)) return part;
    const before = known.flatMap((each) => each?.built.groups ?? []);
    const { built } = part;
    return { ...part, built: { ...built, groups: keepIdentities(built.groups, before) } };
  }

  return {
    get now() {
      return now;
    },
    current: (node) => select(servedTo(node), node),
    groupOf(node) {
      const built = servedTo(node);
      return built && selectGroup(built.groups, node)?.group.name;
    },
    compare: (node) =>
      now.trial && {
        before: select(now.inForce?.built, node),
        after: select(now.trial.built, node),
      },
    change(to) {
      const { inForce, trial } = { ...now, ...to };
      if (inForce === now.inForce && trial === now.trial) return;
      const before = now;
      now = { inForce: keepEqualGroups(inForce), trial: keepEqualGroups(trial) };
      const isTried = before.trial !== undefined || now.trial !== undefined;
      if (!isTried && before.inForce?.built.content === now.inForce?.built.content) return;
      for (const listener of [...listeners]) listener();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
}

/** The previous object where the content is equal. */
function keepIdentities(
  groups: readonly GroupSnapshots[],
  before: readonly GroupSnapshots[],
): GroupSnapshots[] {
  const known = new Map<string, Snapshot>();
  for (const { extended, lasting, standard } of before) {
    for (const snapshot of [extended, lasting, standard]) known.set(snapshot.version, snapshot);
  }
  const knownOr = (snapshot: Snapshot) => known.get(snapshot.version) ?? snapshot;
  return groups.map((each) => ({
    ...each,
    extended: knownOr(each.extended),
    lasting: knownOr(each.lasting),
    standard: knownOr(each.standard),
  }));
}

/**
 * The snapshot of a node; with fields of our own only where it announces that it reads them (behaviour:
 * fields-of-our-own).
 */
export function selectSnapshot(
  groups: readonly GroupSnapshots[],
  node: NodeIdentity,
): Snapshot | undefined {
  const found = selectGroup(groups, node);
  const announced = node.metadata.get(extensionsKey);
  if (announced === undefined) return found?.standard;
  return announcesEnds(announced) ? found?.extended : found?.lasting;
}

/** Always found, since the last matches all. */
function selectGroup(
  groups: readonly GroupSnapshots[],
  node: NodeIdentity,
): GroupSnapshots | undefined {
  return groups.find(({ group }) => matchesNode(group.match, node));
}
