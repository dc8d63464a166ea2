// What a control plane serves by the record: whose revision is on trial here, to which workers, and what becomes of it
// at the end. One that was stopped for a while or was cut off catches up. Decides nothing. Pure.
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
import { createIsWithin, type Pools, placeOf, toPools } from './pools.ts';

/** The rollout of the revision on trial, as this control plane has it. */
export interface Running {
  readonly trial: TrialState;
  readonly plan: RolloutPlan;
  readonly pools: Pools;
  /** Whether what it removes is intended: its author asked for it, it was approved, or it undoes what came after it. */
  readonly isRemovalMeant: boolean;
  /** Of the record when it began here: that is the end of another rollout. */
  readonly endedBefore: string | undefined;
  /** The share that is served; undefined while no worker has it. */
  readonly offered: RolloutOnRecord | undefined;
  /** The verdict of a revision that is taken back here before that is on record. */
  readonly takenBack: TakenBack | undefined;
}

export interface TakenBack {
  readonly reason: string;
  readonly by: string;
  /** The rollout; undefined where it had not begun. */
  readonly rollout: string | undefined;
}

/** Times are of the monotonic clock. */
export interface Following {
  /** Undefined when nothing is on trial. */
  readonly running: Running | undefined;
  /** Identifies the record that the workers are served by; undefined where the revision on trial is not known. */
  readonly serves: string | undefined;
  /** The rollout of a revision that is looked for, and since when. */
  readonly sought: { readonly id: string; readonly atMs: number };
  /** The rollout of a revision that the store does not have any more. */
  readonly lacking: string | undefined;
  /** The revision in force on record that is not here, and when it was last looked for. */
  readonly missed: { readonly content: string; readonly atMs: number };
}

export type FollowEffect =
  | TrialEvent
  | { readonly kind: 'find_trial'; readonly open: RolloutOnRecord }
  | { readonly kind: 'find_in_force'; readonly wanted: InForceOnRecord; readonly before: string }
  | GiveWay;

interface Turn {
  readonly following: Following;
  readonly effects: readonly FollowEffect[];
}

export interface Facts {
  readonly record: RecordState;
  readonly snapshots: SnapshotState;
  readonly monotonicMs: number;
}

type InForceOnRecord = RolloutRecord['inForce'][number];

/** Between two looks for a revision that was not there. */
const retryMs = 5_000;
const never = Number.NEGATIVE_INFINITY;

export const nothingFollowed: Following = {
  running: undefined,
  serves: undefined,
  sought: { id: '', atMs: never },
  lacking: undefined,
  missed: { content: '', atMs: never },
};

/** Serves the revision on trial as the record has it. */
export function followTrial(before: Following, facts: Facts, plan: RolloutPlan): Turn {
  const { snapshots, monotonicMs } = facts;
  const { record } = facts.record.known;
  const open = openRolloutOf(record);
  const { trial } = snapshots;
  const running = begin(before.running, facts, plan);
  const settled: Turn =
    running === undefined || open?.revision === running.trial.revision.id
      ? { following: { ...before, running }, effects: [] }
      : settle({ ...before, running }, running, record);
  const now = settled.following.running;
  const isOpen = now !== undefined && open?.revision === now.trial.revision.id;
  const isHere = open === undefined || isOpen;
  const serves = isHere ? facts.record.known.contentId : undefined;
  const following = { ...settled.following, serves };
  if (isOpen) {
    // It may have been taken back meanwhile.
    return isOld(facts.record) ? settled : offer(following, now, open);
  }
  if (open === undefined || trial?.supersedes) return { ...settled, following };
  // The revision of this rollout is not on trial here: it is not known yet, or there is a newer one.
  const { sought } = following;
  const isTried = sought.id === open.id && monotonicMs - sought.atMs < retryMs;
  if (isTried || snapshots.withdrawn?.revision === open.revision) return { ...settled, following };
  return {
    following: { ...following, sought: { id: open.id, atMs: monotonicMs } },
    effects: [...settled.effects, { kind: 'find_trial', open }],
  };
}

function begin(
  before: Running | undefined,
  { snapshots, record: { known } }: Facts,
  plan: RolloutPlan,
): Running | undefined {
  const { trial, inForce } = snapshots;
  const isSame = trial?.revision.id === before?.trial.revision.id;
  if (isSame && trial?.sinceMs === before?.trial.sinceMs) return before;
  return (
    trial && {
      trial,
      plan,
      // A revision does not choose its own steps: those of the groups in force count.
      pools: toPools(plan.steps, inForce?.nodeGroups ?? trial.groups, trial.unchangedGroups),
      isRemovalMeant:
        mayRemove(trial.revision, false) ||
        known.record.inForce.some(({ content }) => content === trial.content) ||
        isRemovalApproved(known.record, trial.revision.id, trial.content),
      endedBefore: openRolloutOf(known.record) ? undefined : known.record.rollout?.id,
      offered: undefined,
      takenBack: undefined,
    }
  );
}

