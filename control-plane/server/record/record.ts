// The record that control planes share beside the rules: the progress or outcome of the rollout, the revisions in force
// before, and those that were held back, approved or taken back, by whom and why. As text.
import Type from 'typebox';
import { Value } from 'typebox/value';
import { heldBackBy, isReplaced, takenBackBy } from '../snapshot/admission.ts';
import type { TrialState } from '../snapshot/snapshot-state.ts';
import { toOtherVersion } from '../store/format-version.ts';
import { maxSharedTextBytes } from '../store/shared-text.ts';
import { cutText, maxOutcomes, type NewOutcome, outcomeOnRecord, withOutcome } from './outcomes.ts';
import { formatBefore, fromRecordBefore, unknownContent } from './record-before.ts';

const currentFormat = 3;
const revisionId = Type.String({ maxLength: 128 });
/** The `content` of a build (snapshot/build.ts): equal if every node gets the same. */
const content = Type.String({ maxLength: 64 });
/** The number of characters that identify one of the contents that were taken back. */
const shortContent = 16;
/** Human-readable texts, and lists, have no limit of their own: `fitRecord` shortens them until the record fits. */
const shown = Type.String();

const rolloutJson = Type.Object({
  /** Identifies this rollout, as a revision may be rolled out again. Unknown to workers, whose positions are derived
   * from it. */
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
  /** The positions (pools.ts) of the workers that have it. */
  chosen: Type.Array(Type.String({ maxLength: 16 })),
  /** Pools (pools.ts) in which all workers have it. */
  whole: Type.Array(Type.Integer({ minimum: 0 })),
  /** Why it is paused or was taken back, or why all workers have it; otherwise ''. */
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
  /** The person who gave the verdict; '' for a control plane. */
  by: shown,
  /** The wall time in milliseconds. */
  atMs: Type.Number(),
  /** For a revision that is held back: the content in force of which it would remove too much, if any was on record. */
  against: Type.Optional(content),
  /** The id of the rollout that the verdict ended. */
  rollout: Type.Optional(Type.String({ maxLength: 64 })),
});
export type VerdictOnRecord = Type.Static<typeof verdictJson>;

/** The reason, the person (human-readable; '' for a control plane) and the time. */
export type VerdictDetails = Pick<VerdictOnRecord, 'reason' | 'by' | 'atMs'>;

