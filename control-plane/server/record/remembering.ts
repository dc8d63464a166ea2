// Puts on record what other control planes, or this one after a restart, need to know about what happened without a
// rollout: which revisions reached all workers at once, and which were held back. Pure.
import { isDeepStrictEqual } from 'node:util';
import { toCountText } from '../../../shared/count-text.ts';
import { isError, type Problem } from '../../../shared/rules/problem/problem.ts';
import { toHeading } from '../../../shared/rules/problem/problem-text.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import { inForceOf, maxOutcomes, type NewOutcome } from './outcomes.ts';
import {
  hasUnknownContent,
  heldBackOf,
  isJudged,
  noteOutcome,
  openRolloutOf,
  type RolloutOnRecord,
  type RolloutRecord,
  withContents,
  withInForce,
  withVerdict,
} from './record.ts';
import type { ChangeRecord, DecisionEvent } from './record-state.ts';

/** What this control plane has already compared with the record, and what it has yet to put on record. */
export interface Memory {
  /** The content in force here that has been compared with the record: any other content is about to be put on record.
   * Undefined again if the change was not written (`compare_again`), or if the content is not for the record yet. */
  readonly compared: string | undefined;
  /** Invalid revisions to put on record, the oldest first: they may have been repaired meanwhile. */
  readonly invalid: readonly NewOutcome[];
}

export const noMemory: Memory = { compared: undefined, invalid: [] };

export interface Happened {
  /** Whether revisions reach the workers in steps. */
  readonly rollsOut: boolean;
  /** Whether notifications of outcomes are sent, each by one of the control planes. */
  readonly reportsOutcomes: boolean;
  readonly snapshots: SnapshotState;
  readonly record: RolloutRecord;
  /** Whether this control plane leads. */
  readonly leads: boolean;
  /** False while another change is being written, or if no change can be. */
  readonly mayWrite: boolean;
  readonly wallMs: number;
}

/** Each change is checked against the record that it is written into, which may be newer than the one known here: other
 * control planes also write, and this one may have been stopped. */
export type ToRemember =
  /** `otherwise`: if the change is not written, the caller clears `compared`. */
  | { readonly kind: 'write'; readonly change: ChangeRecord; readonly otherwise?: 'compare_again' }
  /** No other control plane needs the change: it stays in the state directory. */
  | Extract<DecisionEvent, { readonly kind: 'stored_locally' }>
  | GiveWay;

/** The revision of this rollout is no longer the one to roll out. */
export interface GiveWay {
  readonly kind: 'give_way';
  readonly open: RolloutOnRecord;
  readonly newest: string;
}

interface Remembered {
  readonly memory: Memory;
  readonly effects: readonly ToRemember[];
}

/** Requests at most one write: the most urgent one comes first, and the next poll finds the others. */
export function remember(before: Memory, happened: Happened): Remembered {
  const { snapshots, record } = happened;
  const memory = { ...before, invalid: findInvalid(before.invalid, happened) };
  if (!happened.mayWrite) return { memory, effects: [] };
  // All other changes compare contents, and are made after the end of a rollout that gives way.
  const urgent = findContents(snapshots, record) ?? findGiveWay(snapshots, record);
  if (urgent !== undefined) return { memory, effects: [urgent] };
  const [oldest] = memory.invalid;
  const invalid = oldest && findOutcome(oldest, happened);
  const local = invalid?.kind === 'stored_locally' ? [invalid] : [];
  const shared = invalid?.kind === 'write' ? invalid : undefined;
  // Outcomes are listed in the order in which they are written.
  const isEarlierOutcome = oldest !== undefined && oldest.atMs < (snapshots.inForce?.sinceMs ?? 0);
  if (isEarlierOutcome && shared !== undefined) return { memory, effects: [shared] };
  const { compared, write } = compareInForce(memory.compared, happened);
  const next = write ?? shared ?? findRemoval(happened) ?? findInForceOutcome(happened);
  return { memory: { ...memory, compared }, effects: next ? [...local, next] : local };
}

