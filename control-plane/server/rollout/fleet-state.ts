// One immutable value holds what a control plane knows about its fleet's revisions, except the record and what it serves;
// its events, its effects, and the changes of the record that both a decision and an operator's action make. Pure.
import { toWorkerName } from '../fleet/worker-name.ts';
import type { PeerAnswer } from '../record/peers/peers.ts';
import {
  openRolloutOf,
  type RolloutOnRecord,
  type RolloutRecord,
  undoableOf,
  withEnd,
} from '../record/record.ts';
import {
  type ChangeRecord,
  type DecisionEvent,
  leads,
  type RecordState,
  stepsOf,
} from '../record/record-state.ts';
import { type Memory, noMemory, type ToRemember } from '../record/remembering.ts';
import { toReplaced } from '../snapshot/admission.ts';
import { toDigest } from '../snapshot/snapshot.ts';
import { toShortId } from '../store/revision.ts';
import { become, type Turn as StepTurn } from '../turn.ts';
import type { ConnectedWorker } from '../xds/workers.ts';
import { type RolloutAction, withTakenBack } from './changes.ts';
import { type Decision, foreseeIndivisible } from './decide.ts';
import type { OwnFacts, RolloutFacts } from './facts.ts';
import { startWatch, type WatchMemory } from './fleet-watch.ts';
import {
  type FollowEffect,
  type FollowFacts,
  type Following,
  type FoundInForce,
  type FoundTrial,
  type followTrial,
  nothingFollowed,
  type Running,
  withhold,
} from './following.ts';
import type { RolloutPlan } from './plan.ts';
import type { View } from './view.ts';

export interface FleetOptions {
  /** Whether notifications of outcomes are sent. */
  readonly reportsOutcomes: boolean;
  readonly hasPeers: boolean;
}

/** Times are of the monotonic clock. */
export interface FleetState {
  readonly options: FleetOptions;
  readonly memory: Memory;
  readonly following: Following;
  readonly watch: WatchMemory;
  /** The peers' last reports; at most one question is on its way. `askedAtMs`: on the monotonic clock. */
  readonly peers: {
    readonly isAsking: boolean;
    readonly known: { readonly askedAtMs: number; readonly answers: Answers } | undefined;
  };
  /** The view behind the last decision; undefined before the first. */
  readonly view: View | undefined;
  readonly decision: Omit<Decision, 'change'>;
  /** The leader's last sign of life: a record with new content, or a question. */
  readonly led: { readonly contentId: string; readonly atMs: number };
  /** How often peers were notified of the record with this content. */
  readonly notified: { readonly contentId: string; readonly times: number };
  /** When the store was last asked for a newer revision because of a trial. */
  readonly storeAtMs: number;
  /** The newest revision for which the store was asked whether it follows the one on trial. */
  readonly located: string | undefined;
  /** Whether the check that shares can be made of the workers has run; a problem is logged once. */
  readonly hasForeseen: boolean;
  /** Whether the steps of this control plane have been put on record since its start. */
  readonly areStepsOnRecord: boolean;
  /** The last sentence about steps that differ from those of this control plane. */
  readonly otherSteps: string | undefined;
  /** Whether a check is between its two steps, which changes what is served: that must not cause another check. */
  readonly isChecking: boolean;
  /** The number of changes that are being written. */
  readonly writing: number;
  readonly isStopped: boolean;
}

export type Answers = readonly PeerAnswer<RolloutFacts>[];

/** The facts at the moment of an event. */
export interface Facts extends FollowFacts {
  readonly wallMs: number;
  /** The id for a rollout that begins now. */
  readonly freshId: string;
}

/** An operator's request: `asked` identifies who waits for the answer. */
export interface Asked {
  readonly asked: number;
  readonly reason: string;
  readonly by: string;
}

/** What an operator saw when deciding on an action: the action does not apply to any other rollout. */
export interface Meant {
  /** The id as `toShownId` formats it. */
  readonly rollout?: string | undefined;
  /** The first characters of the revision's id. */
  readonly revision?: string | undefined;
}

export interface ApproveEvent extends Asked {
  readonly kind: 'approve';
  readonly revision: string;
  readonly contentOfStep: string | undefined;
}