const recordJson = Type.Object({
  format: Type.Literal(currentFormat),
  /** The last rollout; null before the first. */
  rollout: Type.Union([rolloutJson, Type.Null()]),
  /** The revisions that all workers were given, the newest first: the newest is in force, except for the workers of an
   * open rollout. */
  inForce: Type.Array(Type.Object({ revision: revisionId, content })),
  /** The last verdict on each content, the newest first. */
  verdicts: Type.Array(verdictJson),
  /** The outcomes of the last revisions, the newest first. */
  outcomes: Type.Array(outcomeOnRecord),
  /** The beginnings of the contents that were taken back and have not come into force since, the newest first: they
   * outlive verdicts and outcomes. Undefined in a record of an earlier release. */
  takenBack: Type.Optional(Type.Array(Type.String({ maxLength: shortContent }))),
  /** The control plane that decides. */
  leader: Type.Object({
    /** The id of the process. */
    id: Type.String({ maxLength: 64 }),
    /** The id of one control plane, the same over restarts. */
    plane: Type.String({ maxLength: 64 }),
    /** Human-readable. */
    name: shown,
    /** Whether the leader has stopped, so that another control plane can lead at once. */
    hasLeft: Type.Boolean(),
  }),
  /** The name of the previous leader, which has stopped; '' if this one began the rollout. */
  after: shown,
  /** The steps that all control planes take, in the syntax of --rollout; undefined until one of them has recorded its
   * own. */
  steps: Type.Optional(Type.String({ maxLength: 4_096 })),
  /** Counts the leader's signs of life. */
  beat: Type.Integer({ minimum: 0 }),
  /** Counts the changes, so that an older record can be recognized; the previous release does not count them. */
  writes: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type RolloutRecord = Omit<Type.Static<typeof recordJson>, 'format'>;

/** The value of --rollout with which every worker gets a revision at once, from all control planes. */
export const noSteps = 'off';
/** The steps of a rollout that a previous version began, which put no steps on record. */
const defaultSteps = 'canary=10%,hold=60s';

/** The steps that apply: those on record, otherwise `own`, in the syntax of --rollout ('' without one). */
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

/** The record before anything is written. */
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
/** Less than 80 KB of the record: beyond that the oldest are forgotten. */
export const maxTakenBack = 4_000;
/** The number of characters; a record that would be too large keeps fewer. */
const reasonLengths = [1_000, 300, 100, 30];
const maxName = 300;
/** The most workers that one step can have: the record lists each of their places. */
export const maxChosen = 20_000;

/** The rollout whose revision workers may still get or lose. */
export function openRolloutOf({ rollout }: RolloutRecord): RolloutOnRecord | undefined {
  return rollout?.outcome === 'running' || rollout?.outcome === 'paused' ? rollout : undefined;
}

/** Whether the last rollout has brought its revision into force and no other revision has come into force since. */
function isInForce({ rollout, inForce }: RolloutRecord): boolean {
  return rollout?.outcome === 'in_force' && inForce[0]?.content === rollout.content;
}

/** The last rollout, if it has this id and can still be taken back: a take-back outlives an end that a control plane
 * has written without knowing of it. */
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
): VerdictOnRecord | undefined {
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

/** Whether the verdict on the revision needs no update: the content in force may have changed since it was held
 * back. */
export function isJudged(record: RolloutRecord, revision: string, content: string): boolean {
  const { outcome, against } = verdictOf(record, revision, content) ?? {};
  if (outcome !== 'held_back' || against === undefined) return outcome !== undefined;
  return against === record.inForce[0]?.content;
}

type Tried = Pick<TrialState, 'revision' | 'content' | 'earlierVerdict'>;

/** The verdict by which the revision is taken back, unless it is `earlierVerdict`, which was given on an earlier try. */
export function takenBackOf(
  record: RolloutRecord,
  { revision, content, earlierVerdict }: Tried,
): VerdictOnRecord | undefined {
  return takenBackBy(verdictOf(record, revision.id, content), earlierVerdict, revision.id);
}

/** The verdict by which the revision is held back because it would remove too much of the rules in force on record. */
export function heldBackOf(
  record: RolloutRecord,
  { revision, content, earlierVerdict }: Tried,
): VerdictOnRecord | undefined {
  const entry = verdictOf(record, revision.id, content);
  return heldBackBy(entry, earlierVerdict, record.inForce[0]?.content);
}

/** Whether the content was in force before, as far as that is on record. */
export function wasServed({ inForce, outcomes }: RolloutRecord, content: string): boolean {
  const isIt = (each: { readonly content: string }) => each.content === content;
  return inForce.some(isIt) || outcomes.some((each) => each.kind === 'in_force' && isIt(each));
}

/** Why this content was taken back when it was tried before; undefined if it was not, or has come into force since.
 * Being replaced by a newer revision does not count. */
export function whyTakenBack(record: RolloutRecord, content: string): string | undefined {
  const isTakenBack = takenBackOn(record).includes(toShort(content));
  const entry = record.outcomes.find((each) => each.content === content && isBad(each));
  return isTakenBack ? (entry?.reason ?? 'the reason is no longer on record') : undefined;
}

/** Adds the contents that `ours` has as taken back, unless they have come into force in `theirs`. */
export function withTakenBackOf(theirs: RolloutRecord, ours: RolloutRecord): RolloutRecord {
  const known = takenBackOn(theirs);
  const inForce = theirs.outcomes.filter(({ kind }) => kind === 'in_force');
  const others = [...inForce, ...theirs.inForce].map(({ content }) => toShort(content));
  const has = new Set([...known, ...others]);
  const missing = takenBackOn(ours).filter((each) => !has.has(each));
  const takenBack = [...known, ...missing].slice(0, maxTakenBack);
  return takenBack.length === known.length ? theirs : { ...theirs, takenBack };
}

/** What only withholds revisions, whoever wrote it. */
export function toTakenBackOnly(record: RolloutRecord): RolloutRecord {
  const verdicts = record.verdicts.filter(({ outcome }) => outcome === 'taken_back');
  return { ...emptyRecord, verdicts, takenBack: [...takenBackOn(record)] };
}

const toShort = (content: string) => content.slice(0, shortContent);

function takenBackOn({ takenBack, outcomes }: RolloutRecord): readonly string[] {
  if (takenBack !== undefined) return takenBack;
  const last = outcomes.filter(({ reason }) => !isReplaced(reason));
  return last.flatMap((each, at) =>
    isBad(each) && last.findIndex(({ content }) => content === each.content) === at
      ? toShort(each.content)
      : [],
  );
}

function isBad({ kind, reason }: Pick<NewOutcome, 'kind' | 'reason'>): boolean {
  return kind === 'taken_back' && !isReplaced(reason);
}

export function withVerdict(record: RolloutRecord, verdict: VerdictOnRecord): RolloutRecord {
  const now = addVerdict(record, verdict);
  const { outcome, revision, content, reason, by, atMs } = verdict;
  return outcome === 'approved'
    ? now
    : noteOutcome(now, { revision, content, kind: outcome, reason, by, atMs });
}

/** Records an outcome of a revision. */
export function noteOutcome(record: RolloutRecord, outcome: NewOutcome): RolloutRecord {
  const content = toShort(outcome.content);
  const others = takenBackOn(record).filter((each) => each !== content);
  const takenBack = isBad(outcome)
    ? [content, ...others].slice(0, maxTakenBack)
    : outcome.kind === 'in_force'
      ? others
      : takenBackOn(record);
  return { ...record, takenBack: [...takenBack], outcomes: withOutcome(record.outcomes, outcome) };
}

function addVerdict(record: RolloutRecord, verdict: VerdictOnRecord): RolloutRecord {
  const others = withoutVerdict(record, verdict.content).verdicts;
  return { ...record, verdicts: [verdict, ...others].slice(0, maxVerdicts) };
}

/** Removes the verdict on a content that is tried again or has come into force. */
export function withoutVerdict(record: RolloutRecord, content: string): RolloutRecord {
  return { ...record, verdicts: record.verdicts.filter((each) => each.content !== content) };
}

/** Gives this revision to all workers from now on, so that it is on trial nowhere. A later revision that was in force
 * was undone and is no state to return to. An approval counts while the approved revision is in force: one that removes
 * everything again later is held back again. `details`: since when, by whom and why, if that is known. */
export function withInForce(
  record: RolloutRecord,
  now: { readonly revision: string; readonly content: string },
  details?: VerdictDetails,
): RolloutRecord {
  const { revision, content } = now;
  const entry = verdictOf(record, revision, content);
  const approval = entry?.outcome === 'approved' ? entry : undefined;
  const before = record.inForce.findIndex((each) => each.content === content);
  const past = new Set(record.inForce.map((each) => each.content));
  const verdicts = record.verdicts.filter((each) =>
    each.outcome === 'approved'
      ? each.content === content || !past.has(each.content)
      : each.content !== content,
  );
  const open = openRolloutOf(record);
  const noted =
    details === undefined
      ? record
      : noteOutcome(record, { ...now, ...toApproved(details, approval), kind: 'in_force' });
  return {
    ...noted,
    rollout: open?.content === content ? toEnded(open, 'in_force', '') : record.rollout,
    verdicts,
    inForce: [{ revision, content }, ...record.inForce.slice(before + 1)].slice(0, maxInForce),
  };
}

/** Why the revision is in force, if an operator had to approve it first. */
function toApproved(
  { reason, by, atMs }: VerdictDetails,
  approval: VerdictOnRecord | undefined,
): VerdictDetails {
  if (approval === undefined) return { reason, by, atMs };
  const approved = `approved by ${approval.by}: ${approval.reason}`;
  return { reason: reason === '' ? approved : `${approved}; ${reason}`, by: approval.by, atMs };
}

/** Ends the last rollout with this outcome. If it was taken back before all control planes were notified of its end, it was
 * never in force: the previous revision is in force again. */
export function withEnd(
  record: RolloutRecord,
  outcome: 'in_force' | 'taken_back',
  end: VerdictDetails,
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

/** Whether the record names revisions without their contents, as the previous version did. */
export function hasUnknownContent({ rollout, inForce, verdicts }: RolloutRecord): boolean {
  return [rollout, ...inForce, ...verdicts].some((each) => each?.content === unknownContent);
}

/** Adds the contents of revisions to a record of the previous version, which names revisions without them. */
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

/** Shortens the human-readable texts until the record fits into a shared text. */
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
  const cut = <Entry extends Pick<VerdictOnRecord, 'reason'>>(entry: Entry): Entry => ({
    ...entry,
    reason: cutText(entry.reason, maxReason),
  });
  const cutBoth = <Entry extends Pick<VerdictOnRecord, 'reason' | 'by'>>(entry: Entry): Entry => ({
    ...cut(entry),
    by: cutText(entry.by, maxName),
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

/** Why this record could not be read again, human-readable; undefined if it can. */
export function whyUnreadable(record: RolloutRecord): string | undefined {
  const text = toRecordText(record);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxSharedTextBytes) {
    return `the record would have ${bytes} bytes, more than ${maxSharedTextBytes}`;
  }
  const reading = parseRecord(text);
  return reading.ok ? undefined : `the record could not be read back: ${reading.problem}`;
}

export function toRecordText(record: RolloutRecord): string {
  return JSON.stringify({ format: currentFormat, ...record });
}

export type RecordReading =
  | { readonly ok: true; readonly record: RolloutRecord }
  | {
      readonly ok: false;
      /** A human-readable sentence. */
      readonly problem: string;
      /** Undefined if the record is damaged. */
      readonly ofOtherVersion: OtherVersion | undefined;
    };

/** The part of another version's record that this version understands. */
export interface OtherVersion {
  /** What makes the record readable, in the imperative. */
  readonly remedy: string;
  readonly inForce: RolloutRecord['inForce'][number] | undefined;
}

/** Replaces a record that has moved to an engine. No other version reads it as a record, so none takes a step by it. */
const movedJson = Type.Object({ movedTo: Type.String({ maxLength: maxName }) });

export function toMovedText(location: string): string {
  return JSON.stringify({ movedTo: cutText(location, maxName) });
}

export function isMovedText(text: string): boolean {
  try {
    return Value.Check(movedJson, JSON.parse(text));
  } catch {
    return false;
  }
}

/** What the records of all later versions have in common with this one. */
const inForceOfAnyVersion = Type.Object({
  inForce: Type.Array(Type.Object({ revision: revisionId, content })),
});

/** The caller has already checked the text against `maxSharedTextBytes`. */
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
