// What every node is served at this moment: streams compare a node's snapshot before a change with the one after it
// (xds/session.ts sends nothing twice); and how many of the rules that is, since groups may withhold domains from some
// or all nodes. Pure.
import { toCountText } from '../../../shared/count-text.ts';
import { announcesEnds, extensionsKey } from '../../../shared/rules/wire/resource-fields.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { Revision, RevisionInfo } from '../store/revision.ts';
import type { BuiltSnapshots, GroupSnapshots } from './build.ts';
import { matchesAll, matchesNode } from './node-groups.ts';
import type { NodeIdentity, Snapshot } from './snapshot.ts';

export interface Verdict {
  /** The revision that the verdict is about. */
  readonly revision: string;
  readonly outcome: 'held_back' | 'approved' | 'taken_back';
  readonly reason: string;
  /** Only of `held_back`: the content that was in force for all workers, from which the revision would remove too much;
   * undefined if none was on record. */
  readonly against?: string;
  /** The person who gave the verdict. */
  readonly by?: string;
}

export interface InForce {
  readonly revision: RevisionInfo;
  /** Wall time. */
  readonly sinceMs: number;
  readonly built: BuiltSnapshots;
  /** Whether this control plane served it to all workers without steps, as its author requested. */
  readonly isAtOnce: boolean;
  /** Whether it was unknown what the workers had before: one that holds other rules keeps them. */
  readonly isFirst?: boolean;
}

export interface Trial extends Pick<InForce, 'sinceMs' | 'built'> {
  /** The revision with its files, which are stored once the trial succeeds. */
  readonly revision: Revision;
  /** The verdict on an earlier try of this revision, or of its content. */
  readonly earlierVerdict: Verdict | undefined;
  /** Whether a node gets the revision on trial. */
  readonly isOffered: (node: NodeIdentity) => boolean;
}

export interface Serving {
  /** The revision for all nodes that do not get the one on trial; undefined: these nodes retain what they have. */
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

/** Omitted fields stay unchanged. `isNews`: whether any node is served anything different. */
export function withServing(
  before: Serving,
  to: Partial<Serving>,
): { readonly now: Serving; readonly isNews: boolean } {
  const { inForce, trial } = { ...before, ...to };
  if (inForce === before.inForce && trial === before.trial) return { now: before, isNews: false };
  const isTried = before.trial !== undefined || trial !== undefined;
  const isProvisional = before.inForce?.isFirst === true;
  const isNews =
    isTried || isProvisional || before.inForce?.built.content !== inForce?.built.content;
  return { now: { inForce, trial }, isNews };
}

/** Whether the node has other rules than those that are served for lack of anything known. */
export function holdsOther({ inForce }: Serving, node: NodeIdentity): boolean {
  if (!inForce?.isFirst || node.holds === undefined) return false;
  return node.holds !== select(inForce.built, node)?.version;
}

function servedTo(serving: Serving, node: NodeIdentity): BuiltSnapshots | undefined {
  const { inForce, trial } = serving;
  if (trial?.isOffered(node)) return trial.built;
  return holdsOther(serving, node) ? undefined : inForce?.built;
}

function select(built: BuiltSnapshots | undefined, node: NodeIdentity): Snapshot | undefined {
  return built && selectSnapshot(built.groups, node);
}

/** The snapshot for a node; it has fields of our own only if the node announces that it reads them (behaviour:
 * fields-of-our-own). */
export function selectSnapshot(
  groups: readonly GroupSnapshots[],
  node: NodeIdentity,
): Snapshot | undefined {
  const found = selectGroup(groups, node);
  const announced = node.metadata.get(extensionsKey);
  if (announced === undefined) return found?.standard;
  return announcesEnds(announced) ? found?.extended : found?.lasting;
}

/** A group is always found, since the last one matches all nodes. */
function selectGroup(
  groups: readonly GroupSnapshots[],
  node: NodeIdentity,
): GroupSnapshots | undefined {
  return groups.find(({ group }) => matchesNode(group.match, node));
}

export interface ServedCounts {
  /** Counts of the domains and limits that at least one node gets. */
  readonly domains: number;
  readonly limits: number;
  /** The first groups whose nodes get fewer domains, in the order in which nodes are matched. */
  readonly fewer: readonly GroupCounts[];
  /** The total number of such groups. */
  readonly fewerInAll: number;
}

export interface GroupCounts {
  readonly group: string;
  readonly domains: number;
  readonly limits: number;
}

const mostListed = 20;
const mostNamed = 3;
const known = new WeakMap<BuiltSnapshots, ServedCounts>();

/** Counted once per build. */
export function countServed(built: BuiltSnapshots): ServedCounts {
  const before = known.get(built);
  if (before !== undefined) return before;
  const { groups, ruleSet } = built;
  const last = groups.findIndex(({ group }) => matchesAll(group.match));
  const reached = groups.slice(0, last + 1);
  const domains = new Set<string>();
  for (const group of reached) for (const domain of group.domains) domains.add(domain);
  const countLimits = (names: Iterable<string>, count: number) => {
    if (count === ruleSet.domains.size) return ruleSet.limitCount;
    let sum = 0;
    for (const name of names) sum += ruleSet.domains.get(name)?.limitCount ?? 0;
    return sum;
  };
  const fewer = reached.filter((each) => each.domains.length < domains.size);
  const counts = {
    domains: domains.size,
    limits: countLimits(domains, domains.size),
    fewer: fewer.slice(0, mostListed).map(({ group, domains: own }) => ({
      group: group.name,
      domains: own.length,
      limits: countLimits(own, own.length),
    })),
    fewerInAll: fewer.length,
  };
  known.set(built, counts);
  return counts;
}

/** Describes which groups get fewer domains; undefined if no group does. */
export function describeFewer({
  limits,
  fewer,
  fewerInAll,
}: Omit<ServedCounts, 'domains'>): string | undefined {
  if (fewerInAll === 0) return undefined;
  const named = fewer
    .slice(0, mostNamed)
    .map(
      ({ group, limits: own }) =>
        `nodes of group '${toExcerpt(group)}' get ${own} of ${toCountText(limits, 'limit')}`,
    );
  const more = fewerInAll - named.length;
  return [
    ...named,
    ...(more > 0 ? [`nodes of ${toCountText(more, 'more group')} get fewer`] : []),
  ].join(', ');
}
