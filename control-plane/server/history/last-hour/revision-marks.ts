// Marks changes of what workers are served: a revision for all, or one that is rolled out in steps.
import type { SnapshotCache } from '../../snapshot/cache.ts';
import type { SnapshotState } from '../../snapshot/snapshot-state.ts';
import { toShortId, toTitle } from '../../store/revision.ts';
import type { Marks } from './marks.ts';

/** The revisions that were served when the state was last read. */
type Known = Pick<SnapshotState, 'inForce' | 'trial'>;

/** `servedBefore`: the revision in force when an earlier process stopped; undefined where that is unknown. Call the
 * result to stop. */
export function markRevisions(
  snapshots: Pick<SnapshotCache, 'state' | 'onChange'>,
  marks: Marks,
  servedBefore: string | undefined,
): () => void {
  let known: Known = snapshots.state();
  const { inForce } = known;
  if (inForce && servedBefore && inForce.revision.id !== servedBefore) noteInForce(inForce);
  if (known.trial) noteRollout(known.trial);

  function noteInForce({ revision, content }: NonNullable<Known['inForce']>): void {
    const text =
      known.trial?.content === content
        ? `The rollout of revision ${toTitle(revision)} has reached all workers`
        : `Revision ${toTitle(revision)} is in force`;
    marks.note({ kind: 'in_force', revision: revision.id, text });
  }

  /** Not marked again where a rollout continues after a restart. */
  function noteRollout({ revision }: NonNullable<Known['trial']>): void {
    const last = marks.read().findLast((mark) => mark.revision === revision.id);
    if (last?.kind === 'rollout') return;
    const text = `The rollout of revision ${toTitle(revision)} begins`;
    marks.note({ kind: 'rollout', revision: revision.id, text });
  }

  function noteTakenBack({ revision }: NonNullable<Known['trial']>, by: string | undefined): void {
    const why = by === undefined ? '' : `: revision ${toShortId(by)} has taken its place`;
    const text = `Revision ${toTitle(revision)} is taken back${why}`;
    marks.note({ kind: 'taken_back', revision: revision.id, text });
  }

  return snapshots.onChange(() => {
    const { inForce, trial, withdrawn } = snapshots.state();
    const over = trial?.revision.id === known.trial?.revision.id ? undefined : known.trial;
    if (over && over.content !== inForce?.content) {
      noteTakenBack(over, withdrawn?.revision === over.revision.id ? withdrawn.by : undefined);
    }
    if (inForce && inForce.content !== known.inForce?.content) noteInForce(inForce);
    if (trial && trial.revision.id !== known.trial?.revision.id) noteRollout(trial);
    known = { inForce, trial };
  });
}