/** The record has another rollout than that of the revision on trial, or has it no more. */
function settle(following: Following, now: Running, record: RolloutRecord): Turn {
  const ended = { ...following, running: undefined };
  const { trial } = now;
  const takenBack = takenBackOf(record, trial);
  if (takenBack !== undefined) {
    return {
      following: ended,
      effects: [{ kind: 'take_back_trial', reason: takenBack.reason }],
    };
  }
  // Another control plane ended it without knowledge of the take-back.
  if (undoableOf(record, now.takenBack?.rollout)) return { following, effects: [] };
  const isInForce = record.inForce[0]?.content === trial.content;
  if (record.rollout?.id === now.endedBefore && !isInForce) return { following, effects: [] };
  // Another revision may have followed already.
  if (isInForce || record.inForce[1]?.revision === trial.revision.id) {
    return { following: ended, effects: [{ kind: 'end_trial' }] };
  }
  // Another control plane has not come as far as this one.
  const isElse = openRolloutOf(record) !== undefined && !trial.supersedes;
  return isElse ? withhold(following) : { following, effects: [] };
}

/** No worker of this control plane has the revision on trial from now on; streams are refreshed once. */
export function withhold(following: Following): Turn {
  const { running } = following;
  if (running?.offered === undefined) return { following, effects: [] };
  return {
    following: { ...following, running: { ...running, offered: undefined } },
    effects: [{ kind: 'offer_trial', isOffered: () => false }],
  };
}

function offer(following: Following, now: Running, open: RolloutOnRecord): Turn {
  const { offered, takenBack, pools } = now;
  const isSame =
    offered?.id === open.id &&
    isDeepStrictEqual([offered.chosen, offered.whole], [open.chosen, open.whole]);
  if (takenBack !== undefined || isSame) return { following, effects: [] };
  const isWithin = createIsWithin(open);
  const isOffered = (node: NodeIdentity) =>
    isWithin({ pool: pools.poolOf(node), place: placeOf(open.id, node.id, toInstance(node)) });
  return {
    following: { ...following, running: { ...now, offered: open } },
    effects: [{ kind: 'offer_trial', isOffered }],
  };
}

/** Whether the newest revision of the store has gone on from that of this rollout, and everybody has it. Nobody has gone
 * on where the newest one has the same content. */
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

/** What the store has of the revision of a rollout that is not on trial here. */
export interface FoundTrial {
  readonly open: RolloutOnRecord;
  /** The newest revision when it was looked for. */
  readonly newest: string;
  readonly isPast: boolean;
  /** Undefined where the store does not have it. */
  readonly revision: Revision | undefined;
}

export function noteFoundTrial(before: Following, found: FoundTrial, facts: Facts): Turn {
  const { open, newest, revision } = found;
  const { record, snapshots } = facts;
  const isElse = openRolloutOf(record.known.record)?.id !== open.id;
  // Another revision has come meanwhile.
  const isOld = snapshots.newest?.revision.id !== newest;
  if (isElse || isOld) return { following: before, effects: [] };
  const isThere = snapshots.store.failingSinceMs === undefined;
  const lacking = revision === undefined && isThere ? open.id : undefined;
  const following = { ...before, lacking };
  if (snapshots.trial?.revision.id === open.revision) return { following, effects: [] };
  if (revision !== undefined) return { following, effects: [{ kind: 'follow_trial', revision }] };
  const mayEnd = found.isPast || isVacant(record) || leads(record);
  return { following, effects: mayEnd ? [{ kind: 'give_way', open, newest }] : [] };
}

/** This control plane has not seen how what is in force came to be so: it was stopped, or was cut off. `isUnwritten`:
 * whether the content in force here is not on record yet, and will be. */
export function catchUp(before: Following, facts: Facts, isUnwritten: boolean): Turn {
  const { snapshots, monotonicMs } = facts;
  const { trouble, known } = facts.record;
  const { inForce, trial, newest } = snapshots;
  const nothing: Turn = { following: before, effects: [] };
  const [wanted] = known.record.inForce;
  if (wanted === undefined || trouble !== undefined) return nothing;
  if ([inForce?.content, trial?.content].includes(wanted.content)) return nothing;
  // Written by another version, which names contents otherwise.
  if (inForce?.revision.id === wanted.revision) return nothing;
  // Its author wants it in place of what is on record, which follows.
  const isNewest = inForce?.revision.id === newest?.revision.id && newest?.isHeldBack === false;
  // Unless it is in steps, or was, which this control plane took for what it served already.
  const isTried = known.record.rollout?.revision === inForce?.revision.id;
  if (inForce?.isAtOnce && !isTried && (isNewest || isUnwritten)) return nothing;
  const { missed } = before;
  if (missed.content === wanted.content && monotonicMs - missed.atMs < retryMs) return nothing;
  return {
    following: { ...before, missed: { content: wanted.content, atMs: monotonicMs } },
    effects: [{ kind: 'find_in_force', wanted, before: inForce?.revision.id ?? '' }],
  };
}

/** What the store has of the revision in force on record. */
export interface FoundInForce {
  readonly wanted: InForceOnRecord;
  /** In force here when it was looked for. */
  readonly before: string;
  readonly revision: Revision | undefined;
}

export function noteFoundInForce(
  following: Following,
  { wanted, before, revision }: FoundInForce,
  { record, snapshots }: Facts,
): Turn {
  const isStill =
    record.known.record.inForce[0]?.content === wanted.content &&
    (snapshots.inForce?.revision.id ?? '') === before;
  const isFollowed = revision !== undefined && isStill;
  return { following, effects: isFollowed ? [{ kind: 'follow_in_force', revision }] : [] };
}
