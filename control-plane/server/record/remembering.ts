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
import type { ChangeRecord } from './record-state.ts';

/** What this control plane has already compared with the record, and what it has yet to put on record. */
export interface Memory {
  /** The content in force here when it was last compared with the record: any other content is about to be put on
   * record. */
  readonly noted: string | undefined;
  /** Invalid revisions to put on record, the oldest first: they may have been repaired meanwhile. */
  readonly invalid: readonly NewOutcome[];
}

export const noMemory: Memory = { noted: undefined, invalid: [] };

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
  /** `otherwise`: if the change is not written, `noted` has to be forgotten. */
  | {
      readonly kind: 'write';
      readonly change: ChangeRecord;
      readonly otherwise?: 'note_again';
    }
  /** No other control plane needs the change: it stays in the state directory. */
  | { readonly kind: 'keep_here'; readonly change: ChangeRecord }
  | GiveWay;

/** The revision of this rollout is no longer the one to roll out. */
export interface GiveWay {
  readonly kind: 'give_way';
  readonly open: RolloutOnRecord;
  readonly newest: string;
}

interface Turn {
  readonly memory: Memory;
  readonly effects: readonly ToRemember[];
}

/** At most one change is written at a time. */
export function remember(before: Memory, happened: Happened): Turn {
  const { snapshots, record } = happened;
  const memory = { ...before, invalid: findInvalid(before.invalid, happened) };
  if (!happened.mayWrite) return { memory, effects: [] };
  const contents = findContents(snapshots, record);
  if (contents !== undefined) return { memory, effects: [contents] };
  const open = openRolloutOf(record);
  const { withdrawn } = snapshots;
  if (open !== undefined && open.revision === withdrawn?.revision) {
    return { memory, effects: [{ kind: 'give_way', open, newest: withdrawn.by }] };
  }
  const [first] = memory.invalid;
  const invalid = first && findOutcome(first, happened);
  // The history lists the earlier outcome first.
  const isBefore = first !== undefined && first.atMs < (snapshots.inForce?.sinceMs ?? 0);
  if (isBefore && invalid?.kind === 'write') return { memory, effects: [invalid] };
  const retained = invalid?.kind === 'keep_here' ? [invalid] : [];
  const { noted, write } = findInForce(memory.noted, happened);
  const now = { ...memory, noted };
  const [next] = [
    write,
    invalid?.kind === 'write' ? invalid : undefined,
    findHeldBack(happened),
    // The revision in force may have come into force without a change for the workers.
    isWanted(snapshots) ? findOutcome(toInForce(snapshots), happened) : undefined,
  ].flatMap((each) => each ?? []);
  return { memory: now, effects: next === undefined ? retained : [...retained, next] };
}

/** Whether the record is shared; if no other control plane needs it, it stays in the state directory. */
function isShared({ rollsOut, reportsOutcomes, record }: Happened): boolean {
  return rollsOut || reportsOutcomes || record.verdicts.length > 0 || record.inForce.length > 0;
}

function isWanted({ inForce, newest }: SnapshotState): boolean {
  return inForce?.isAtOnce || inForce?.revision.id === newest?.revision.id;
}

function toWrite(record: RolloutRecord, change: ChangeRecord): ToRemember | undefined {
  return change(record) && { kind: 'write', change };
}

