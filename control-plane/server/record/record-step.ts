// `step` makes the next state of the record from an event, and names the effects; record-keeper.ts performs them, and
// their results are the next events. Pure.

import type { SwapResult, VersionedText } from '../store/shared-text.ts';
import { become, type Turn as StepTurn } from '../turn.ts';
import type { OwnRecord } from './own-text.ts';
import {
  emptyRecord,
  fitRecord,
  maxTakenBack,
  openRolloutOf,
  parseRecord,
  type RecordReading,
  type RolloutRecord,
  toRecordText,
  undoableOf,
  whyUnreadable,
  withEnd,
  withTakenBackOf,
} from './record.ts';
import {
  type ChangeRecord,
  type ForeignRecord,
  isShared,
  type Job,
  type Known,
  leads,
  type Now,
  type Read,
  type RecordEffect,
  type RecordEvent,
  type RecordState,
  toContentId,
  toDenied,
  toKnown,
} from './record-state.ts';

type Turn = StepTurn<RecordState, RecordEffect>;

const retryMs = 2_000;
const maxAttempts = 3;

export function step(state: RecordState, event: RecordEvent, now: Now): Turn {
  const turn: Turn = { state, effects: [] };
  switch (event.kind) {
    case 'wanted':
      return want(turn, event.job, now);
    case 'next':
      return beginJob(turn, now);
    case 'tick':
      return tick(become(turn, {}, { kind: 'restore_own' }), event.isWaiting, now);
    case 'noticed':
      return become(turn, { peerContentId: event.contentId });
    case 'stored_locally':
      return store(turn, event.change, event.isKnownHere);
    case 'own_read':
      return noteOwn(turn, event.stored, now);
    case 'read':
      return noteRead(turn, event.found, event.startedMs, now);
    case 'failed':
      return noteFailure(turn, event.reason, now);
    case 'set_aside':
      return noteSetAside(turn, event.where, now);
    case 'own_set_aside':
      return noteOwnSetAside(turn, event.where, now);
    case 'swapped':
      return noteSwapped(turn, event.result, now);
  }
}

function want(turn: Turn, job: Job, { monotonicMs, wallMs }: Now): Turn {
  const { foreign, restUntilMs, waiting } = turn.state;
  if (job.kind === 'write' && (foreign.own !== undefined || monotonicMs < restUntilMs)) {
    return become(turn, {}, { kind: 'done', job: job.id, isWritten: false });
  }
  return beginJob(become(turn, { waiting: [...waiting, job] }), { monotonicMs, wallMs });
}

/** Begins the next job unless one is under way. */
function beginJob(turn: Turn, now: Now): Turn {
  const [job, ...waiting] = turn.state.waiting;
  if (turn.state.job !== undefined || job === undefined) return turn;
  const begun = become(turn, { job, waiting });
  switch (job.kind) {
    case 'start':
      return become(begun, {}, { kind: 'read_own' });
    case 'read':
      return read(begun);
    case 'sign': {
      const { known } = begun.state;
      // The others wait only for signs of life of a leader.
      if (!leadsOpen(begun.state)) return finish(begun, false);
      const { leader, beat } = known.record;
      const record = { ...known.record, leader: { ...leader, hasLeft: job.hasLeft } };
      return swap(begun, { ...record, beat: beat + 1 }, true, now, known.version);
    }
    case 'write':
      return tryToWrite(begun, job, now);
  }
}

function finish(turn: Turn, isWritten: boolean): Turn {
  const job = turn.state.job?.id ?? 0;
  const nothing = { job: undefined, stage: undefined };
  return become(turn, nothing, { kind: 'done', job, isWritten }, { kind: 'next' });
}

/** Ends the job or retries it: other control planes may write at the same time, so a write is retried on top of theirs.
 * A sign of life causes a conflict but changes nothing. */
