// The state of the snapshots in force, from cache.ts, for the API, commands and metrics.
import {
  hasTrailer,
  type RevisionInfo,
  supersedeTrailer,
  toRevisionInfo,
} from '../store/revision.ts';
import type { StoreStatus } from '../store/store.ts';
import { contentOf, mayRemove } from './admission.ts';
import type { GroupSnapshots } from './build.ts';
import type { NodeGroup } from './node-groups.ts';
import { countServed, type InForce, type ServedCounts, type Trial } from './served.ts';
import type { NewestRevision, ServingState } from './serving-state.ts';
import { variants } from './snapshot.ts';

/** Plain data. */
export interface SnapshotState extends Pick<ServingState, 'withdrawn' | 'counts'> {
  readonly store: StoreStatus;
  /** The newest revision of the store, and its problems. */
  readonly newest: NewestState | undefined;
  readonly inForce: InForceState | undefined;
  /** A valid revision that only some workers get until its rollout ends. */
  readonly trial: TrialState | undefined;
  /** Why the revision in force may be out of date; undefined when it is current. */
  readonly stale: Staleness | undefined;
}

interface NewestState extends Omit<NewestRevision, 'revision' | 'outcome' | 'invalidSinceMs'> {
  readonly revision: RevisionInfo;
  /** Undefined when it is invalid. */
  readonly content: string | undefined;
  readonly valid: boolean;
}

/** `sinceMs`: wall time since when this process serves the revision. */
interface ServedState extends Pick<InForce, 'revision' | 'sinceMs'> {
  /** Equal if every node gets the same. */
  readonly content: string;
  /** Whether it may remove most limits without an approval. */
  readonly mayRemove: boolean;
}

export interface TrialState extends ServedState, Pick<Trial, 'earlierVerdict'> {
  /** Whether its author wants it to replace another author's rollout. */
  readonly supersedes: boolean;
  /** The groups in the order in which nodes are matched. */
  readonly groups: readonly NodeGroup[];
  /** Names of the groups whose nodes get nothing different with this revision. */
  readonly unchangedGroups: ReadonlySet<string>;
}

export interface InForceState extends ServedState, Pick<InForce, 'isAtOnce' | 'isFirst'> {
  readonly domains: readonly string[];
  /** The part of the rules that nodes get. */
  readonly served: ServedCounts;
  /** The groups in the order in which nodes are matched. */
  readonly groups: readonly { readonly name: string; readonly domains: readonly string[] }[];
  readonly nodeGroups: readonly NodeGroup[];
  /** Domains with fields that only Ratelane workers get, and these fields. */
  readonly leftOut: readonly { readonly domain: string; readonly fields: readonly string[] }[];
}

export interface Staleness {
  /** The newest revision has errors, or the store cannot be read. */
  readonly reason: 'newest_invalid' | 'store_unreachable';
  /** Wall time. */
  readonly sinceMs: number;
}

export function toSnapshotState(
  { inForce, trial, newest, withdrawn, counts, options }: ServingState,
  store: StoreStatus,
): SnapshotState {
  const mayRemoveBy = (revision: RevisionInfo) => mayRemove(revision, options.allowsRemoval);
  return {
    store,
    newest: newest && toNewestState(newest),
    inForce: inForce && toInForceState(inForce, mayRemoveBy(inForce.revision)),
    trial: trial && toTrialState(trial, inForce, mayRemoveBy(trial.revision)),
    withdrawn,
    stale: toStaleness(newest, store),
    counts,
  };
}

function toNewestState({
  revision,
  outcome,
  invalidSinceMs,
  ...judged
}: NewestRevision): NewestState {
  const content = contentOf({ outcome });
  const valid = invalidSinceMs === undefined;
  return { ...judged, revision: toRevisionInfo(revision), content, valid };
}

function toStaleness(
  newest: NewestRevision | undefined,
  { failingSinceMs }: StoreStatus,
): Staleness | undefined {
  if (newest?.invalidSinceMs !== undefined) {
    return { reason: 'newest_invalid', sinceMs: newest.invalidSinceMs };
  }
  return failingSinceMs === undefined
    ? undefined
    : { reason: 'store_unreachable', sinceMs: failingSinceMs };
}

function toTrialState(
  { revision, sinceMs, built, earlierVerdict }: Trial,
  inForce: InForce | undefined,
  mayRemove: boolean,
): TrialState {
  return {
    revision: toRevisionInfo(revision),
    sinceMs,
    content: built.content,
    supersedes: hasTrailer(revision, supersedeTrailer),
    mayRemove,
    earlierVerdict,
    groups: built.groups.map(({ group }) => group),
    unchangedGroups: findUnchanged(inForce?.built.groups ?? [], built.groups),
  };
}

function findUnchanged(
  before: readonly GroupSnapshots[],
  after: readonly GroupSnapshots[],
): ReadonlySet<string> {
  const versionsOf = (each: GroupSnapshots) =>
    variants.map((variant) => each[variant].version).join(' ');
  const known = new Map(before.map((each) => [each.group.name, versionsOf(each)]));
  const unchanged = after.filter((each) => known.get(each.group.name) === versionsOf(each));
  return new Set(unchanged.map(({ group }) => group.name));
}

function toInForceState(
  { revision, sinceMs, built, isAtOnce, isFirst }: InForce,
  mayRemove: boolean,
): InForceState {
  return {
    revision,
    sinceMs,
    content: built.content,
    isAtOnce,
    ...(isFirst && { isFirst }),
    mayRemove,
    domains: built.domains,
    served: countServed(built),
    groups: built.groups.map(({ group, domains }) => ({ name: group.name, domains })),
    nodeGroups: built.groups.map(({ group }) => group),
    leftOut: [...built.leftOut].map(([domain, fields]) => ({ domain, fields })),
  };
}
