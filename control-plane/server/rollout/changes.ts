// Changes the record by a decision or by an operator's action. Pure.

import {
  openRolloutOf,
  type RolloutOnRecord,
  type RolloutRecord,
  undoableOf,
  type VerdictDetails,
  verdictOf,
  withEnd,
  withoutVerdict,
} from '../record/record.ts';
import { toReplaced } from '../snapshot/admission.ts';
import type { RolloutChange } from './decide.ts';
import type { Share } from './pools.ts';

/** `retry`: a paused rollout continues, and the newest revision is tried again if it was taken back. */
export type RolloutAction = 'pause' | 'resume' | 'retry' | 'promote' | 'abort';

/** The new rollout begins; a rollout that is under way ends. */
export function withBegun(
  record: RolloutRecord,
  rollout: Pick<RolloutOnRecord, 'id' | 'revision' | 'content'>,
  atMs: number,
): RolloutRecord {
  const { revision, content } = rollout;
  const before =
    openRolloutOf(record) === undefined
      ? record
      : withEnd(record, 'taken_back', { reason: toReplaced(revision), by: '', atMs });
  // The approval is retained for control planes that start while this rollout is under way.
  const isApproved = verdictOf(before, revision, content)?.outcome === 'approved';
  const others = isApproved ? before : withoutVerdict(before, content);
  const none = { step: 0, chosen: [], whole: [], reason: '' };
  return { ...others, rollout: { ...rollout, ...none, outcome: 'running' }, after: '' };
}

/** Changes the open rollout. */
export function withChange(
  record: RolloutRecord,
  change: Extract<RolloutChange, { readonly kind: 'complete' | 'pause' | 'give' }>,
  atMs: number,
): RolloutRecord {
  switch (change.kind) {
    case 'complete':
      return withEnd(record, 'in_force', { reason: change.text, by: '', atMs });
    case 'pause': {
      const { reason, share } = change;
      return withRollout(record, { outcome: 'paused', reason, ...(share && toLists(share)) });
    }
    case 'give':
      return withRollout(record, { step: change.step, ...toLists(change.share) });
  }
}

/** Applies an operator's action to the open rollout. */
export function withAction(
  record: RolloutRecord,
  action: RolloutAction,
  details: VerdictDetails,
): RolloutRecord {
  switch (action) {
    case 'pause':
      return withRollout(record, { outcome: 'paused', reason: details.reason });
    case 'resume':
    case 'retry':
      return withRollout(record, { outcome: 'running', reason: '' });
    case 'promote':
      return withEnd(record, 'in_force', details);
    case 'abort':
      return withEnd(record, 'taken_back', details);
  }
}

/** Takes the revision on trial back from all workers, or keeps it from them if its rollout has not begun. Undefined if
 * another revision is being rolled out, or if its rollout has ended since `rolloutBefore`, the rollout before it,
 * unless `undoes` names the ended one. */
export function withTakenBack(
  record: RolloutRecord,
  rollout: Pick<RolloutOnRecord, 'id' | 'revision' | 'content'>,
  {
    rolloutBefore,
    undoes,
    ...details
  }: VerdictDetails & {
    readonly rolloutBefore: string | undefined;
    readonly undoes?: string | undefined;
  },
): RolloutRecord | undefined {
  const open = openRolloutOf(record);
  const isThis = open?.revision === rollout.revision || undoableOf(record, undoes) !== undefined;
  if (isThis) return withEnd(record, 'taken_back', details);
  if (open !== undefined) return undefined;
  const { rollout: last, inForce } = record;
  const hasEnded = last?.revision === rollout.revision && last.id !== rolloutBefore;
  if (hasEnded || inForce[0]?.content === rollout.content) return undefined;
  return withEnd(withBegun(record, rollout, details.atMs), 'taken_back', details);
}

function toLists({ chosen, whole }: Share): Pick<RolloutOnRecord, 'chosen' | 'whole'> {
  return { chosen: [...chosen], whole: [...whole] };
}

function withRollout(record: RolloutRecord, now: Partial<RolloutOnRecord>): RolloutRecord {
  return { ...record, rollout: record.rollout && { ...record.rollout, ...now } };
}