function end(turn: Turn, isWritten: boolean, now: Now): Turn {
  const { job, error } = turn.state;
  const isGivenUp = job?.kind !== 'write' || error !== undefined || job.attempt === maxAttempts;
  if (isWritten || isGivenUp) return finish(turn, isWritten);
  return tryToWrite(turn, { ...job, attempt: job.attempt + 1 }, now);
}

function tryToWrite(turn: Turn, job: Extract<Job, { kind: 'write' }>, now: Now): Turn {
  const changed = job.change(turn.state.known.record);
  const tried = become(turn, { job });
  if (changed === undefined) return finish(tried, false);
  return swap(tried, toOwn(changed, turn.state), true, now, turn.state.known.version);
}

function tick(turn: Turn, isWaiting: boolean, now: Now): Turn {
  const { state } = turn;
  const { job, known, peerContentId, options, readAtMs } = state;
  const { timing } = options;
  const { monotonicMs } = now;
  const isBusy = job !== undefined || state.waiting.length > 0;
  if (isBusy || monotonicMs < state.restUntilMs) return turn;
  const sinceReadMs = monotonicMs - readAtMs;
  const isNews =
    peerContentId !== undefined &&
    peerContentId !== known.contentId &&
    sinceReadMs >= timing.readAgain;
  const listened = isNews ? become(turn, { peerContentId: undefined }) : turn;
  // Another control plane may have begun to take steps.
  const isTimely = sinceReadMs >= (isWaiting ? timing.poll : timing.term);
  const isDue = leadsOpen(state) && monotonicMs - known.sinceMs >= timing.renew;
  if (isDue) return want(listened, { id: 0, kind: 'sign', hasLeft: false }, now);
  const isRead = isNews || isTimely || state.error !== undefined;
  return isRead ? want(listened, { id: 0, kind: 'read' }, now) : listened;
}

function store(turn: Turn, change: ChangeRecord, isKnownHere: boolean): Turn {
  const { known } = turn.state;
  const changed = change(known.record);
  if (changed === undefined) return turn;
  const record = fitRecord(changed);
  if (!isKnownHere) return storeOwn(turn, record);
  const stored = { ...known, record, contentId: toContentId(record) };
  return reportOutcome(storeOwn(become(turn, { known: stored }), record), known.record);
}

/** Notes the text of an earlier process; what only this control plane knows is written at the next write. */
function noteOwn(turn: Turn, stored: OwnRecord | undefined, now: Now): Turn {
  const { state } = turn;
  const { ownLocation } = state.options;
  const parsed = stored && parseRecord(stored.text);
  const plane = stored?.plane ?? state.plane;
  const own = parsed && toForeign(parsed, `remove ${ownLocation} and restart`);
  const known = become(turn, {
    plane,
    hadNoCopy: !parsed?.ok,
    foreign: { ...state.foreign, own },
  });
  if (!parsed?.ok) return read(known);
  const { leader } = parsed.record;
  // A text of the previous version does not identify its control plane: its leader was this one.
  const isOwn = stored?.plane === undefined;
  const record = isOwn ? { ...parsed.record, leader: { ...leader, plane } } : parsed.record;
  const copied = become(known, {
    before: record,
    known: toKnown(undefined, record, now.monotonicMs),
    ledSinceMs: now.wallMs,
    isKnown: true,
  });
  return read(copied);
}

function read(turn: Turn): Turn {
  return become(turn, { stage: { kind: 'reading' } }, { kind: 'read' });
}

function noteRead(turn: Turn, found: VersionedText | undefined, startedMs: number, now: Now): Turn {
  const { known, foreign } = turn.state;
  const version = found?.version;
  const read = { version, startedMs };
  if (found === undefined || version === known.version) {
    // A record of another version has been removed, or replaced by the previous one.
    const seen = become(turn, { foreign: { ...foreign, shared: undefined } });
    if (foreign.own === undefined) return noteRecord(seen, read, undefined, now);
    return noteFailure(seen, foreign.own.problem, now);
  }
  const parsed = parseRecord(found.text);
  const shared = toForeign(parsed, 'remove it');
  const seen = become(turn, { foreign: { ...foreign, shared } });
  if (shared !== undefined) return noteFailure(seen, shared.problem, now);
  if (!parsed.ok) {
    const setting = { kind: 'setting_aside', read, problem: parsed.problem } as const;
    return become(seen, { stage: setting }, { kind: 'set_aside', version: found.version });
  }
  if (foreign.own === undefined) return noteRecord(seen, read, parsed.record, now);
  // The record beside the rules counts.
  const setting = { kind: 'setting_own_aside', read, theirs: parsed.record } as const;
  return become(seen, { stage: setting }, { kind: 'set_own_aside' });
}

