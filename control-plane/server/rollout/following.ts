// What a control plane serves by the record: which revision is on trial here, which workers get it, and how its trial
// ends. A control plane that was stopped for a while or cut off catches up. Decides nothing. Pure.
import { isDeepStrictEqual } from 'node:util';
import {
  isRemovalApproved,
  openRolloutOf,
  type RolloutOnRecord,
  type RolloutRecord,
  takenBackOf,
  undoableOf,
} from '../record/record.ts';
import { isOld, isVacant, leads, type RecordState } from '../record/record-state.ts';
import type { GiveWay } from '../record/remembering.ts';
import { mayRemove } from '../snapshot/admission.ts';
import type { TrialEvent } from '../snapshot/serving-state.ts';
import type { NodeIdentity } from '../snapshot/snapshot.ts';
import type { SnapshotState, TrialState } from '../snapshot/snapshot-state.ts';
import type { Revision } from '../store/revision.ts';
import { toInstance } from '../xds/workers.ts';
import type { RolloutPlan } from './plan.ts';
import { createIsWithin, type Pools, positionOf, toPools } from './pools.ts';

/** The rollout of the revision on trial, as this control plane knows it. */
export interface Running {
  readonly trial: TrialState;
  readonly plan: RolloutPlan;
  readonly pools: Pools;
  /** Whether the removals of the revision are intended: its author asked for them, they were approved, or the revision
   * undoes later ones. */
  readonly isRemovalMeant: boolean;
  /** The last rollout on record when this one began here: its end is the end of another rollout. */
  readonly rolloutBefore: string | undefined;
  /** The share that is served; undefined while no worker has the revision. */
  readonly offered: RolloutOnRecord | undefined;
  /** The verdict on a revision that is taken back here before that is on record. */
  readonly takenBack: TakenBack | undefined;
}

export interface TakenBack {
  readonly reason: string;
  readonly by: string;
  /** The id of the rollout; undefined if it had not begun. */
  readonly rollout: string | undefined;
}

/** Times are of the monotonic clock. */
export interface Following {
  /** Undefined if nothing is on trial. */
  readonly running: Running | undefined;
  /** Identifies the record by which the workers are served; undefined if the revision on trial is not known. */
  readonly serves: string | undefined;
  /** The rollout whose revision is being searched for, and since when. */
  readonly sought: { readonly id: string; readonly atMs: number };
  /** The rollout whose revision the store no longer has. */
  readonly lacking: string | undefined;
  /** The content that is in force on record but missing here, and when it was last searched for. */
  readonly missed: { readonly content: string; readonly atMs: number };
}

export type FollowEffect =
  | TrialEvent
  | { readonly kind: 'find_trial'; readonly open: RolloutOnRecord }
  | { readonly kind: 'find_in_force'; readonly wanted: InForceOnRecord; readonly before: string }
  | GiveWay;

interface FollowTurn {
  readonly following: Following;
  readonly effects: readonly FollowEffect[];
}

export interface FollowFacts {
  readonly record: RecordState;
  readonly snapshots: SnapshotState;
  readonly monotonicMs: number;
}

type InForceOnRecord = RolloutRecord['inForce'][number];

/** The time between two searches for a missing revision. */
const retryMs = 5_000;
const never = Number.NEGATIVE_INFINITY;

export const nothingFollowed: Following = {
  running: undefined,
  serves: undefined,
  sought: { id: '', atMs: never },
  lacking: undefined,
  missed: { content: '', atMs: never },
};

