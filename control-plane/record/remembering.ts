// Puts on record what another control plane, or this one after a restart, has to know of what happened without a
// rollout: what everybody was given at once, and what was held back.
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import { isError, type Problem } from '../../shared/rules/problem/problem.ts';
import { toHeading } from '../../shared/rules/problem/problem-text.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
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
import type { RecordKeeper } from './record-keeper.ts';
import type { ChangeRecord } from './record-state.ts';

export interface Remembering {
  /** Writes at most one change, and none unless `mayWrite`: the one before is being written. */
  remember(mayWrite: boolean): void;
  /** Whether this content in force is not on record yet, and will be. */
  isUnwritten(content: string): boolean;
}

export interface RememberingDeps {
  /** Whether revisions reach the workers in steps. */
  readonly rollsOut: boolean;
  /** Whether people are told what becomes of revisions, each time by one of the control planes. */
  readonly isTold: boolean;
  readonly snapshots: Pick<SnapshotCache, 'state'>;
  readonly keeper: Pick<RecordKeeper, 'record' | 'trouble' | 'leads' | 'keepHere'>;
  readonly write: (change: ChangeRecord) => Promise<boolean>;
  /** Nobody wants the revision of this rollout any more. */
  readonly giveWay: (open: RolloutOnRecord, newest: string) => Promise<unknown>;
  readonly clock: Clock;
}

/** Each change is judged by the record that it is written into, which may be newer than the one that is known here: other
 * control planes write too, and this one may have stood still. */