function noteFailure(turn: Turn, reason: string, now: Now): Turn {
  const { stage, options } = turn.state;
  const what = stage?.kind === 'swapping' ? 'written' : 'read';
  return end(fail(turn, `${options.location} cannot be ${what} (${reason})`, now), false, now);
}

function noteSetAside(turn: Turn, where: string | undefined, now: Now): Turn {
  const { stage, options } = turn.state;
  if (stage?.kind !== 'setting_aside') return turn;
  const fate = where === undefined ? 'cannot be moved away' : `is kept as ${where}`;
  const aside = `${options.location} could not be read (${stage.problem}) and ${fate}`;
  const text = `Rollout: ${aside}: revisions taken back, held back or approved are known from the state directory alone`;
  const logged = become(turn, { aside }, { kind: 'log', level: 'error', text });
  const version = where === undefined ? stage.read.version : undefined;
  return noteRecord(logged, { ...stage.read, version }, 'damaged', now);
}

function noteOwnSetAside(turn: Turn, where: string, now: Now): Turn {
  const { stage, foreign, options } = turn.state;
  if (stage?.kind !== 'setting_own_aside') return turn;
  const text = `Rollout: ${options.ownLocation} is not read (${foreign.own?.problem}); ${where}`;
  const logged = become(
    turn,
    { foreign: { ...foreign, own: undefined } },
    { kind: 'log', level: 'warning', text },
  );
  return noteRecord(logged, stage.read, stage.theirs, now);
}

/** How the record that was read relates to the one known here. */
type Comparison =
  | { readonly kind: 'lost'; readonly how: string }
  | { readonly kind: 'unwritten' | 'same' }
  /** `lacks_ends`: the record has them, but what was read does not. */
  | { readonly kind: 'newer' | 'lacks_ends'; readonly record: RolloutRecord };

/** `theirs`: undefined if the record is already known, or does not exist. */
function noteRecord(
  turn: Turn,
  { version, startedMs }: Read,
  theirs: RolloutRecord | 'damaged' | undefined,
  now: Now,
): Turn {
  const reached = noteReachable(become(turn, { readAtMs: startedMs, isKnown: true }));
  const { known, denied, options } = reached.state;
  const compared = compare(reached.state, version, theirs);
  switch (compared.kind) {
    case 'lost': {
      const text = `Rollout: ${options.location} ${compared.how}: the local copy is written again`;
      const logged = denied === undefined ? [{ kind: 'log', level: 'warning', text } as const] : [];
      return swap(become(reached, {}, ...logged), known.record, false, now, version);
    }
    case 'unwritten':
      return swap(reached, known.record, false, now, version);
    case 'same':
      return end(become(reached, { known: { ...known, version } }), false, now);
    case 'newer': {
      const accepted = become(reached, { denied: undefined, before: undefined });
      return end(setKnown(accepted, version, compared.record, now), false, now);
    }
    case 'lacks_ends': {
      // The version stays the previous one until the ends are written: what was read does not have them.
      const added = setKnown(
        become(reached, { denied: undefined }),
        known.version,
        compared.record,
        now,
      );
      return swap(added, compared.record, false, now, version);
    }
  }
}

