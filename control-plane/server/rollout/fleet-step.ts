// `step` makes the next state of a fleet from an event, and names the effects, which rollout.ts performs; their results
// are the next events. A check has two steps: the first serves what is on record, the second compares the workers with
// that, puts on record what has happened, and decides. fleet-table.txt lists each event in each state, with its effects.
// Pure.

import { isDeepStrictEqual } from 'node:util';
import {
  heldBackOf,
  openRolloutOf,
  type RolloutRecord,
  takenBackOf,
  undoableOf,
  withEnd,
} from '../record/record.ts';
import {
  type ChangeRecord,
  errorOf,
  isShared,
  isVacant,
  leads,
  stepsOf,
} from '../record/record-state.ts';
import { remember } from '../record/remembering.ts';
import { toReplaced } from '../snapshot/admission.ts';
import { toShortId } from '../store/revision.ts';
import { become } from '../turn.ts';
import type { ConnectedWorker } from '../xds/workers.ts';
import { withBegun, withChange } from './changes.ts';
import { decide, type RolloutChange } from './decide.ts';
import { noPeers, type OwnFacts, type PeerFacts, toPeerFacts } from './facts.ts';
import { act, approve, undo } from './fleet-actions.ts';
import {
  type Answers,
  applyAll,
  askPeers,
  asksPeers,
  type Facts,
  type FleetEvent,
  type FleetState,
  follow,
  foresee,
  idOf,
  noteWritten,
  type Turn,
  takeBack,
  toBegun,
  toLog,
  toTakenBack,
  whyOtherSteps,
  write,
} from './fleet-state.ts';
import { gatherAgain, isGathered, watch, watchCount } from './fleet-watch.ts';
import {
  catchUp,
  followTrial,
  noteFoundInForce,
  noteFoundTrial,
  type Running,
} from './following.ts';
import { planOf, type RolloutPlan } from './plan.ts';
import type { View } from './view.ts';

/** The time between two checks of the store while a revision is on trial, however rarely it is checked otherwise. */
const storeMs = 5_000;
/** A leader that has neither asked nor written for this long may be gone. */
const ledMs = 5_000;
/** How often peers are notified of a record that this control plane wrote while no rollout is under way. */
const maxNotices = 5;

export function step(state: FleetState, event: FleetEvent, facts: Facts): Turn {
  const turn: Turn = { state, effects: [] };
  switch (event.kind) {
    case 'check':
      return check(turn, event.mayDiffer, facts);
    case 'followed':
      return noteFollowed(turn, event, facts);
    case 'written': {
      const { write, isWritten } = event;
      const done = become(turn, { writing: state.writing - 1 });
      const noted = noteWritten(done, write, isWritten, facts);
      return isWritten ? check(noted, true, facts) : noted;
    }
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
      const notices = news.map((contentId) => ({ kind: 'noticed', contentId }) as const);
      const peers = { isAsking: false, known: { askedAtMs, answers } };
      return takeBackToo(become(turn, { peers }, ...notices), answers, facts);
    }
    case 'asked': {
      const led = { ...state.led, atMs: facts.monotonicMs };
      const isKnown = !event.undoes || state.following.running?.takenBack !== undefined;
      return isKnown ? become(turn, { led }) : askPeers(turn, facts);
    }
    case 'act':
      return act(turn, event, facts);
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

/** The first step of a check. `isChecking` ignores the checks that its changes ask for: a revision that waits would
 * begin its trial a second earlier, and peers would be asked twice in the same instant. */
function check(turn: Turn, mayDiffer: boolean, facts: Facts): Turn {
  const { isChecking, isStopped, following } = turn.state;
  if (isChecking || isStopped) return turn;
  const checking = become(turn, { isChecking: true });
  const plan = planOf(stepsOf(facts.record));
  const followed =
    plan === undefined ? checking : follow(checking, followTrial(following, facts, plan), facts);
  const judged = mayDiffer ? become(followed, {}, { kind: 'reconsider' }) : followed;
  return become(judged, {}, { kind: 'followed' });
}

/** The second step of a check: its event lists the workers, and what they have, once the first step is performed. */
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

/** Reads the facts about the peers' workers by the record with this content. */
function readPeers({ peers: { known } }: FleetState, contentId: string): PeerFacts {
  if (known !== undefined) return toPeerFacts(known.answers, contentId, known.askedAtMs);
  const unknown = 'waits for the answers of its peers';
  return { ...noPeers, unknown, askedAtMs: Number.NEGATIVE_INFINITY };
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
  // An undo does not wait for the next scheduled check.
  return become(decided, { storeAtMs: facts.monotonicMs }, { kind: 'poll_store' });
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

function perform(turn: Turn, now: Running, change: RolloutChange, facts: Facts): Turn {
  const seen = facts.record.known.record;
  const isSame = (record: RolloutRecord) => isDeepStrictEqual(record.rollout, seen.rollout);
  switch (change.kind) {
    case 'begin':
      return beginRollout(turn, now, isSame, facts);
    case 'lead':
      return lead(turn, now, facts);
    case 'take_back':
      return takeBack(turn, now, { reason: change.reason, by: '' }, facts);
    default: {
      const hint = "continue with 'rollout resume', 'promote' or 'abort'";
      const report =
        change.kind === 'pause'
          ? toLog(now, 'warning', `paused (${change.reason}); ${hint}`)
          : toLog(now, 'notice', change.text);
      const reports = change.kind !== 'pause' && change.text === '' ? [] : [report];
      const changed: ChangeRecord = (record) =>
        isSame(record) ? withChange(record, change, facts.wallMs) : undefined;
      return write(turn, { change: changed, reports }, facts);
    }
  }
}

function beginRollout(
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
