// What every node is served at this moment: streams compare a node's snapshot before a change with the one after it
// (xds/session.ts sends nothing twice). Pure.
import { announcesEnds, extensionsKey } from '../../../shared/rules/wire/resource-fields.ts';
import type { Revision, RevisionInfo } from '../store/revision.ts';
import type { BuiltSnapshots, GroupSnapshots } from './build.ts';
import { matchesNode } from './node-groups.ts';
import type { NodeIdentity, Snapshot } from './snapshot.ts';

export interface Said {
  /** About which it was said. */
  readonly revision: string;
  readonly outcome: 'held_back' | 'approved' | 'taken_back';
  readonly reason: string;
  /** Of one that is held back: the content that everybody had, from which it would remove too much. An older control plane
   * does not say it. */
  readonly against?: string;
  /** The person who said it. */
  readonly by?: string;
}

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

export const nothingServed: Serving = { inForce: undefined, trial: undefined };

export function currentOf(serving: Serving, node: NodeIdentity): Snapshot | undefined {
  return select(servedTo(serving, node), node);
}

/** The name of a node's group; undefined while nothing is served to it. */
export function groupOf(serving: Serving, node: NodeIdentity): string | undefined {
  const built = servedTo(serving, node);
  return built && selectGroup(built.groups, node)?.group.name;
}

/** The snapshots of a node without and with the trial; undefined when nothing is on trial. */
export function compareFor(
  { inForce, trial }: Serving,
  node: NodeIdentity,
): { readonly before: Snapshot | undefined; readonly after: Snapshot | undefined } | undefined {
  return trial && { before: select(inForce?.built, node), after: select(trial.built, node) };
}

/** Fields that are left out stay as they are. `isNews`: whether any node gets anything else. */
export function withServing(
  before: Serving,
  to: Partial<Serving>,
): { readonly now: Serving; readonly isNews: boolean } {
  const { inForce, trial } = { ...before, ...to };
  if (inForce === before.inForce && trial === before.trial) return { now: before, isNews: false };
  const isTried = before.trial !== undefined || trial !== undefined;
  const isNews = isTried || before.inForce?.built.content !== inForce?.built.content;
  return { now: { inForce, trial }, isNews };
}

function servedTo({ inForce, trial }: Serving, node: NodeIdentity): BuiltSnapshots | undefined {
  return (trial?.isOffered(node) ? trial : inForce)?.built;
}

function select(built: BuiltSnapshots | undefined, node: NodeIdentity): Snapshot | undefined {
  return built && selectSnapshot(built.groups, node);
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