function findInForce(
  before: Memory['noted'],
  happened: Happened,
): { readonly noted: Memory['noted']; readonly write: ToRemember | undefined } {
  const { snapshots, record } = happened;
  const { inForce, newest } = snapshots;
  const isNoted = inForce !== undefined && inForce.content === before && !isAfter(inForce, record);
  const isMeant = inForce !== undefined && isShared(happened) && isWanted(snapshots);
  if (isNoted || !isMeant) return { noted: isNoted ? before : undefined, write: undefined };
  const { content, isAtOnce, mayRemove } = inForce;
  // A revision that came from the record is not written again, even if another one has followed meanwhile. What is
  // served for lack of anything known never counts against a record.
  const isOnRecord = (record: RolloutRecord) =>
    isAtOnce
      ? record.inForce[0]?.content === content
      : record.inForce.length > 0 || openRolloutOf(record) !== undefined;
  const now = { revision: inForce.revision.id, content };
  // The removals of this revision are known on record but were not known here when it was served: following.ts returns
  // to the revision before.
  const isHeldBack = (record: RolloutRecord) =>
    !mayRemove &&
    heldBackOf(record, { ...inForce, earlierVerdict: newest?.earlierVerdict }) !== undefined;
  const word = { reason: '', by: '', atMs: inForce.sinceMs };
  const change: ChangeRecord = (record) =>
    isOnRecord(record) || isHeldBack(record) ? undefined : withInForce(record, now, word);
  const write = change(record) && ({ kind: 'write', change, otherwise: 'note_again' } as const);
  return { noted: content, write };
}

/** Whether other content has come into force on record since these rules were noted, and their author wants them again,
 * which the record does not show. */
function isAfter(
  { revision, content, isAtOnce }: NonNullable<SnapshotState['inForce']>,
  { inForce: [last, ...earlier], outcomes }: RolloutRecord,
): boolean {
  const isKnown =
    earlier.some((each) => each.revision === revision.id) ||
    outcomes.some(({ revisions }) => revisions.includes(revision.id));
  return isAtOnce && last !== undefined && last.content !== content && !isKnown;
}

function findHeldBack({ snapshots, record, wallMs }: Happened): ToRemember | undefined {
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
  const invalid = before.filter((each) => !isNoted(record, each));
  if (newest === undefined || newest.valid || newest.content !== undefined) return invalid;
  const { revision, problems } = newest;
  if (invalid.at(-1)?.revision === revision.id) return invalid;
  const reason = toErrorsText(problems);
  const now = { ...unsaid, revision: revision.id, reason, atMs: wallMs };
  const outcome = { ...now, kind: 'invalid' } as const;
  return isNoted(record, outcome) ? invalid : [...invalid, outcome].slice(-maxOutcomes);
}

/** Puts an outcome on record for the history. */
function findOutcome(outcome: NewOutcome | undefined, happened: Happened): ToRemember | undefined {
  const { record, leads } = happened;
  if (outcome === undefined) return undefined;
  const change: ChangeRecord = (record) =>
    isNews(record, outcome) ? noteOutcome(record, outcome) : undefined;
  if (!isShared(happened)) return change(record) && { kind: 'keep_here', change };
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

const unsaid = { content: '', reason: '', by: '' };

function toInForce({ inForce }: SnapshotState): NewOutcome | undefined {
  if (inForce === undefined) return undefined;
  const { content, revision, sinceMs } = inForce;
  return { ...unsaid, revision: revision.id, content, kind: 'in_force', atMs: sinceMs };
}

/** Whether the outcome is new. An outcome `in_force` counts only if its content is already in force on record, or
 * nothing is: `findInForce` writes any other one. */
function isNews(record: RolloutRecord, outcome: NewOutcome): boolean {
  const [known] = record.inForce;
  const isElse = known !== undefined && known.content !== outcome.content;
  return !isNoted(record, outcome) && !(outcome.kind === 'in_force' && isElse);
}

function isNoted({ outcomes }: RolloutRecord, { revision, content, kind }: NewOutcome): boolean {
  if (kind !== 'in_force') {
    return outcomes.find(({ revisions }) => revisions.includes(revision))?.kind === kind;
  }
  if (inForceOf(outcomes)?.content !== content) return false;
  // The revision may be an earlier one: a control plane that is behind has an earlier revision with the same rules.
  return outcomes.some(
    (each) => each.kind === kind && each.content === content && each.revisions.includes(revision),
  );
}

/** Formats as `a.yaml:4:25: unit: 'huor' is no unit (and 2 more)`. */
function toErrorsText(problems: readonly Problem[]): string {
  const [first, ...others] = problems.filter(isError);
  if (first === undefined) return '';
  const more = others.length === 0 ? '' : ` (and ${toCountText(others.length, 'more error')})`;
  return `${toHeading(first)}${more}`;
}