export type FleetEvent =
  /** Happens about once a second, and after each change of the record or of what is served. `mayDiffer`: the verdict on
   * record may differ from the one by which the newest revision was judged. */
  | { readonly kind: 'check'; readonly mayDiffer: boolean }
  /** What is on record is served. `own`: undefined if nothing is on trial. */
  | {
      readonly kind: 'followed';
      readonly workers: readonly ConnectedWorker[];
      readonly own: OwnFacts | undefined;
      /** Whether any worker has other rules than those that are served for lack of anything known. */
      readonly holdOther: boolean;
    }
  | { readonly kind: 'written'; readonly write: Write; readonly isWritten: boolean }
  | { readonly kind: 'found_trial'; readonly found: FoundTrial }
  | { readonly kind: 'found_in_force'; readonly found: FoundInForce }
  /** `isIncluded`: whether one of the two revisions follows the other, as far as the store knows. */
  | {
      readonly kind: 'located';
      readonly revision: string;
      readonly newest: string;
      readonly isIncluded: boolean;
    }
  | {
      /** `contentId`: identifies the record at the time of the question. */
      readonly kind: 'answered';
      readonly askedAtMs: number;
      readonly contentId: string;
      readonly answers: Answers;
    }
  /** A peer that leads, or that `undoes` the rollout, has asked. */
  | { readonly kind: 'asked'; readonly undoes: boolean }
  | ({ readonly kind: 'act'; readonly action: RolloutAction; readonly meant?: Meant } & Asked)
  /** `contentOfStep`: the content of a revision on the way to the newest one; the policy refuses the newest one because
   * of it. */
  | ApproveEvent
  /** An operator undoes the revision on trial in the store, which may take long. */
  | { readonly kind: 'undo'; readonly reason: string; readonly by: string }
  | { readonly kind: 'stop' }
  /** Another control plane is allowed to lead. */
  | { readonly kind: 'handed_over' };

/** Effects are performed in the order in which a step names them: workers get their revision before anyone is notified,
 * and a change is written last. */
export type FleetEffect =
  | Exclude<FollowEffect, { readonly kind: 'give_way' }>
  /** The second step of a check. */
  | { readonly kind: 'followed' }
  | { readonly kind: 'poll_store' }
  | { readonly kind: 'locate'; readonly revision: string; readonly newest: string }
  | DecisionEvent
  | {
      readonly kind: 'ask_peers';
      readonly contentId: string;
      readonly undoes: boolean;
    }
  | Report
  | { readonly kind: 'answer'; readonly asked: number; readonly problem: string | undefined }
  | { readonly kind: 'write'; readonly write: Write };

type Report =
  | { readonly kind: 'log'; readonly level: 'notice' | 'warning'; readonly text: string }
  | { readonly kind: 'audit'; readonly revision: string; readonly what: string };

/** A change of the record, and what follows from its result. */
export interface Write {
  readonly change: ChangeRecord;
  /** What is reported once the change is on record. */
  readonly reports?: readonly Report[];
  /** What happens if the change is not written: `compare_again` compares what is in force again, `keep` stores the
   * change for the next start. */
  readonly otherwise?: 'compare_again' | 'keep';
  /** `problem`: the answer if the change is not written although the record has no error. `anyway`: what holds in
   * either case. */
  readonly asked?: {
    readonly asked: number;
    readonly problem: string;
    readonly anyway: string;
    /** The rollout that is to be taken back: another control plane may have been notified and have written that
     * first. */
    readonly ends?: string;
  };
}

export type Turn = StepTurn<FleetState, FleetEffect>;

export function startFleet(
  options: FleetOptions,
  { record, monotonicMs }: Pick<Facts, 'record' | 'monotonicMs'>,
): FleetState {
  return {
    options,
    memory: noMemory,
    following: nothingFollowed,
    watch: startWatch(monotonicMs),
    peers: { isAsking: false, known: undefined },
    view: undefined,
    decision: { phase: 'gathering', text: '' },
    led: { contentId: record.known.contentId, atMs: monotonicMs },
    notified: { contentId: '', times: 0 },
    storeAtMs: monotonicMs,
    located: undefined,
    hasForeseen: false,
    areStepsOnRecord: false,
    otherSteps: undefined,
    isChecking: false,
    writing: 0,
    isStopped: false,
  };
}

export function follow(
  turn: Turn,
  { following, effects }: ReturnType<typeof followTrial>,
  facts: Facts,
): Turn {
  return applyAll(become(turn, { following }), effects, facts);
}

export function applyAll(
  turn: Turn,
  effects: readonly (FollowEffect | ToRemember)[],
  facts: Facts,
): Turn {
  return effects.reduce((now, each) => {
    if (each.kind === 'give_way') {
      return abort(now, each.open, { reason: toReplaced(each.newest), by: '' }, facts);
    }
    return each.kind === 'write' ? write(now, each, facts) : become(now, {}, each);
  }, turn);
}

/** Describes steps on record that differ from those of this control plane, for operators. */
export function whyOtherSteps(record: RecordState): string | undefined {
  const { steps } = record.options;
  const planned = stepsOf(record);
  if (planned === steps) return undefined;
  const own = steps === '' ? 'no --rollout' : `--rollout=${steps}`;
  return `the steps on record apply, ${planned}, which another control plane has written; this one has ${own}`;
}

export function abort(
  turn: Turn,
  { id }: RolloutOnRecord,
  { reason, by }: { readonly reason: string; readonly by: string },
  facts: Facts,
): Turn {
  const end = { reason, by, atMs: facts.wallMs };
  const change: ChangeRecord = (record) =>
    openRolloutOf(record)?.id === id ? withEnd(record, 'taken_back', end) : undefined;
  return write(turn, { change }, facts);
}

