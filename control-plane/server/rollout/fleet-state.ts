// One immutable value holds what a control plane knows of its fleet's revisions, except the record and what it serves;
// `step` makes the next value from an event. A step names the effects, rollout.ts performs them, and their results are
// the next events. A look has two steps: the first serves what is on record, the second puts on record what has
// happened, and decides. fleet-table.txt lists each event in each state, with its effects. Pure.
import { isDeepStrictEqual } from 'node:util';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { toWorkerName } from '../fleet/worker-name.ts';
import type { PeerAnswer } from '../record/peers/peers.ts';
import {
  heldBackOf,
  openRolloutOf,
  type RolloutOnRecord,
  type RolloutRecord,
  takenBackOf,
  undoableOf,
  whyTakenBack,
  withEnd,
  withVerdict,
} from '../record/record.ts';
import {
  type ChangeRecord,
  type DecisionEvent,
  errorOf,
  isShared,
  isVacant,
  leads,
  type RecordState,
  stepsOf,
} from '../record/record-state.ts';
import { type Memory, noMemory, remember, type ToRemember } from '../record/remembering.ts';
import { toReplaced } from '../snapshot/admission.ts';
import { toDigest } from '../snapshot/snapshot.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import { toShortId } from '../store/revision.ts';
import { become, type Turn as StepTurn } from '../turn.ts';
import type { ConnectedWorker } from '../xds/workers.ts';
import { type RolloutAction, withAction, withBegun, withChange, withTakenBack } from './changes.ts';
import { type Change, type Decision, decide, foreseeIndivisible } from './decide.ts';
import { noPeers, type OwnFacts, type PeerFacts, type RolloutFacts, toPeerFacts } from './facts.ts';
import {
  gatherAgain,
  isGathered,
  startWatch,
  type WatchMemory,
  watch,
  watchCount,
} from './fleet-watch.ts';
import {
  catchUp,
  type FollowEffect,
  type Facts as FollowFacts,
  type Following,
  type FoundInForce,
  type FoundTrial,
  followTrial,
  noteFoundInForce,
  noteFoundTrial,
  nothingFollowed,
  type Running,
  withhold,
} from './following.ts';
import { planOf, type RolloutPlan } from './plan.ts';
import { isGiven } from './pools.ts';
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
  /** Whether a look is between its two steps, which changes what is served: that must not cause another look. */
  readonly isChecking: boolean;
  /** The number of changes that are being written. */
  readonly writing: number;
  readonly isStopped: boolean;
}

type Answers = readonly PeerAnswer<RolloutFacts>[];

/** The facts at the moment of an event. */
export interface Facts extends FollowFacts {
  readonly wallMs: number;
  /** The id for a rollout that begins now. */
  readonly freshId: string;
}