export function createRemembering(deps: RememberingDeps): Remembering {
  const { rollsOut, isTold, snapshots, keeper, write, clock } = deps;
  /** In force here when it was last compared with the record. */
  let noted: string | undefined;
  /** Invalid revisions that are to be written, the oldest first: they may have been mended meanwhile. */
  let invalid: readonly NewOutcome[] = [];

  /** Where nobody else needs it, the record stays in the state directory. */
  function isShared({ verdicts, inForce }: RolloutRecord): boolean {
    return rollsOut || isTold || verdicts.length > 0 || inForce.length > 0;
  }

  function isWanted({ inForce, newest }: SnapshotState): boolean {
    return inForce?.isAtOnce || inForce?.revision.id === newest?.revision.id;
  }

  /** True when it is being written. */
  function noteInForce(state: SnapshotState, record: RolloutRecord): boolean {
    const { inForce, newest } = state;
    if (inForce?.content !== noted) noted = undefined;
    if (inForce === undefined || !isShared(record) || !isWanted(state)) return false;
    if (inForce.content === noted) return false;
    const { content, isAtOnce, mayRemove } = inForce;
    noted = content;
    // A revision that came from the record is no news for it, also where something else has followed meanwhile.
    const isOnRecord = ({ inForce: [last, ...earlier] }: RolloutRecord) =>
      last?.content === content || (!isAtOnce && earlier.some((each) => each.content === content));
    const now = { revision: inForce.revision.id, content };
    // Other control planes know what it would remove, and that was not known here when it was served:
    // following.ts goes back.
    const isHeldBack = (record: RolloutRecord) =>
      !mayRemove && heldBackOf(record, { ...now, saidBefore: newest?.saidBefore }) !== undefined;
    const word = { reason: '', by: '', atMs: inForce.sinceMs };
    const change: ChangeRecord = (record) =>
      isOnRecord(record) || isHeldBack(record) ? undefined : withInForce(record, now, word);
    if (change(record) === undefined) return false;
    void write(change).then((isWritten) => {
      if (!isWritten) noted = undefined;
    });
    return true;
  }

  /** True when it is being written. */
  function noteHeldBack({ inForce, newest }: SnapshotState, record: RolloutRecord): boolean {
    if (!newest?.isHeldBack || newest.content === undefined) return false;
    const { content, revision, problems } = newest;
    const reason = problems.find(({ rule }) => rule === 'large-removal')?.message ?? 'held back';
    const verdict = { revision: revision.id, content, outcome: 'held_back', reason } as const;
    const change: ChangeRecord = (record) => {
      if (isJudged(record, revision.id, content)) return undefined;
      const [last] = record.inForce;
      if (last?.content === content) return undefined;
      // The removal is judged by the rules that everybody has: here those are still to come.
      const isBehind = last && inForce && last.content !== inForce.content;
      if (isBehind) return undefined;
      // A control plane without state serves what was in force before.
      const known =
        inForce && last === undefined
          ? withInForce(record, { revision: inForce.revision.id, content: inForce.content })
          : record;
      const against = known.inForce[0]?.content;
      const said = { ...verdict, ...(against !== undefined && { against }) };
      return withVerdict(known, { ...said, by: '', atMs: clock.wallMs() });
    };
    if (change(record) === undefined) return false;
    void write(change);
    return true;
  }

  function seeInvalid({ newest }: SnapshotState, record: RolloutRecord): void {
    invalid = invalid.filter((each) => !isNoted(record, each));
    if (newest === undefined || newest.valid || newest.content !== undefined) return;
    const { revision, problems } = newest;
    if (invalid.at(-1)?.revision === revision.id) return;
    const reason = toErrorsText(problems);
    const now = { ...unsaid, revision: revision.id, reason, atMs: clock.wallMs() };
    const outcome = { ...now, kind: 'invalid' } as const;
    if (!isNoted(record, outcome)) invalid = [...invalid, outcome].slice(-maxOutcomes);
  }

  /** Puts an outcome on record for the history. True when it is being written. */
  function noteOutcomeOf(outcome: NewOutcome | undefined, record: RolloutRecord): boolean {
    if (outcome === undefined) return false;
    const change: ChangeRecord = (record) =>
      isNews(record, outcome) ? noteOutcome(record, outcome) : undefined;
    if (change(record) === undefined) return false;
    if (!isShared(record)) {
      keeper.keepHere(change);
      return false;
    }
    // A control plane that leads a rollout goes on leading it.
    if (openRolloutOf(record) !== undefined && !keeper.leads) return false;
    void write(change);
    return true;
  }

  /** A record of the version before names revisions alone. True when it is being written. */
  function noteContents({ inForce, trial, newest }: SnapshotState): boolean {
    const known = [inForce, trial, newest].flatMap((each) =>
      each?.content === undefined ? [] : [{ revision: each.revision.id, content: each.content }],
    );
    const change: ChangeRecord = (record) => {
      const complete = withContents(record, known);
      return isDeepStrictEqual(complete, record) ? undefined : complete;
    };
    if (!hasUnknownContent(keeper.record) || change(keeper.record) === undefined) return false;
    void write(change);
    return true;
  }

  return {
    remember(mayWrite) {
      const { record } = keeper;
      const state = snapshots.state();
      seeInvalid(state, record);
      if (!mayWrite || keeper.trouble !== undefined) return;
      if (noteContents(state)) return;
      const open = openRolloutOf(record);
      if (open !== undefined && (!rollsOut || open.revision === state.withdrawn?.revision)) {
        void deps.giveWay(open, state.newest?.revision.id ?? '');
        return;
      }
      // The outcome that came first is first in the history.
      const [first] = invalid;
      const isBefore = first !== undefined && first.atMs < (state.inForce?.sinceMs ?? 0);
      if (isBefore && noteOutcomeOf(first, record)) return;
      if (noteInForce(state, record) || noteOutcomeOf(first, record)) return;
      if (noteHeldBack(state, record)) return;
      // Notes a revision that has come into force without a change for the workers.
      if (isWanted(state)) noteOutcomeOf(toInForce(state), record);
    },
    isUnwritten: (content) => content !== noted,
  };
}

const unsaid = { content: '', reason: '', by: '' };

function toInForce({ inForce }: SnapshotState): NewOutcome | undefined {
  if (inForce === undefined) return undefined;
  const { content, revision, sinceMs } = inForce;
  return { ...unsaid, revision: revision.id, content, kind: 'in_force', atMs: sinceMs };
}

/**
 * `noteInForce` notes a revision that comes into force: here it is in force on record already, or nothing is on
 * record at all.
 */
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
  // Also before something else came: a control plane that is behind has an earlier revision with the same rules.
  return outcomes.some(
    (each) => each.kind === kind && each.content === content && each.revisions.includes(revision),
  );
}

/** Such as `a.yaml:4:25: unit: 'huor' is no unit (and 2 more)`. */
function toErrorsText(problems: readonly Problem[]): string {
  const [first, ...others] = problems.filter(isError);
  if (first === undefined) return '';
  const more = others.length === 0 ? '' : ` (and ${toCountText(others.length, 'more error')})`;
  return `${toHeading(first)}${more}`;
}
