// The record as the version before wrote it: one rollout, by revisions alone. What it says of a revision that was taken
// back, paused or in force holds; a rollout on its way begins its steps again, as its share cannot be told from it.
import Type from 'typebox';
import { Value } from 'typebox/value';

export const formatBefore = 2;
/** Of a revision whose content is not known yet: no revision has it. */
export const unknownContent = '';

const revisionId = Type.String({ maxLength: 128 });
const recordJson = Type.Object({
  format: Type.Literal(formatBefore),
  id: Type.String({ maxLength: 64 }),
  revision: revisionId,
  /** In force before; '' where that is not known. */
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

/** What it says as fields of a record; undefined for anything else. */
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
    // It does not say when.
    verdicts: outcome === 'taken_back' ? [{ ...takenBack, atMs: 0 }] : [],
    leader: { ...given.leader, plane: '', hasLeft: false },
  };
}
