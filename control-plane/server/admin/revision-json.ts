// A revision in the format of the admin API, and how each of a list ended, according to the revision that is served now
// and the record. Pure.
import Type from 'typebox';
import { orNull, time, toNulls, toTime } from '../api-shape.ts';
import type { Outcomes } from '../record/outcomes.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import type { RevisionInfo } from '../store/revision.ts';
import { shortestRevisionPrefix } from '../store/store.ts';

export const revisionFields = {
  id: Type.String(),
  at: time,
  author: orNull(Type.String()),
  message: orNull(Type.String()),
};
export const revisionJson = Type.Object(revisionFields, { title: 'Revision' });
export type RevisionJson = Type.Static<typeof revisionJson>;

export function toRevisionJson({ id, atMs, author, message }: RevisionInfo): RevisionJson {
  return toNulls({ id, at: toTime(atMs), author, message });
}

/** A hint if a revision is not found; '' when `id` is long enough for a prefix. */
export function toPrefixHint(id: string): string {
  return id.length < shortestRevisionPrefix
    ? `; of an abbreviated revision at least ${shortestRevisionPrefix} characters are needed`
    : '';
}

export const revisionOutcomeJson = Type.Object(
  {
    /** `waits`: for the end of the previous rollout. `never_served`: newer ones replaced it before any worker received
     * it. */
    kind: Type.Union([
      Type.Literal('in_force'),
      Type.Literal('was_in_force'),
      Type.Literal('on_trial'),
      Type.Literal('waits'),
      Type.Literal('taken_back'),
      Type.Literal('held_back'),
      Type.Literal('invalid'),
      Type.Literal('never_served'),
    ]),
    since: orNull(time),
    /** The end of a revision that was in force. */
    until: orNull(time),
    by: orNull(Type.String({ description: 'Null for a control plane' })),
    reason: orNull(Type.String({ description: 'With the figures that it was decided by' })),
  },
  { title: 'RevisionOutcome' },
);
export type RevisionOutcomeJson = Type.Static<typeof revisionOutcomeJson>;

const nothing = { since: null, until: null, by: null, reason: null };

/** One for each revision of `history`, the newest first; null for one that is older than everything on record. */
export function toRevisionOutcomes(
  history: readonly Pick<RevisionInfo, 'id'>[],
  state: Pick<SnapshotState, 'newest' | 'inForce' | 'trial'>,
  outcomes: Outcomes,
): (RevisionOutcomeJson | null)[] {
  const known = history.map(({ id }, index) => {
    // A state that returns has the same id as before, but an outcome of its own each time.
    const earlier = history.slice(0, index).filter((each) => each.id === id).length;
    const recorded = findOutcome(id, earlier, outcomes);
    return (earlier === 0 ? toPresent(id, state, recorded) : undefined) ?? recorded;
  });
  const oldest = known.findLastIndex((each) => each !== undefined);
  return known.map(
    (each, index) => each ?? (index < oldest ? { ...nothing, kind: 'never_served' } : null),
  );
}

/** The outcome of the id before its `later` most recent occurrences. */
function findOutcome(
  id: string,
  later: number,
  outcomes: Outcomes,
): RevisionOutcomeJson | undefined {
  const own = outcomes.filter(({ revisions }) => revisions.includes(id));
  // Files that were invalid before are still invalid.
  const outcome = own[later] ?? own.find(({ kind }) => kind === 'invalid');
  if (outcome === undefined) return undefined;
  const { kind, atMs, by, reason } = outcome;
  const details = { since: toTime(atMs), until: null, by: by || null, reason: reason || null };
  if (kind !== 'in_force') return { ...details, kind };
  const next = outcomes
    .slice(0, outcomes.indexOf(outcome))
    .findLast((each) => each.kind === 'in_force');
  return { ...details, kind: 'was_in_force', until: next === undefined ? null : toTime(next.atMs) };
}

/** Undefined if only the record has it. */
function toPresent(
  id: string,
  { newest, inForce, trial }: Pick<SnapshotState, 'newest' | 'inForce' | 'trial'>,
  recorded: RevisionOutcomeJson | undefined,
): RevisionOutcomeJson | undefined {
  if (trial?.revision.id === id) {
    return { ...nothing, kind: 'on_trial', since: toTime(trial.sinceMs) };
  }
  if (inForce?.revision.id === id) {
    const since = toTime(inForce.sinceMs);
    const isRecorded = recorded?.kind === 'was_in_force' && recorded.until === null;
    return { ...nothing, since, ...(isRecorded && recorded), kind: 'in_force' };
  }
  if (newest?.revision.id !== id) return undefined;
  if (newest.isWaiting) return { ...nothing, kind: 'waits' };
  if (newest.isHeldBack && recorded?.kind !== 'held_back') {
    return { ...nothing, kind: 'held_back', reason: newest.problems.at(-1)?.message ?? null };
  }
  return newest.content === undefined && recorded?.kind !== 'invalid'
    ? { ...nothing, kind: 'invalid' }
    : undefined;
}