export function write(turn: Turn, given: Write, facts: Facts): Turn {
  const { isStopped, writing } = turn.state;
  if (isStopped) return noteWritten(turn, given, false, facts);
  return become(turn, { writing: writing + 1 }, { kind: 'write', write: given });
}

export function noteWritten(
  turn: Turn,
  { reports = [], otherwise, asked, change }: Write,
  isWritten: boolean,
  facts: Facts,
): Turn {
  const { error } = facts.record;
  const isDone = isWritten || isTakenBack(facts.record.known.record, asked?.ends);
  const why = error ?? (turn.state.isStopped ? 'this control plane stops: try again' : undefined);
  const problem = asked && (isDone ? undefined : `${why ?? asked.problem}${asked.anyway}`);
  const answered = asked ? answer(turn, asked.asked, problem) : turn;
  if (isWritten) return become(answered, {}, ...reports);
  if (otherwise === 'compare_again') {
    return become(answered, { memory: { ...answered.state.memory, compared: undefined } });
  }
  const isStored = otherwise === 'keep' && error !== undefined;
  return isStored
    ? become(answered, {}, { kind: 'stored_locally', change, isKnownHere: false })
    : answered;
}

function isTakenBack({ verdicts }: RolloutRecord, id: string | undefined): boolean {
  return (
    id !== undefined &&
    verdicts.some((each) => each.outcome === 'taken_back' && each.rollout === id)
  );
}

/** Only a control plane that leads knows the facts of all. */
export function asksPeers({ options, following }: FleetState, { record }: Facts): boolean {
  return options.hasPeers && (leads(record) || following.running?.takenBack !== undefined);
}

export function askPeers(turn: Turn, { record }: Facts): Turn {
  const { peers, options } = turn.state;
  if (!options.hasPeers || peers.isAsking) return turn;
  const { contentId } = record.known;
  const undoes = toTakenBack(turn.state, record.known.record) !== null;
  const asking = { peers: { ...peers, isAsking: true } };
  return become(turn, asking, { kind: 'ask_peers', contentId, undoes });
}

/** The take-back that peers must be notified of because it is not on record yet. */
export function toTakenBack(
  { following: { running } }: Pick<FleetState, 'following'>,
  record: RolloutRecord,
): (RolloutFacts['takenBack'] & object) | null {
  const { takenBack } = running ?? {};
  const rollout = undoableOf(record, takenBack?.rollout)?.id;
  return takenBack && rollout !== undefined ? { ...takenBack, rollout } : null;
}

/** Explains, before there is a revision, why the next one could not reach these workers in steps: peers may have more
 * workers. */
export function foresee(
  { options, following }: FleetState,
  workers: readonly ConnectedWorker[],
  plan: RolloutPlan,
): string | undefined {
  if (options.hasPeers || following.running !== undefined) return undefined;
  const named = workers.map((worker) => ({
    name: `'${toWorkerName(worker, false)}'`,
    position: worker.instance ?? '',
  }));
  return foreseeIndivisible(named, plan);
}

/** Makes the rollout as it is in its first step. */
export function toBegun({ trial: { revision, content } }: Running, { freshId }: Facts) {
  return { id: freshId, revision: revision.id, content };
}

/** Takes the revision back here at once, and everywhere once that is on record. */
export function takeBack(
  turn: Turn,
  now: Running,
  { reason, by }: { readonly reason: string; readonly by: string },
  facts: Facts,
  asked?: Write['asked'],
): Turn {
  const { rolloutBefore } = now;
  const revision = idOf(now);
  const { following } = turn.state;
  const open = openRolloutOf(facts.record.known.record);
  const begun = open?.revision === revision ? open.id : undefined;
  const undoes = now.takenBack?.rollout ?? begun;
  const running = { ...now, takenBack: { reason, by, rollout: undoes } };
  const withheld = follow(turn, withhold({ ...following, running }), facts);
  const rollout = toBegun(now, facts);
  const end = { reason, by, atMs: facts.wallMs, rolloutBefore, undoes };
  const change: ChangeRecord = (record) => withTakenBack(record, rollout, end);
  const what = `take back revision ${toShortId(revision)}: ${reason}`;
  const reports = by === '' ? [{ kind: 'audit', revision, what } as const] : [];
  return write(withheld, { change, reports, otherwise: 'keep', ...(asked && { asked }) }, facts);
}

/** The id of a rollout as users see it: the places of workers can be derived from the full id. */
export function toShownId({ id }: RolloutOnRecord): string {
  return toDigest(id).slice(0, 12);
}

export function answer(turn: Turn, asked: number, problem: string | undefined): Turn {
  return become(turn, {}, { kind: 'answer', asked, problem });
}

export function toLog(now: Running, level: 'notice' | 'warning', what: string): Report {
  return { kind: 'log', level, text: `Rollout of revision ${toShortId(idOf(now))}: ${what}` };
}

export function idOf({ trial }: Running): string {
  return trial.revision.id;
}