/** Serves the revision on trial as the record describes it. */
export function followTrial(before: Following, facts: FollowFacts, plan: RolloutPlan): FollowTurn {
  const { snapshots, monotonicMs } = facts;
  const { record, contentId } = facts.record.known;
  const open = openRolloutOf(record);
  const running = toRunning(before.running, facts, plan);
  const begun: Following = { ...before, running };
  if (open !== undefined && running?.trial.revision.id === open.revision) {
    // The revision may have been taken back since this copy of the record was stored.
    if (isOld(facts.record)) return { following: begun, effects: [] };
    return offer({ ...begun, serves: contentId }, running, open);
  }
  const settled = running && settleTrial(begun, running, record);
  const { following: trialSettled, effects } = settled ?? { following: begun, effects: [] };
  const serves = open === undefined ? contentId : undefined;
  const following: Following = { ...trialSettled, serves };
  // The revision on trial here replaces that of the open rollout, which need not be found.
  if (open === undefined || snapshots.trial?.supersedes) return { following, effects };
  const { sought } = following;
  const wasJustSought = sought.id === open.id && monotonicMs - sought.atMs < retryMs;
  const isWithdrawn = snapshots.withdrawn?.revision === open.revision;
  if (wasJustSought || isWithdrawn) return { following, effects };
  return {
    following: { ...following, sought: { id: open.id, atMs: monotonicMs } },
    effects: [...effects, { kind: 'find_trial', open }],
  };
}

function toRunning(
  before: Running | undefined,
  { snapshots, record: { known } }: FollowFacts,
  plan: RolloutPlan,
): Running | undefined {
  const { trial, inForce } = snapshots;
  const isSame = trial?.revision.id === before?.trial.revision.id;
  if (isSame && trial?.sinceMs === before?.trial.sinceMs) return before;
  return (
    trial && {
      trial,
      plan,
      // A revision does not choose its own steps: the node groups in force count.
      pools: toPools(plan.steps, inForce?.nodeGroups ?? trial.groups, trial.unchangedGroups),
      isRemovalMeant:
        mayRemove(trial.revision, false) ||
        known.record.inForce.some(({ content }) => content === trial.content) ||
        isRemovalApproved(known.record, trial.revision.id, trial.content),
      rolloutBefore: openRolloutOf(known.record) ? undefined : known.record.rollout?.id,
      offered: undefined,
      takenBack: undefined,
    }
  );
}

/** Ends, withholds or leaves the trial, for which the record has no open rollout. */
function settleTrial(following: Following, now: Running, record: RolloutRecord): FollowTurn {
  const { trial, takenBack, rolloutBefore } = now;
  const left: FollowTurn = { following, effects: [] };
  const ended = { ...following, running: undefined };
  const verdict = takenBackOf(record, trial);
  if (verdict !== undefined) {
    return { following: ended, effects: [{ kind: 'take_back_trial', reason: verdict.reason }] };
  }
  // Another control plane ended the rollout without knowing of the take-back, which is still to be written.
  if (undoableOf(record, takenBack?.rollout)) return left;
  // All workers have the revision, or had it until another one followed.
  const [inForce, inForceBefore] = record.inForce;
  const isInForce = inForce?.content === trial.content;
  const hasBegun = record.rollout?.id !== rolloutBefore;
  if (isInForce || (hasBegun && inForceBefore?.revision === trial.revision.id)) {
    return { following: ended, effects: [{ kind: 'end_trial' }] };
  }
  // Another control plane is behind this one: it rolls out a revision that this trial does not replace.
  const isOtherOpen = openRolloutOf(record) !== undefined && !trial.supersedes;
  return hasBegun && isOtherOpen ? withhold(following) : left;
}

/** Withholds the revision on trial from all workers of this control plane; streams are refreshed once. */
export function withhold(following: Following): FollowTurn {
  const { running } = following;
  if (running?.offered === undefined) return { following, effects: [] };
  return {
    following: { ...following, running: { ...running, offered: undefined } },
    effects: [{ kind: 'offer_trial', isOffered: () => false }],
  };
}

function offer(following: Following, now: Running, open: RolloutOnRecord): FollowTurn {
  const { offered, takenBack, pools } = now;
  const isSame =
    offered?.id === open.id &&
    isDeepStrictEqual([offered.chosen, offered.whole], [open.chosen, open.whole]);
  if (takenBack !== undefined || isSame) return { following, effects: [] };
  const isWithin = createIsWithin(open);
  const isOffered = (node: NodeIdentity) =>
    isWithin({
      pool: pools.poolOf(node),
      position: positionOf(open.id, node.id, toInstance(node)),
    });
  return {
    following: { ...following, running: { ...now, offered: open } },
    effects: [{ kind: 'offer_trial', isOffered }],
  };
}

