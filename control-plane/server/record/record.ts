// The record that control planes share beside the rules: how far a rollout is or how it ended, the revisions in
// force before, and those that were held back, approved or taken back, by whom and why. As text.
import Type from 'typebox';
import { Value } from 'typebox/value';
import { heldBackBy, isReplaced, takenBackBy } from '../snapshot/admission.ts';
import type { TrialState } from '../snapshot/snapshot-state.ts';
import { toOtherVersion } from '../store/kept-version.ts';
import { maxSharedTextBytes } from '../store/shared-text.ts';
import { cutText, maxOutcomes, type NewOutcome, outcomeOnRecord, withOutcome } from './outcomes.ts';
import { formatBefore, fromRecordBefore, unknownContent } from './record-before.ts';

const currentFormat = 3;
const revisionId = Type.String({ maxLength: 128 });
/** `content` of a build (snapshot/build.ts): equal where every node gets the same. */
const content = Type.String({ maxLength: 64 });
/** Texts for people, and lists, are as long as the whole allows: `fitRecord` keeps them short. */
const shown = Type.String();

const rolloutJson = Type.Object({
  /** Of this rollout: a revision may come again. Unknown to workers, whose places follow from it. */
  id: Type.String({ maxLength: 64 }),
  revision: revisionId,
  content,
  outcome: Type.Union([
    Type.Literal('running'),
    Type.Literal('paused'),
    Type.Literal('taken_back'),
    Type.Literal('in_force'),
  ]),
  /** Counted from 0. */
  step: Type.Integer({ minimum: 0 }),
  /** The places (pools.ts) of the workers that have it. */
  chosen: Type.Array(Type.String({ maxLength: 16 })),
  /** Pools (pools.ts) of which all workers have it. */
  whole: Type.Array(Type.Integer({ minimum: 0 })),
  /** Why it is paused or was taken back, or why everybody has it; '' else. */
  reason: shown,
});
export type RolloutOnRecord = Type.Static<typeof rolloutJson>;

const verdictJson = Type.Object({
  revision: revisionId,
  content,
  outcome: Type.Union([
    Type.Literal('held_back'),
    Type.Literal('approved'),
    Type.Literal('taken_back'),
  ]),
  reason: shown,
  /** The person who said so; '' for a control plane. */
  by: shown,
  /** Wall time in milliseconds. */
  atMs: Type.Number(),
  /** Of one that is held back: the content in force that it would remove too much of. */
  against: Type.Optional(content),
  /** The id of the rollout that it ended. */
  rollout: Type.Optional(Type.String({ maxLength: 64 })),
});
export type Verdict = Type.Static<typeof verdictJson>;

/** Why, who says so (for people; '' for a control plane), and when. */
export type Word = Pick<Verdict, 'reason' | 'by' | 'atMs'>;