function compare(
  state: RecordState,
  version: string | undefined,
  theirs: RolloutRecord | 'damaged' | undefined,
): Comparison {
  const { known, before } = state;
  const how = isShared(state) ? describeLoss(known, version, theirs) : undefined;
  if (how !== undefined) return { kind: 'lost', how };
  if (theirs === undefined || theirs === 'damaged') {
    const isUnwritten = before !== undefined && version !== undefined;
    // The others get the record that is known here in place of the damaged one, whoever leads.
    const isReplaced = theirs === 'damaged' && known.record !== emptyRecord;
    return { kind: isUnwritten || isReplaced ? 'unwritten' : 'same' };
  }
  const ends = [known.record, before].flatMap((ours) => ours ?? []);
  const add = (theirs: RolloutRecord, ours: RolloutRecord) =>
    withTakenBackOf(addEnd(theirs, ours, state), ours);
  const record = ends.reduce(add, theirs);
  return { kind: record === theirs ? 'newer' : 'lacks_ends', record };
}

/** Describes how the record that this process has seen was lost: it was removed or replaced by an older one; undefined
 * if the record is as known, or newer. */
function describeLoss(
  { version: seen, record }: Known,
  version: string | undefined,
  theirs: RolloutRecord | 'damaged' | undefined,
): string | undefined {
  if (seen === undefined || seen === version || theirs === 'damaged') return undefined;
  if (theirs === undefined) return 'no longer has a record';
  return (theirs.writes ?? 0) < (record.writes ?? 0) ? 'has an older record' : undefined;
}

/** Adds an end that this control plane knows but the record lacks, because the previous process could not write it or
 * an engine was restored from an older state. */
function addEnd(theirs: RolloutRecord, ours: RolloutRecord, state: RecordState): RolloutRecord {
  const takenBack = ours.verdicts.find(
    ({ outcome, rollout }) => outcome === 'taken_back' && undoableOf(theirs, rollout) !== undefined,
  );
  if (takenBack !== undefined) return toOwn(withEnd(theirs, 'taken_back', takenBack), state);
  const { rollout, outcomes } = ours;
  if (rollout?.outcome !== 'in_force' || rollout.id !== openRolloutOf(theirs)?.id) return theirs;
  const end = outcomes.find(({ content }) => content === rollout.content);
  return end ? toOwn(withEnd(theirs, 'in_force', end), state) : theirs;
}

/** `isForJob`: whether the job has done its part once this is written; `version`: that of the text to replace. */
function swap(
  turn: Turn,
  given: RolloutRecord,
  isForJob: boolean,
  now: Now,
  version: string | undefined,
): Turn {
  const { known, options } = turn.state;
  const before = known.record;
  const record = fitRecord(given);
  const problem = whyUnreadable(record);
  if (problem !== undefined) {
    return end(fail(turn, `${options.location} cannot be written (${problem})`, now), false, now);
  }
  const text = toRecordText(record);
  const stage = { kind: 'swapping', before, record, isForJob } as const;
  return become(turn, { stage }, { kind: 'swap', before: version, text });
}

function noteSwapped(turn: Turn, result: SwapResult, now: Now): Turn {
  const { stage } = turn.state;
  if (stage?.kind !== 'swapping') return turn;
  const { record, before, isForJob } = stage;
  // What was read on the way is written at the next poll: a place whose reads are behind its writes is not asked for ever.
  if (result.kind === 'stale') return isForJob ? read(turn) : end(turn, false, now);
  if (result.kind === 'written') {
    const written = noteReachable(noteAccepted(turn, now));
    return end(
      reportOutcome(setKnown(written, result.version, record, now), before),
      isForJob,
      now,
    );
  }
  const failed = noteDenied(turn, result.reason, now);
  const { known } = turn.state;
  // While no control plane has written a shared record, one without an open rollout is stored here alone.
  const isWithoutRecord = isShared(turn.state) && known.version === undefined;
  const isStoredHere = isWithoutRecord && openRolloutOf(record) === undefined;
  if (!isStoredHere) return end(failed, false, now);
  return end(reportOutcome(setKnown(failed, undefined, record, now), before), isForJob, now);
}