/** Whether the newest revision of the store follows that of this rollout and all workers have it. A newest revision
 * with the same content does not count. */
export function isPast(
  open: RolloutOnRecord,
  { newest, inForce }: SnapshotState,
  isIncluded: boolean,
): boolean {
  return (
    isIncluded &&
    newest !== undefined &&
    newest.revision.id !== open.revision &&
    newest.revision.id === inForce?.revision.id &&
    newest.content !== open.content
  );
}

/** What the store returned for the revision of a rollout that is not on trial here. */
export interface FoundTrial {
  readonly open: RolloutOnRecord;
  /** The newest revision at the time of the search. */
  readonly newest: string;
  readonly isPast: boolean;
  /** Undefined if the store does not have the revision. */
  readonly revision: Revision | undefined;
}

export function noteFoundTrial(
  before: Following,
  found: FoundTrial,
  facts: FollowFacts,
): FollowTurn {
  const { open, newest, revision } = found;
  const { record, snapshots } = facts;
  const isStillOpen = openRolloutOf(record.known.record)?.id === open.id;
  const isStillNewest = snapshots.newest?.revision.id === newest;
  if (!isStillOpen || !isStillNewest) return { following: before, effects: [] };
  const canReadStore = snapshots.store.failingSinceMs === undefined;
  const lacking = revision === undefined && canReadStore ? open.id : undefined;
  const following = { ...before, lacking };
  if (snapshots.trial?.revision.id === open.revision) return { following, effects: [] };
  if (revision !== undefined) return { following, effects: [{ kind: 'follow_trial', revision }] };
  // The leader decides, unless there is no leader or all workers already have a later revision.
  const canGiveWay = found.isPast || isVacant(record) || leads(record);
  return { following, effects: canGiveWay ? [{ kind: 'give_way', open, newest }] : [] };
}

/** Catches up with what is in force on record: this control plane was stopped or cut off when that came into force.
 * `isUnwritten`: whether the content in force here is about to be put on record. */
export function catchUp(before: Following, facts: FollowFacts, isUnwritten: boolean): FollowTurn {
  const { snapshots, monotonicMs } = facts;
  const { error, known } = facts.record;
  const { inForce, trial, newest } = snapshots;
  const nothing: FollowTurn = { following: before, effects: [] };
  const [wanted] = known.record.inForce;
  if (wanted === undefined || error !== undefined) return nothing;
  if ([inForce?.content, trial?.content].includes(wanted.content)) return nothing;
  // The record was written by another version, which computes content ids differently.
  if (inForce?.revision.id === wanted.revision) return nothing;
  // `remember` puts on record what this control plane gave to all workers by itself, unless that was rolled out in
  // steps: then it only took the revision for what it already served.
  const isNewest = inForce?.revision.id === newest?.revision.id && newest?.isHeldBack === false;
  const isOfRollout = known.record.rollout?.revision === inForce?.revision.id;
  const willBeOnRecord = inForce?.isAtOnce && !isOfRollout && (isNewest || isUnwritten);
  if (willBeOnRecord) return nothing;
  const { missed } = before;
  if (missed.content === wanted.content && monotonicMs - missed.atMs < retryMs) return nothing;
  return {
    following: { ...before, missed: { content: wanted.content, atMs: monotonicMs } },
    effects: [{ kind: 'find_in_force', wanted, before: inForce?.revision.id ?? '' }],
  };
}

/** What the store returned for the revision in force on record. */
export interface FoundInForce {
  readonly wanted: InForceOnRecord;
  /** The revision in force here at the time of the search. */
  readonly before: string;
  readonly revision: Revision | undefined;
}

export function noteFoundInForce(
  following: Following,
  { wanted, before, revision }: FoundInForce,
  { record, snapshots }: FollowFacts,
): FollowTurn {
  const isStillMissing =
    record.known.record.inForce[0]?.content === wanted.content &&
    (snapshots.inForce?.revision.id ?? '') === before;
  const isFollowed = revision !== undefined && isStillMissing;
  return { following, effects: isFollowed ? [{ kind: 'follow_in_force', revision }] : [] };
}
