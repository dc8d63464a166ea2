// The state of the snapshots in force, for API, commands and metrics, from what cache.ts has.
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import {
  type RevisionInfo,
  saysTrailer,
  supersedeTrailer,
  toRevisionInfo,
} from '../store/revision.ts';
import type { StoreStatus } from '../store/store.ts';
import { mayRemove } from './admission.ts';
import type { GroupSnapshots } from './build.ts';
import type { NodeGroup } from './node-groups.ts';
import type { InForce, Said, Trial } from './served.ts';
import { countServed, type ServedCounts } from './served-counts.ts';
import type { NewestRevision, ServingState } from './serving-state.ts';

/** Plain data. */
export interface SnapshotState {
  readonly store: StoreStatus;
  /** The newest revision of the store, and its problems. */
  readonly newest:
    | {
        readonly revision: RevisionInfo;
        /** Equal where every node gets the same; undefined when it is invalid. */
        readonly content: string | undefined;
        readonly valid: boolean;
        /** Valid, but it would remove most limits without an approval. */
        readonly isHeldBack: boolean;
        /** Good, and next when the revision on trial is in force or taken back. */
        readonly isWaiting: boolean;
        /** About an earlier try of it, or of its content. */
        readonly saidBefore: Said | undefined;
        readonly problems: readonly Problem[];
      }
    | undefined;
  readonly inForce: InForceState | undefined;
  /** A good revision that only some workers are given, until its rollout has come to an end. */
  readonly trial: TrialState | undefined;
  /** A revision whose trial was given up here, because this newer one wants something else. */
  readonly withdrawn: { readonly revision: string; readonly by: string } | undefined;
  /** Why the revision in force may be out of date; undefined when it is current. */
  readonly stale: Staleness | undefined;
  /** Since the start of the process. */
  readonly counts: {
    readonly accepted: number;
    readonly refused: number;
    readonly takenBack: number;
  };
}

export interface TrialState {
  readonly revision: RevisionInfo;
  readonly sinceMs: number;
  /** Equal where every node gets the same. */
  readonly content: string;
  /** Whether its author wants it in place of another one's rollout. */
  readonly supersedes: boolean;
  /** Whether it may remove most limits without an approval. */
  readonly mayRemove: boolean;
  /** About an earlier try of it, or of its content. */
  readonly saidBefore: Said | undefined;
  /** The groups in the order in which nodes are matched. */
  readonly groups: readonly NodeGroup[];
  /** The names of groups whose nodes get nothing else by it. */
  readonly unchangedGroups: ReadonlySet<string>;
}

export interface InForceState {
  readonly revision: RevisionInfo;
  /** Wall time since when this revision is served by this process. */
  readonly sinceMs: number;
  /** Equal where every node gets the same. */
  readonly content: string;
  /** Whether this control plane has given it to all without steps, as its author wants it. */
  readonly isAtOnce: boolean;
  /** Whether it may remove most limits without an approval. */
  readonly mayRemove: boolean;
  readonly domains: readonly string[];
  /** What nodes get of them. */
  readonly served: ServedCounts;
  /** The groups in the order in which nodes are matched. */
  readonly groups: readonly { readonly name: string; readonly domains: readonly string[] }[];
  readonly nodeGroups: readonly NodeGroup[];
  /** Domains with fields that only Ratelane's workers get, and these fields. */
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
    newest: newest && {
      revision: toRevisionInfo(newest.whole),
      content: newest.content,
      valid: newest.invalidSinceMs === undefined,
      isHeldBack: newest.isHeldBack,
      isWaiting: newest.isWaiting,
      saidBefore: newest.saidBefore,
      problems: newest.problems,
    },
    inForce: inForce && toInForceState(inForce, mayRemoveBy(inForce.revision)),
    trial: trial && toTrialState(trial, inForce, mayRemoveBy(trial.whole)),
    withdrawn,
    stale: toStaleness(newest, store),
    counts,
  };
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
  { whole, sinceMs, built, saidBefore }: Trial,
  inForce: InForce | undefined,
  mayRemove: boolean,
): TrialState {
  return {
    revision: toRevisionInfo(whole),
    sinceMs,
    content: built.content,
    supersedes: saysTrailer(whole, supersedeTrailer),
    mayRemove,
    saidBefore,
    groups: built.groups.map(({ group }) => group),
    unchangedGroups: findUnchanged(inForce?.built.groups ?? [], built.groups),
  };
}

function findUnchanged(
  before: readonly GroupSnapshots[],
  after: readonly GroupSnapshots[],
): ReadonlySet<string> {
  const versionsOf = ({ extended, lasting, standard }: GroupSnapshots) =>
    [extended, lasting, standard].map(({ version }) => version).join(' ');
  const known = new Map(before.map((each) => [each.group.name, versionsOf(each)]));
  const unchanged = after.filter((each) => known.get(each.group.name) === versionsOf(each));
  return new Set(unchanged.map(({ group }) => group.name));
}

function toInForceState(
  { revision, sinceMs, built, isAtOnce }: InForce,
  mayRemove: boolean,
): InForceState {
  return {
    revision,
    sinceMs,
    content: built.content,
    isAtOnce,
    mayRemove,
    domains: built.domains,
    served: countServed(built),
    groups: built.groups.map(({ group, domains }) => ({ name: group.name, domains })),
    nodeGroups: built.groups.map(({ group }) => group),
    leftOut: [...built.leftOut].map(([domain, fields]) => ({ domain, fields })),
  };
}