const recordJson = Type.Object({
  format: Type.Literal(currentFormat),
  /** The last one; null before the first. */
  rollout: Type.Union([rolloutJson, Type.Null()]),
  /**
   * The revisions that everybody was given, the newest first: that one is in force, but for the workers of an
   * open rollout.
   */
  inForce: Type.Array(Type.Object({ revision: revisionId, content })),
  /** The last word about a content, the newest first. */
  verdicts: Type.Array(verdictJson),
  /** The outcomes of the last revisions, the newest first. */
  outcomes: Type.Array(outcomeOnRecord),
  /** The control plane that decides. */
  leader: Type.Object({
    /** The id of the process. */
    id: Type.String({ maxLength: 64 }),
    /** The id of one control plane, the same over restarts. */
    plane: Type.String({ maxLength: 64 }),
    /** The name for people. */
    name: shown,
    /** It has stopped, and another one may lead at once. */
    hasLeft: Type.Boolean(),
  }),
  /** The name of the leader before, which has stopped; '' where this one began the rollout. */
  after: shown,
  /** The steps that all control planes take, as --rollout has them; undefined before one of them has said so. */
  steps: Type.Optional(Type.String({ maxLength: 4_096 })),
  /** Counts the leader's signs of life. */
  beat: Type.Integer({ minimum: 0 }),
  /** Counts the changes, so that an older record in its place is known as one; the release before has none. */
  writes: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type RolloutRecord = Omit<Type.Static<typeof recordJson>, 'format'>;

/** --rollout where every worker gets a revision at once, at each control plane. */
export const noSteps = 'off';
/** A rollout that a version before has begun, which put no steps on record. */
const defaultSteps = 'canary=10%,hold=60s';

/** The steps that count: `own`, as --rollout has them ('' without one), where the record has none. */
export function stepsBy(record: RolloutRecord, own: string): string {
  if (record.steps !== undefined) return record.steps;
  const hasNone = own === '' || own === noSteps;
  return hasNone && openRolloutOf(record) !== undefined ? defaultSteps : own;
}

/** Whether revisions reach the workers in steps. */
export function hasSteps(record: RolloutRecord, own: string): boolean {
  const steps = stepsBy(record, own);
  return steps !== '' && steps !== noSteps;
}

/** Before anything is on record. */
export const emptyRecord: RolloutRecord = {
  rollout: null,
  inForce: [],
  verdicts: [],
  outcomes: [],
  leader: { id: '', plane: '', name: '', hasLeft: true },
  after: '',
  beat: 0,
};

const maxInForce = 20;
const maxVerdicts = 50;
/** Characters, of which a record that would be too large keeps fewer. */
const reasonLengths = [1_000, 300, 100, 30];
const maxName = 300;
/** The most workers that one step can have: their places stand in the record one by one. */
export const maxChosen = 20_000;

/** The rollout whose revision workers may still get, or lose. */
export function openRolloutOf({ rollout }: RolloutRecord): RolloutOnRecord | undefined {
  return rollout?.outcome === 'running' || rollout?.outcome === 'paused' ? rollout : undefined;
}

/** Whether the last rollout has brought its revision into force, and nothing else is in force since. */
function isInForce({ rollout, inForce }: RolloutRecord): boolean {
  return rollout?.outcome === 'in_force' && inForce[0]?.content === rollout.content;
}

/** The last rollout, where its id is this one and it can still be taken back: a take-back outlives an end that was written by
 * a control plane without knowledge of it. */
export function undoableOf(
  record: RolloutRecord,
  id: string | undefined,
): RolloutOnRecord | undefined {
  const { rollout } = record;
  const isUndoable = openRolloutOf(record) !== undefined || isInForce(record);
  return rollout !== null && rollout.id === id && isUndoable ? rollout : undefined;
}

/** The last verdict on this revision, or on another one with the same content. */
export function verdictOf(
  { verdicts }: RolloutRecord,
  revision: string,
  content: string,
): Verdict | undefined {
  return verdicts.find((each) => each.revision === revision || each.content === content);
}

/** Whether the removal for which it was held back is approved. */
export function isRemovalApproved(
  record: RolloutRecord,
  revision: string,
  content: string,
): boolean {
  const isHeldBack = record.outcomes.some(
    (each) => each.kind === 'held_back' && each.content === content,
  );
  return isHeldBack && verdictOf(record, revision, content)?.outcome === 'approved';
}

/** Whether there is nothing to add to what was said of it: what is in force may have changed since it was held back. */
export function isJudged(record: RolloutRecord, revision: string, content: string): boolean {
  const { outcome, against } = verdictOf(record, revision, content) ?? {};
  if (outcome !== 'held_back' || against === undefined) return outcome !== undefined;
  return against === record.inForce[0]?.content;
}

type Tried = Pick<TrialState, 'revision' | 'content' | 'saidBefore'>;

/** The verdict by which it is taken back, other than in an earlier try, on which `saidBefore` was said. */
export function takenBackOf(
  record: RolloutRecord,
  { revision, content, saidBefore }: Tried,
): Verdict | undefined {
  return takenBackBy(verdictOf(record, revision.id, content), saidBefore, revision.id);
}

/** The verdict by which it is held back, since it would remove too much of the rules in force on record. */
export function heldBackOf(
  record: RolloutRecord,
  { revision, content, saidBefore }: Tried,
): Verdict | undefined {
  const said = verdictOf(record, revision.id, content);
  return heldBackBy(said, saidBefore, record.inForce[0]?.content);
}

/** Why this content was taken back when it was tried before; undefined where it was not, or has come through since. That a
 * newer revision has taken its place says nothing of it. */
export function whyTakenBack({ outcomes }: RolloutRecord, content: string): string | undefined {
  const last = outcomes.find((each) => each.content === content && !isReplaced(each.reason));
  return last?.kind === 'taken_back' ? last.reason : undefined;
}

export function withVerdict(record: RolloutRecord, verdict: Verdict): RolloutRecord {
  const now = addVerdict(record, verdict);
  const { outcome, revision, content, reason, by, atMs } = verdict;
  return outcome === 'approved'
    ? now
    : noteOutcome(now, { revision, content, kind: outcome, reason, by, atMs });
}

/** Something became of a revision. */
export function noteOutcome(record: RolloutRecord, outcome: NewOutcome): RolloutRecord {
  return { ...record, outcomes: withOutcome(record.outcomes, outcome) };
}

function addVerdict(record: RolloutRecord, verdict: Verdict): RolloutRecord {
  const others = withoutVerdict(record, verdict.content).verdicts;
  return { ...record, verdicts: [verdict, ...others].slice(0, maxVerdicts) };
}

/** The content is tried again, or has come through. */
export function withoutVerdict(record: RolloutRecord, content: string): RolloutRecord {
  return { ...record, verdicts: record.verdicts.filter((each) => each.content !== content) };
}

/**
 * Everybody is given this from now on, so that it is on trial nowhere. A revision that came after it before was
 * undone, and is no state to go back to. An approval counts until the approved revision is in force no more: one
 * that removes everything again later is held back again. `word`: since when, by whom and why, where that is
 * known.
 */
export function withInForce(
  record: RolloutRecord,
  now: { readonly revision: string; readonly content: string },
  word?: Word,
): RolloutRecord {
  const { revision, content } = now;
  const said = verdictOf(record, revision, content);
  const approval = said?.outcome === 'approved' ? said : undefined;
  const before = record.inForce.findIndex((each) => each.content === content);
  const past = new Set(record.inForce.map((each) => each.content));
  const verdicts = record.verdicts.filter((each) =>
    each.outcome === 'approved'
      ? each.content === content || !past.has(each.content)
      : each.content !== content,
  );
  const open = openRolloutOf(record);
  const noted =
    word === undefined
      ? record
      : noteOutcome(record, { ...now, ...toApproved(word, approval), kind: 'in_force' });
  return {
    ...noted,
    rollout: open?.content === content ? toEnded(open, 'in_force', '') : record.rollout,
    verdicts,
    inForce: [{ revision, content }, ...record.inForce.slice(before + 1)].slice(0, maxInForce),
  };
}

/** Why it is in force, where somebody had to approve it first. */
function toApproved({ reason, by, atMs }: Word, approval: Verdict | undefined): Word {
  if (approval === undefined) return { reason, by, atMs };
  const approved = `approved by ${approval.by}: ${approval.reason}`;
  return { reason: reason === '' ? approved : `${approved}; ${reason}`, by: approval.by, atMs };
}

/** The last rollout has this outcome. One that was taken back before every control plane knew of its end was never in force:
 * the revision before it is in force again. */
export function withEnd(
  record: RolloutRecord,
  outcome: 'in_force' | 'taken_back',
  end: Word,
): RolloutRecord {
  const { rollout } = record;
  if (rollout === null) return record;
  const { revision, content } = rollout;
  const [, ...before] = record.inForce;
  const isUndone = outcome === 'taken_back' && isInForce(record) && before.length > 0;
  const inForce = isUndone ? before : record.inForce;
  const ended = { ...record, inForce, rollout: toEnded(rollout, outcome, end.reason) };
  return outcome === 'in_force'
    ? withInForce(ended, { revision, content }, end)
    : withVerdict(ended, { ...end, revision, content, outcome, rollout: rollout.id });
}

function toEnded(
  rollout: RolloutOnRecord,
  outcome: 'in_force' | 'taken_back',
  reason: string,
): RolloutOnRecord {
  return { ...rollout, outcome, chosen: [], whole: [], reason };
}

/** Whether it names revisions without their contents, as the version before wrote them. */
export function hasUnknownContent({ rollout, inForce, verdicts }: RolloutRecord): boolean {
  return [rollout, ...inForce, ...verdicts].some((each) => each?.content === unknownContent);
}

/** The record with the contents of revisions that a record of the version before names without them. */
export function withContents(
  record: RolloutRecord,
  known: readonly { readonly revision: string; readonly content: string }[],
): RolloutRecord {
  const complete = <Named extends (typeof known)[number]>(named: Named): Named => {
    if (named.content !== unknownContent) return named;
    const found = known.find(({ revision }) => revision === named.revision);
    return found ? { ...named, content: found.content } : named;
  };
  return {
    ...record,
    rollout: record.rollout && complete(record.rollout),
    inForce: record.inForce.map(complete),
    verdicts: record.verdicts.map(complete),
  };
}

/** The record with texts for people as short as it takes for all of it to be a shared text. */
export function fitRecord(record: RolloutRecord): RolloutRecord {
  let fitted = record;
  for (const length of reasonLengths) {
    fitted = shorten(record, length);
    if (Buffer.byteLength(toRecordText(fitted)) <= maxSharedTextBytes) break;
  }
  return fitted;
}

function shorten(record: RolloutRecord, maxReason: number): RolloutRecord {
  const { rollout, verdicts, outcomes, leader, after } = record;
  const cut = <Said extends Pick<Verdict, 'reason'>>(said: Said): Said => ({
    ...said,
    reason: cutText(said.reason, maxReason),
  });
  const cutBoth = <Said extends Pick<Verdict, 'reason' | 'by'>>(said: Said): Said => ({
    ...cut(said),
    by: cutText(said.by, maxName),
  });
  return {
    ...record,
    rollout: rollout && cut(rollout),
    inForce: record.inForce.slice(0, maxInForce),
    verdicts: verdicts.slice(0, maxVerdicts).map(cutBoth),
    outcomes: outcomes.slice(0, maxOutcomes).map(cutBoth),
    leader: { ...leader, name: cutText(leader.name, maxName) },
    after: cutText(after, maxName),
  };
}

/** Why this record could not be read again, for people; undefined when it can. */
export function whyUnreadable(record: RolloutRecord): string | undefined {
  const text = toRecordText(record);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxSharedTextBytes) {
    return `the record would have ${bytes} bytes, more than ${maxSharedTextBytes}`;
  }
  const reading = parseRecord(text);
  return reading.ok ? undefined : `nobody could read the record: ${reading.problem}`;
}

export function toRecordText(record: RolloutRecord): string {
  return JSON.stringify({ format: currentFormat, ...record });
}

export type RecordReading =
  | { readonly ok: true; readonly record: RolloutRecord }
  | {
      readonly ok: false;
      /** A sentence for people. */
      readonly problem: string;
      /** Undefined where it is damaged. */
      readonly ofOtherVersion: OtherVersion | undefined;
    };

/** What is understood of a record that control planes of another version understand. */
export interface OtherVersion {
  /** What lets the record be read, as an order. */
  readonly remedy: string;
  readonly inForce: RolloutRecord['inForce'][number] | undefined;
}

/** In place of a record that is in an engine now. No other version reads it as a record: it takes no step. */
const movedJson = Type.Object({ movedTo: Type.String({ maxLength: maxName }) });

export function toMovedText(place: string): string {
  return JSON.stringify({ movedTo: cutText(place, maxName) });
}

export function isMovedText(text: string): boolean {
  try {
    return Value.Check(movedJson, JSON.parse(text));
  } catch {
    return false;
  }
}

/** All that a record of any later version has in common with this one. */
const inForceOfAnyVersion = Type.Object({
  inForce: Type.Array(Type.Object({ revision: revisionId, content })),
});

/** Whoever reads a text has held it against `maxSharedTextBytes`. */
export function parseRecord(text: string): RecordReading {
  const refuse = (problem: string, ofOtherVersion?: OtherVersion) =>
    ({ ok: false, problem, ofOtherVersion }) as const;
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return refuse('it is cut or damaged');
  }
  if (Value.Check(recordJson, given)) {
    const { format: _, ...record } = given;
    return { ok: true, record };
  }
  if (Value.Check(movedJson, given)) {
    const other = { inForce: undefined, remedy: 'start with that --record' };
    return refuse(`it has moved to ${given.movedTo}`, other);
  }
  const record = fromRecordBefore(given);
  if (record !== undefined) return { ok: true, record: { ...emptyRecord, ...record } };
  const other = toOtherVersion(given, [formatBefore, currentFormat]);
  if (other === undefined) return refuse('it is not a record of a rollout');
  const inForce = Value.Check(inForceOfAnyVersion, given) ? given.inForce[0] : undefined;
  return refuse(`it is of ${other}`, { inForce, remedy: 'run the version that wrote it' });
}
