// The record as the previous version wrote it: one rollout, identified by revisions alone. Its revisions that were
// taken back, paused or in force remain so; a rollout under way restarts at its first step, as its share cannot be
// derived from this record.
import Type from 'typebox';
import { Value } from 'typebox/value';

export const formatBefore = 2;
/** The content of a revision whose content is not known yet; no revision has it. */
export const unknownContent = '';

const revisionId = Type.String({ maxLength: 128 });
const recordJson = Type.Object({
  format: Type.Literal(formatBefore),
  id: Type.String({ maxLength: 64 }),
  revision: revisionId,
  /** The revision in force before; '' if it is not known. */
  base: revisionId,
  outcome: Type.Union([
    Type.Literal('running'),
    Type.Literal('paused'),
    Type.Literal('taken_back'),
    Type.Literal('in_force'),
  ]),
  reason: Type.String(),
  leader: Type.Object({ id: Type.String({ maxLength: 64 }), name: Type.String() }),
});

/** The fields of a record in place of those that the previous version wrote; undefined for anything else. */
export function fromRecordBefore(given: unknown) {
  if (!Value.Check(recordJson, given)) return undefined;
  const { id, revision, base, outcome, reason } = given;
  const named = { revision, content: unknownContent };
  const inForce = outcome === 'in_force' ? [revision, base] : [base];
  const takenBack = { ...named, outcome: 'taken_back', reason, by: '', rollout: id } as const;
  return {
    rollout: { id, ...named, outcome, reason, step: 0, chosen: [], whole: [] },
    inForce: inForce
      .filter((each) => each !== '')
      .map((each) => ({ revision: each, content: unknownContent })),
    // The previous version did not record the time.
    verdicts: outcome === 'taken_back' ? [{ ...takenBack, atMs: 0 }] : [],
    leader: { ...given.leader, plane: '', hasLeft: false },
  };
}