function findGiveWay({ withdrawn }: SnapshotState, record: RolloutRecord): GiveWay | undefined {
  const open = openRolloutOf(record);
  if (open === undefined || open.revision !== withdrawn?.revision) return undefined;
  return { kind: 'give_way', open, newest: withdrawn.by };
}

/** Whether the record is shared; if no other control plane needs it, it stays in the state directory. */
function needsSharing({ rollsOut, reportsOutcomes, record }: Happened): boolean {
  return rollsOut || reportsOutcomes || record.verdicts.length > 0 || record.inForce.length > 0;
}

/** Whether what is in force here is put on record: what was only taken over is not while there is a newer revision. */
function isForRecord({ inForce, newest }: SnapshotState): boolean {
  return inForce?.isAtOnce || inForce?.revision.id === newest?.revision.id;
}

function toWrite(record: RolloutRecord, change: ChangeRecord): ToRemember | undefined {
  return change(record) && { kind: 'write', change };
}

function compareInForce(
  before: Memory['compared'],
  happened: Happened,
): { readonly compared: Memory['compared']; readonly write?: ToRemember | undefined } {
  const { snapshots, record } = happened;
  const { inForce, newest } = snapshots;
  if (inForce === undefined) return { compared: undefined };
  const { content, isAtOnce, mayRemove, revision, sinceMs } = inForce;
  // Already compared: what other control planes bring into force later stays in force.
  if (content === before && !isWantedAgain(inForce, record)) return { compared: before };
  // Not compared before another control plane needs it and it is for the record.
  if (!needsSharing(happened) || !isForRecord(snapshots)) return { compared: undefined };
  const isOnRecord = (record: RolloutRecord) => record.inForce[0]?.content === content;
  // What came from the record, or is served for lack of anything known, replaces nothing that is on record meanwhile.
  const isPreceded = (record: RolloutRecord) =>
    !isAtOnce && (record.inForce.length > 0 || openRolloutOf(record) !== undefined);
  // The removals of this revision are known on record but were not known here when it was served: following.ts returns
  // to the revision before.
  const isHeldBack = (record: RolloutRecord) =>
    !mayRemove &&
    heldBackOf(record, { ...inForce, earlierVerdict: newest?.earlierVerdict }) !== undefined;
  const details = { reason: '', by: '', atMs: sinceMs };
  const change: ChangeRecord = (record) =>
    isOnRecord(record) || isPreceded(record) || isHeldBack(record)
      ? undefined
      : withInForce(record, { revision: revision.id, content }, details);
  const write = change(record) && ({ kind: 'write', change, otherwise: 'compare_again' } as const);
  return { compared: content, write };
}

/** Whether other content has come into force on record since these rules were compared, and their author wants them
 * again, which the record does not show. */
function isWantedAgain(
  { revision, content, isAtOnce }: NonNullable<SnapshotState['inForce']>,
  { inForce: [last, ...earlier], outcomes }: RolloutRecord,
): boolean {
  const isKnown =
    earlier.some((each) => each.revision === revision.id) ||
    outcomes.some(({ revisions }) => revisions.includes(revision.id));
  return isAtOnce && last !== undefined && last.content !== content && !isKnown;
}

function findRemoval({ snapshots, record, wallMs }: Happened): ToRemember | undefined {
  const { inForce, newest } = snapshots;
  if (!newest?.isHeldBack || newest.content === undefined) return undefined;
  const { content, revision, problems } = newest;
  const reason = problems.find(({ rule }) => rule === 'large-removal')?.message ?? 'held back';
  const verdict = { revision: revision.id, content, outcome: 'held_back', reason } as const;
  return toWrite(record, (record) => {
    if (isJudged(record, revision.id, content)) return undefined;
    const [last] = record.inForce;
    if (last?.content === content) return undefined;
    // The removal is compared with the rules that all workers have, which have not arrived here yet.
    const isBehind = last && inForce && last.content !== inForce.content;
    if (isBehind) return undefined;
    // A control plane without state serves the content that was in force before.
    const known =
      inForce && last === undefined
        ? withInForce(record, { revision: inForce.revision.id, content: inForce.content })
        : record;
    const against = known.inForce[0]?.content;
    const found = { ...verdict, ...(against !== undefined && { against }) };
    return withVerdict(known, { ...found, by: '', atMs: wallMs });
  });
}