/** An operator's request: `asked` identifies who waits for the answer. */
interface Asked {
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

interface ApproveEvent extends Asked {
  readonly kind: 'approve';
  readonly revision: string;
  readonly contentOfStep: string | undefined;
}

export type FleetEvent =
  /** Happens about once a second, and after each change of the record or of what is served. `mayBeElse`: the verdict on
   * record may differ from the one by which the newest revision was judged. */
  | { readonly kind: 'look'; readonly mayBeElse: boolean }
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
  /** The second step of a look. */
  | { readonly kind: 'followed' }
  | { readonly kind: 'look_at_store' }
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

/** The time between two checks of the store while a revision is on trial, however rarely it is checked otherwise. */
const storeMs = 5_000;
/** A leader that has neither asked nor written for this long may be gone. */
const ledMs = 5_000;
/** How often peers are notified of a record that this control plane wrote while no rollout is under way. */
const maxNotices = 5;
const noRollout = 'no rollout is under way';

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

export function step(state: FleetState, event: FleetEvent, facts: Facts): Turn {
  const turn: Turn = { state, effects: [] };
  switch (event.kind) {
    case 'look':
      return check(turn, event.mayBeElse, facts);
    case 'followed':
      return noteFollowed(turn, event, facts);
    case 'written':
      return noteWritten(
        become(turn, { writing: state.writing - 1 }),
        event.write,
        event.isWritten,
        facts,
      );
    case 'found_trial':
      return follow(turn, noteFoundTrial(state.following, event.found, facts), facts);
    case 'found_in_force':
      return follow(turn, noteFoundInForce(state.following, event.found, facts), facts);
    case 'located':
      return noteLocated(turn, event, facts);
    case 'answered': {
      const { askedAtMs, answers } = event;
      const news = answers.flatMap(({ value }) =>
        value === undefined || value.record === event.contentId ? [] : value.record,
      );
      const notices = news.map((contentId) => ({ kind: 'heard', contentId }) as const);
      const peers = { isAsking: false, known: { askedAtMs, answers } };
      return takeBackToo(become(turn, { peers }, ...notices), answers, facts);
    }
    case 'asked': {
      const led = { ...state.led, atMs: facts.monotonicMs };
      const isKnown = !event.undoes || state.following.running?.takenBack !== undefined;
      return isKnown ? become(turn, { led }) : askPeers(turn, facts);
    }
    case 'act': {
      const other = whyOther(event, facts);
      if (other !== undefined) return answer(turn, event.asked, other);
      return event.action === 'promote'
        ? promote(turn, event, facts)
        : act(turn, event.action, event, facts);
    }
    case 'approve':
      return approve(turn, event, facts);
    case 'undo':
      return undo(turn, event, facts);
    case 'stop':
      return become(turn, { isStopped: true });
    case 'handed_over':
      return askPeers(turn, facts);
  }
}

function check(turn: Turn, mayBeElse: boolean, facts: Facts): Turn {
  const { isChecking, isStopped, following } = turn.state;
  if (isChecking || isStopped) return turn;
  const checking = become(turn, { isChecking: true });
  const plan = planOf(stepsOf(facts.record));
  const followed =
    plan === undefined ? checking : follow(checking, followTrial(following, facts, plan), facts);
  const judged = mayBeElse ? become(followed, {}, { kind: 'reconsider' }) : followed;
  return become(judged, {}, { kind: 'followed' });
}

/** The second step of a look. */
function noteFollowed(
  turn: Turn,
  event: Extract<FleetEvent, { kind: 'followed' }>,
  facts: Facts,
): Turn {
  const checked = become(turn, { isChecking: false });
  const { record, snapshots } = facts;
  const { following, memory } = checked.state;
  const inForce = snapshots.inForce?.content;
  const plan = planOf(stepsOf(record));
  const caughtUp =
    plan === undefined
      ? checked
      : follow(checked, catchUp(following, facts, inForce !== memory.compared), facts);
  const tried = tryFirst(caughtUp, event, plan, facts);
  const remembered = event.holdOther ? tried : recordSteps(rememberNow(tried, facts), facts);
  const isOpen = openRolloutOf(record.known.record) !== undefined;
  const isHeldBack = snapshots.newest?.isHeldBack === true;
  const isWaiting = snapshots.trial !== undefined || isHeldBack || isOpen;
  const ticked = become(remembered, {}, { kind: 'tick', isWaiting });
  const notified = locateTrial(notifyPeers(ticked, facts), facts);
  return plan === undefined ? notified : decideNow(notified, event, plan, facts);
}

/** Rolls out in steps what was served for lack of anything known: a worker holds other rules. */
function tryFirst(
  turn: Turn,
  { holdOther }: Extract<FleetEvent, { kind: 'followed' }>,
  plan: RolloutPlan | undefined,
  facts: Facts,
): Turn {
  const { inForce } = facts.snapshots;
  const { monotonicMs, freshId, wallMs } = facts;
  if (!inForce?.isFirst) return turn;
  const isOver = !holdOther && isGathered(turn.state.watch, monotonicMs);
  if (plan === undefined || isOver) return become(turn, {}, { kind: 'end_first' });
  if (!holdOther || turn.state.writing > 0) return turn;
  const { content, revision } = inForce;
  const isThis = (each: { readonly content: string }) => each.content === content;
  const change: ChangeRecord = (known) => {
    if (openRolloutOf(known) !== undefined || !known.inForce.every(isThis)) return undefined;
    const outcomes = known.outcomes.filter((each) => !isThis(each));
    const rollout = { id: freshId, revision: revision.id, content };
    return withBegun({ ...known, inForce: [], outcomes }, rollout, wallMs);
  };
  const text = `Rollout of revision ${toShortId(revision.id)}: begins, as workers have other rules`;
  const reports = [{ kind: 'log', level: 'notice', text } as const];
  return change(facts.record.known.record) ? write(turn, { change, reports }, facts) : turn;
}

/** Asks whether the newest revision follows the one on trial: a commit that a force push has dropped is never
 * completed. */
function locateTrial(turn: Turn, { snapshots: { trial, newest } }: Facts): Turn {
  const id = newest?.revision.id;
  const revision = trial?.revision.id;
  if (id === undefined || revision === undefined || revision === id) return turn;
  if (turn.state.located === id) return turn;
  return become(turn, { located: id }, { kind: 'locate', revision, newest: id });
}

function noteLocated(
  turn: Turn,
  { revision, newest, isIncluded }: Extract<FleetEvent, { kind: 'located' }>,
  facts: Facts,
): Turn {
  const { running } = turn.state.following;
  if (isIncluded || running === undefined || running.takenBack) return turn;
  if (idOf(running) !== revision) return turn;
  return takeBack(turn, running, { reason: toReplaced(newest), by: '' }, facts);
}

function follow(
  turn: Turn,
  { following, effects }: ReturnType<typeof followTrial>,
  facts: Facts,
): Turn {
  return applyAll(become(turn, { following }), effects, facts);
}

function applyAll(turn: Turn, effects: readonly (FollowEffect | ToRemember)[], facts: Facts): Turn {
  return effects.reduce((now, each) => {
    if (each.kind === 'give_way') {
      return abort(now, each.open, { reason: toReplaced(each.newest), by: '' }, facts);
    }
    return each.kind === 'write' ? write(now, each, facts) : become(now, {}, each);
  }, turn);
}

function rememberNow(turn: Turn, facts: Facts): Turn {
  const { options, writing } = turn.state;
  const { record, snapshots, wallMs } = facts;
  const { memory, effects } = remember(turn.state.memory, {
    ...{ reportsOutcomes: options.reportsOutcomes, snapshots, wallMs },
    rollsOut: planOf(stepsOf(record)) !== undefined,
    ...{ record: record.known.record, leads: leads(record) },
    mayWrite: writing === 0 && record.error === undefined,
  });
  return applyAll(become(turn, { memory }), effects, facts);
}

/** Puts this control plane's steps on record: the steps of the control plane that was started last count for all. */
function recordSteps(turn: Turn, facts: Facts): Turn {
  const { state } = turn;
  const { record } = facts;
  const why = whyOtherSteps(record);
  const isNews = state.areStepsOnRecord && why !== undefined && why !== state.otherSteps;
  const log = { kind: 'log', level: 'warning', text: `Rollout: ${why}` } as const;
  const notified = become(turn, { otherSteps: why }, ...(isNews ? [log] : []));
  const { steps } = record.options;
  const own = steps === '' ? undefined : steps;
  const isOwn = record.known.record.steps === own || (own === undefined && isShared(record));
  if (state.areStepsOnRecord) return notified;
  if (isOwn) return become(notified, { areStepsOnRecord: true, otherSteps: undefined });
  if (notified.state.writing > 0 || record.error !== undefined) return notified;
  const change: ChangeRecord = (known) => {
    const { steps: _, ...rest } = known;
    if (openRolloutOf(known) !== undefined) return undefined;
    return own === undefined ? rest : { ...rest, steps: own };
  };
  return change(record.known.record) ? write(notified, { change }, facts) : notified;
}

/** Describes steps on record that differ from those of this control plane, for operators. */
export function whyOtherSteps(record: RecordState): string | undefined {
  const { steps } = record.options;
  const planned = stepsOf(record);
  if (planned === steps) return undefined;
  const own = steps === '' ? 'no --rollout' : `--rollout=${steps}`;
  return `the steps on record apply, ${planned}, which another control plane has written; this one has ${own}`;
}

function abort(
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

function write(turn: Turn, given: Write, facts: Facts): Turn {
  const { isStopped, writing } = turn.state;
  if (isStopped) return noteWritten(turn, given, false, facts);
  return become(turn, { writing: writing + 1 }, { kind: 'write', write: given });
}

function noteWritten(
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
  if (isWritten) return check(become(answered, {}, ...reports), true, facts);
  if (otherwise === 'compare_again') {
    return become(answered, { memory: { ...answered.state.memory, compared: undefined } });
  }
  const isStored = otherwise === 'keep' && error !== undefined;
  return isStored ? become(answered, {}, { kind: 'kept', change, isKnownHere: false }) : answered;
}

function isTakenBack({ verdicts }: RolloutRecord, id: string | undefined): boolean {
  return (
    id !== undefined &&
    verdicts.some((each) => each.outcome === 'taken_back' && each.rollout === id)
  );
}

/** Asks the peers, which also notifies them: the leader asks all the time, and its peers learn what is new from the
 * question. */
function notifyPeers(turn: Turn, facts: Facts): Turn {
  const { contentId, record } = facts.record.known;
  if (!asksPeers(turn.state, facts)) return turn;
  const { notified } = turn.state;
  const times = notified.contentId === contentId ? notified.times : 0;
  const noted = become(turn, { notified: { contentId, times: times + 1 } });
  const isOver = openRolloutOf(record) === undefined && toTakenBack(turn.state, record) === null;
  const isDone = isOver && times >= maxNotices;
  return isDone ? noted : askPeers(noted, facts);
}

/** Only a control plane that leads knows the facts of all. */
function asksPeers({ options, following }: FleetState, { record }: Facts): boolean {
  return options.hasPeers && (leads(record) || following.running?.takenBack !== undefined);
}

function askPeers(turn: Turn, { record }: Facts): Turn {
  const { peers, options } = turn.state;
  if (!options.hasPeers || peers.isAsking) return turn;
  const { contentId } = record.known;
  const undoes = toTakenBack(turn.state, record.known.record) !== null;
  const asking = { peers: { ...peers, isAsking: true } };
  return become(turn, asking, { kind: 'ask_peers', contentId, undoes });
}

/** Reads the facts about the peers' workers by the record with this content. */
function readPeers({ peers: { known } }: FleetState, contentId: string): PeerFacts {
  if (known !== undefined) return toPeerFacts(known.answers, contentId, known.askedAtMs);
  const unknown = 'waits for the answers of its peers';
  return { ...noPeers, unknown, askedAtMs: Number.NEGATIVE_INFINITY };
}

/** The take-back that peers have to know of because it is not on record yet. */
export function toTakenBack(
  { following: { running } }: Pick<FleetState, 'following'>,
  record: RolloutRecord,
): (RolloutFacts['takenBack'] & object) | null {
  const { takenBack } = running ?? {};
  const rollout = undoableOf(record, takenBack?.rollout)?.id;
  return takenBack && rollout !== undefined ? { ...takenBack, rollout } : null;
}

/** Takes back here what a peer has taken back: an undo does not need a record. */
function takeBackToo(turn: Turn, answers: Answers, facts: Facts): Turn {
  const { running } = turn.state.following;
  const { record } = facts.record.known;
  const undo = answers
    .flatMap(({ value }) => value?.takenBack ?? [])
    .find(({ rollout }) => undoableOf(record, rollout));
  if (undo === undefined || running?.takenBack) return turn;
  if (running !== undefined && idOf(running) === record.rollout?.revision) {
    return takeBack(turn, running, undo, facts);
  }
  if (openRolloutOf(record) !== undefined || turn.state.writing > 0) return turn;
  // The revision is in force here: this control plane had not received the take-back.
  const { rollout, reason, by } = undo;
  const change: ChangeRecord = (known) =>
    undoableOf(known, rollout) && withEnd(known, 'taken_back', { reason, by, atMs: facts.wallMs });
  return write(turn, { change }, facts);
}

function decideNow(
  turn: Turn,
  { workers, own }: Extract<FleetEvent, { kind: 'followed' }>,
  plan: RolloutPlan,
  facts: Facts,
): Turn {
  const { running } = turn.state.following;
  const decided =
    running !== undefined && own !== undefined
      ? decideOn(turn, running, own, facts)
      : checkShares(turn, workers, plan, facts);
  const isDue = facts.monotonicMs - decided.state.storeAtMs >= storeMs;
  if (facts.snapshots.trial === undefined || !isDue) return decided;
  // An undo does not wait for the next scheduled look.
  return become(decided, { storeAtMs: facts.monotonicMs }, { kind: 'look_at_store' });
}

/** Nothing is being rolled out. */
function checkShares(
  turn: Turn,
  workers: readonly ConnectedWorker[],
  plan: RolloutPlan,
  { monotonicMs }: Facts,
): Turn {
  const { state } = turn;
  const counted = watchCount(state.watch, workers.length, monotonicMs);
  const seen = become(turn, { watch: counted });
  if (state.hasForeseen || !isGathered(counted, monotonicMs)) return seen;
  const problem = foresee(seen.state, workers, plan);
  const foreseen = become(seen, { hasForeseen: true });
  if (problem === undefined) return foreseen;
  return become(foreseen, {}, { kind: 'log', level: 'warning', text: `Rollout: ${problem}` });
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

function decideOn(turn: Turn, now: Running, own: OwnFacts, facts: Facts): Turn {
  const { state } = turn;
  const { monotonicMs, snapshots } = facts;
  const { record, contentId } = facts.record.known;
  const open = openRolloutOf(record);
  const { trial, plan, pools } = now;
  const revision = trial.revision.id;
  // A change of the record is also a sign of life.
  const led = state.led.contentId === contentId ? state.led : { contentId, atMs: monotonicMs };
  const asks = asksPeers(state, facts);
  const watched = {
    open: open?.revision === revision ? open : undefined,
    pools,
    overLimitPoints: plan.overLimitPoints,
    own,
    peers: asks ? readPeers(state, contentId) : noPeers,
    hasOthers: state.options.hasPeers && !asks,
  };
  const { memory, seen } = watch(state.watch, watched, monotonicMs);
  const { newest } = snapshots;
  const isNewer = newest !== undefined && newest.revision.id !== revision;
  const view: View = {
    ...seen,
    trial,
    newer: isNewer ? { revision: newest.revision.id, isWaiting: newest.isWaiting } : undefined,
    leads: leads(facts.record),
    isVacant: isVacant(facts.record),
    isLed: monotonicMs - led.atMs < ledMs,
  };
  const { change, phase, text } = decide(view, record, { plan, pools });
  const error = errorOf(facts.record);
  const { takenBack } = now;
  const decision = takenBack
    ? ({ phase: 'taking_back', text: [takenBack.reason, error ?? []].flat().join('; ') } as const)
    : { phase, text: error ?? text };
  const isNews = phase === 'indivisible' && state.decision.phase !== phase;
  const reports = isNews ? [toLog(now, 'warning', text)] : [];
  const decided = become(turn, { led, watch: memory, view, decision }, ...reports);
  // A bad revision leaves the workers even while a write is under way, which may take long.
  const isNew = takenBack === undefined && change?.kind === 'take_back';
  if (state.writing > 0 && !isNew) return decided;
  if (takenBack !== undefined) return takeBack(decided, now, takenBack, facts);
  return change === undefined ? decided : perform(decided, now, change, facts);
}

function perform(turn: Turn, now: Running, change: Change, facts: Facts): Turn {
  const seen = facts.record.known.record;
  const isSame = (record: RolloutRecord) => isDeepStrictEqual(record.rollout, seen.rollout);
  switch (change.kind) {
    case 'begin':
      return begin(turn, now, isSame, facts);
    case 'lead':
      return lead(turn, now, facts);
    case 'take_back':
      return takeBack(turn, now, { reason: change.reason, by: '' }, facts);
    default: {
      const goOn = "continue with 'rollout resume', 'promote' or 'abort'";
      const report =
        change.kind === 'pause'
          ? toLog(now, 'warning', `paused (${change.reason}); ${goOn}`)
          : toLog(now, 'notice', change.text);
      const reports = change.kind !== 'pause' && change.text === '' ? [] : [report];
      const changed: ChangeRecord = (record) =>
        isSame(record) ? withChange(record, change, facts.wallMs) : undefined;
      return write(turn, { change: changed, reports }, facts);
    }
  }
}

/** Makes the rollout as it is in its first step. */
function toBegun({ trial: { revision, content } }: Running, { freshId }: Facts) {
  return { id: freshId, revision: revision.id, content };
}

function begin(
  turn: Turn,
  now: Running,
  isSame: (record: RolloutRecord) => boolean,
  facts: Facts,
): Turn {
  const { trial } = now;
  const rollout = toBegun(now, facts);
  const change: ChangeRecord = (record) => {
    // Another control plane has brought the revision into force, taken it back or held it back meanwhile: following.ts
    // ends the trial.
    const isInForce = record.inForce[0]?.content === rollout.content;
    const isHeldBack = !trial.mayRemove && heldBackOf(record, trial) !== undefined;
    const isOver = isInForce || isHeldBack || takenBackOf(record, trial) !== undefined;
    return isSame(record) && !isOver ? withBegun(record, rollout, facts.wallMs) : undefined;
  };
  return write(turn, { change, reports: [toLog(now, 'notice', 'begins')] }, facts);
}

/** Continues a rollout whose leader has stopped. */
function lead(turn: Turn, now: Running, facts: Facts): Turn {
  const { leader, rollout } = facts.record.known.record;
  const { name } = facts.record.options;
  const isSame = leader.name === name;
  const change: ChangeRecord = (record) =>
    record.leader.id === leader.id && openRolloutOf(record)?.id === rollout?.id
      ? { ...record, after: isSame ? '' : leader.name }
      : undefined;
  const where = `at step ${(rollout?.step ?? 0) + 1}`;
  const how = rollout?.outcome === 'paused' ? `is still paused ${where}` : `continues ${where}`;
  const after = isSame ? 'a restart' : leader.name;
  const what = `lead the rollout of revision ${toShortId(idOf(now))} after ${after}: it ${how}`;
  const log = toLog(now, 'notice', `${how}, ${name} leads after ${after}`);
  const gathering = become(turn, { watch: gatherAgain(turn.state.watch, facts.monotonicMs) });
  const reports = [log, { kind: 'audit', revision: idOf(now), what } as const];
  return write(gathering, { change, reports }, facts);
}

/** Takes the revision back here at once, and everywhere once that is on record. */
function takeBack(
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

function whyOther(
  { action, meant = {} }: Extract<FleetEvent, { kind: 'act' }>,
  { record, snapshots }: Facts,
): string | undefined {
  const { rollout, revision } = meant;
  const open = openRolloutOf(record.known.record);
  const shown = open && toShownId(open);
  const about = open?.revision ?? (action === 'retry' ? snapshots.newest?.revision.id : undefined);
  const isRollout = rollout === undefined || rollout === shown;
  if (isRollout && (revision === undefined || about?.startsWith(revision) === true))
    return undefined;
  const toName = (of = '', id: string | undefined) =>
    [of && ` of revision ${toExcerpt(toShortId(of))}`, rollout && id && ` (${toExcerpt(id)})`].join(
      '',
    );
  const now = about === undefined ? 'none is' : `that${toName(about, shown)} is`;
  return `the rollout${toName(revision, rollout)} is not under way, ${now}`;
}

function act(turn: Turn, action: RolloutAction, { asked, reason, by }: Asked, facts: Facts): Turn {
  const { running } = turn.state.following;
  const { known, error } = facts.record;
  const open = openRolloutOf(known.record);
  const refuse = (problem: string) => answer(turn, asked, problem);
  if (open === undefined && action === 'retry') {
    return retry(turn, { asked, reason, by }, facts);
  }
  if (open === undefined) return refuse((running && error) ?? noRollout);
  if ((action === 'resume' || action === 'retry') && open.outcome !== 'paused')
    return refuse('the rollout is not paused');
  if (action === 'pause' && open.outcome === 'paused') {
    return refuse('the rollout is paused already');
  }
  const problem = 'the rollout has changed meanwhile: check its state and try again';
  if (action === 'abort' && running?.trial.revision.id === open.revision) {
    const anyway = '; the workers of this control plane go back all the same';
    return takeBack(turn, running, { reason, by }, facts, {
      asked,
      problem,
      anyway,
      ends: open.id,
    });
  }
  const change: ChangeRecord = (record) =>
    openRolloutOf(record)?.id === open.id
      ? withAction(record, action, { reason, by, atMs: facts.wallMs })
      : undefined;
  return write(turn, { change, asked: { asked, problem, anyway: '' } }, facts);
}

function promote(turn: Turn, given: Asked, facts: Facts): Turn {
  const { record } = facts.record.known;
  const open = openRolloutOf(record);
  const before = open && whyTakenBack(record, open.content);
  if (before === undefined) return act(turn, 'promote', given, facts);
  const problem = `its rules were taken back before (${before}): they reach the workers by all steps`;
  return answer(turn, given.asked, problem);
}

/** Restarts the newest revision, which was taken back, at its first step. */
function retry(turn: Turn, { asked, reason, by }: Asked, facts: Facts): Turn {
  const { newest } = facts.snapshots;
  const isTakenBack = newest?.problems.some(({ rule }) => rule === 'taken-back') === true;
  if (newest?.content === undefined || !isTakenBack) {
    const problem = 'no rollout is under way, and the newest revision was not taken back';
    return answer(turn, asked, problem);
  }
  const { content, revision } = newest;
  return writeApproval(turn, { revision: revision.id, content, asked, reason, by }, facts);
}

function writeApproval(
  turn: Turn,
  { asked, ...approval }: Asked & { readonly revision: string; readonly content: string },
  facts: Facts,
): Turn {
  const verdict = { ...approval, outcome: 'approved', atMs: facts.wallMs } as const;
  const change: ChangeRecord = (record) => withVerdict(record, verdict);
  const problem = 'the approval could not be recorded: try again';
  return write(turn, { change, asked: { asked, problem, anyway: '' } }, facts);
}

function answer(turn: Turn, asked: number, problem: string | undefined): Turn {
  return become(turn, {}, { kind: 'answer', asked, problem });
}

function approve(turn: Turn, event: ApproveEvent, facts: Facts): Turn {
  const { asked, revision, reason, by } = event;
  const { following, decision } = turn.state;
  if (following.running?.trial.revision.id === revision && decision.phase === 'indivisible') {
    const request = { asked, by, reason: `approved by ${by}: ${reason}` };
    return act(turn, 'promote', request, facts);
  }
  // Only the leader knows whether a share can be made: if so, the revision still takes all steps.
  const open = openRolloutOf(facts.record.known.record);
  const isNew = open?.revision === revision && !isGiven(open) && !leads(facts.record);
  const { content, problem } = isNew
    ? { content: open.content }
    : findApproved(event, facts.snapshots);
  if (content === undefined) return answer(turn, asked, problem);
  return writeApproval(turn, { revision, content, asked, reason, by }, facts);
}

/** Finds the content of the newest revision, which is held back, or of a step to it; or why it is not approved. */
function findApproved(
  { revision, contentOfStep }: Pick<ApproveEvent, 'revision' | 'contentOfStep'>,
  { newest }: SnapshotState,
): { readonly content?: string | undefined; readonly problem?: string } {
  const id = toShortId(revision);
  // The policy refuses what the revision of the step has changed, and all later revisions with it.
  const isRefused = newest?.problems.some((each) => isError(each) && each.rule === 'policy');
  const isOver = newest?.problems.some(({ rule }) => rule === 'taken-back');
  if (contentOfStep !== undefined && isRefused && !isOver) return { content: contentOfStep };
  if (newest?.revision.id !== revision) {
    const known = toShortId(newest?.revision.id ?? 'not known');
    return { problem: `revision ${id} is not the newest one, which is ${known}` };
  }
  if (newest.isHeldBack) return { content: newest.content };
  return { problem: `revision ${id} is not held back` };
}

function undo(
  turn: Turn,
  word: { readonly reason: string; readonly by: string },
  facts: Facts,
): Turn {
  const { running } = turn.state.following;
  const open = openRolloutOf(facts.record.known.record);
  const withdrawn = running === undefined ? turn : takeBack(turn, running, word, facts);
  const isElse = open !== undefined && open.revision !== running?.trial.revision.id;
  return isElse ? abort(withdrawn, open, word, facts) : withdrawn;
}

function toLog(now: Running, level: 'notice' | 'warning', what: string): Report {
  return { kind: 'log', level, text: `Rollout of revision ${toShortId(idOf(now))}: ${what}` };
}

function idOf({ trial }: Running): string {
  return trial.revision.id;
}