function noteAccepted(turn: Turn, { monotonicMs }: Now): Turn {
  const { isDenialLogged, options } = turn.state;
  const text = `Rollout: ${options.location} takes writes again`;
  const logged = !isDenialLogged ? [] : [{ kind: 'log', level: 'notice', text } as const];
  const accepted = {
    denied: undefined,
    isDenialLogged: false,
    before: undefined,
    readAtMs: monotonicMs,
  };
  return become(turn, accepted, ...logged);
}

function noteDenied(turn: Turn, reason: string, now: Now): Turn {
  const { options, isDenialLogged, isErrorLogged } = turn.state;
  const failed = fail(turn, toDenied(options, reason), now, isDenialLogged);
  return become(failed, { denied: reason, isDenialLogged: true, isErrorLogged });
}

function noteReachable(turn: Turn): Turn {
  const { isErrorLogged, options } = turn.state;
  const reached = become(turn, { error: undefined });
  if (!isErrorLogged) return reached;
  const text = `Rollout: ${options.location} can be reached again`;
  return become(reached, { isErrorLogged: false }, { kind: 'log', level: 'notice', text });
}

function fail(
  turn: Turn,
  reason: string,
  { monotonicMs }: Now,
  isLogged = turn.state.isErrorLogged,
): Turn {
  const text = `Rollout: ${reason}; no step is taken meanwhile`;
  const logged = { kind: 'log', level: 'warning', text } as const;
  const restMs = Math.max(retryMs, turn.state.options.timing.poll);
  const failed = { isErrorLogged: true, error: reason, restUntilMs: monotonicMs + restMs };
  return become(turn, failed, ...(isLogged ? [] : [logged]));
}

function setKnown(
  turn: Turn,
  version: string | undefined,
  record: RolloutRecord,
  { monotonicMs, wallMs }: Now,
): Turn {
  const { known, ledSinceMs } = turn.state;
  const { leader, rollout } = known.record;
  const isSame = leader.id === record.leader.id && rollout?.id === record.rollout?.id;
  const set = become(turn, {
    known: toKnown(version, record, monotonicMs),
    ledSinceMs: isSame ? ledSinceMs : wallMs,
  });
  const [had, has] = [known.record, record].map(({ takenBack }) => takenBack?.length);
  const text = `Rollout: ${maxTakenBack} contents that were taken back are on record: each further one replaces the oldest`;
  const isFull = has === maxTakenBack && had !== has;
  const logged = isFull ? [{ kind: 'log', level: 'warning', text } as const] : [];
  return become(storeOwn(set, record), {}, ...logged, { kind: 'changed' });
}

function storeOwn(turn: Turn, record: RolloutRecord): Turn {
  const { foreign, plane } = turn.state;
  if (foreign.own !== undefined) return turn;
  const stored = { text: toRecordText(record), plane };
  return become(turn, {}, { kind: 'store_own', stored });
}

function reportOutcome(turn: Turn, before: RolloutRecord): Turn {
  const { outcomes } = turn.state.known.record;
  const [was, is] = [before.outcomes, outcomes].map(
    ([last]) => last && `${last.revisions[0]} ${last.kind} ${last.atMs}`,
  );
  return is === undefined || is === was ? turn : become(turn, {}, { kind: 'outcome', outcomes });
}

/** The other control planes wait for signs of life. */
function leadsOpen(state: RecordState): boolean {
  return leads(state) && openRolloutOf(state.known.record) !== undefined;
}

function toOwn(record: RolloutRecord, { options, plane }: RecordState): RolloutRecord {
  const { id, name } = options;
  const leader = { id, plane, name, hasLeft: false };
  return { ...record, leader, beat: 0, writes: (record.writes ?? 0) + 1 };
}

/** `or`: what makes the program continue without the record. */
function toForeign(reading: RecordReading, or: string): ForeignRecord | undefined {
  if (reading.ok || reading.ofOtherVersion === undefined) return undefined;
  const { inForce, remedy } = reading.ofOtherVersion;
  return { inForce, problem: `${reading.problem}: ${remedy}, or ${or}` };
}