function findInvalid(
  before: Memory['invalid'],
  { snapshots, record, wallMs }: Happened,
): Memory['invalid'] {
  const { newest } = snapshots;
  const invalid = before.filter((each) => !hasOutcome(record, each));
  if (newest === undefined || newest.valid || newest.content !== undefined) return invalid;
  const { revision, problems } = newest;
  if (invalid.at(-1)?.revision === revision.id) return invalid;
  const reason = toErrorsText(problems);
  const now = { ...noDetails, revision: revision.id, reason, atMs: wallMs };
  const outcome = { ...now, kind: 'invalid' } as const;
  return hasOutcome(record, outcome) ? invalid : [...invalid, outcome].slice(-maxOutcomes);
}

/** Puts an outcome on record for the history. */
function findOutcome(outcome: NewOutcome, happened: Happened): ToRemember | undefined {
  const { record, leads } = happened;
  const change: ChangeRecord = (record) =>
    isToAdd(record, outcome) ? noteOutcome(record, outcome) : undefined;
  if (!needsSharing(happened))
    return change(record) && { kind: 'stored_locally', change, isKnownHere: true };
  // A control plane that leads a rollout continues to lead it.
  if (openRolloutOf(record) !== undefined && !leads) return undefined;
  return toWrite(record, change);
}

/** Adds the contents to a record of the previous version, which names only revisions. */
function findContents(
  { inForce, trial, newest }: SnapshotState,
  record: RolloutRecord,
): ToRemember | undefined {
  if (!hasUnknownContent(record)) return undefined;
  const known = [inForce, trial, newest].flatMap((each) =>
    each?.content === undefined ? [] : [{ revision: each.revision.id, content: each.content }],
  );
  return toWrite(record, (record) => {
    const complete = withContents(record, known);
    return isDeepStrictEqual(complete, record) ? undefined : complete;
  });
}

const noDetails = { content: '', reason: '', by: '' };

/** The revision in force may have come into force without a change for the workers. */
function findInForceOutcome(happened: Happened): ToRemember | undefined {
  const { inForce } = happened.snapshots;
  if (inForce === undefined || !isForRecord(happened.snapshots)) return undefined;
  const { content, revision, sinceMs: atMs } = inForce;
  const outcome = { ...noDetails, revision: revision.id, content, kind: 'in_force', atMs } as const;
  return findOutcome(outcome, happened);
}

function isToAdd(record: RolloutRecord, outcome: NewOutcome): boolean {
  const [inForce] = record.inForce;
  // `compareInForce` writes content that comes into force, together with its outcome.
  const isForComparison =
    outcome.kind === 'in_force' && inForce !== undefined && inForce.content !== outcome.content;
  return !isForComparison && !hasOutcome(record, outcome);
}

function hasOutcome({ outcomes }: RolloutRecord, { revision, content, kind }: NewOutcome): boolean {
  if (kind !== 'in_force') {
    return outcomes.find(({ revisions }) => revisions.includes(revision))?.kind === kind;
  }
  if (inForceOf(outcomes)?.content !== content) return false;
  // The revision may be an earlier one: a control plane that is behind has an earlier revision with the same rules.
  return outcomes.some(
    (each) => each.kind === kind && each.content === content && each.revisions.includes(revision),
  );
}

/** Formats as `a.yaml:4:25: invalid rate limit unit 'huor' (and 2 more errors)`. */
function toErrorsText(problems: readonly Problem[]): string {
  const [first, ...others] = problems.filter(isError);
  if (first === undefined) return '';
  const more = others.length === 0 ? '' : ` (and ${toCountText(others.length, 'more error')})`;
  return `${toHeading(first)}${more}`;
}
