// Puts on record what another control plane, or this one after a restart, has to know of what happened without a
// rollout: what everybody was given at once, and what was held back.
import type { Clock } from '../../shared/clock.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import {
  openRolloutOf,
  type RolloutOnRecord,
  type RolloutRecord,
  verdictOf,
  withInForce,
  withVerdict,
} from './record.ts';
import type { ChangeRecord, RecordKeeper } from './record-keeper.ts';

export interface Remembering {
  /** Writes at most one change. */
  remember(): void;
  /** Whether this content in force is not on record yet, and will be. */
  isUnwritten(content: string): boolean;
}

export interface RememberingDeps {
  /** Whether revisions reach the workers in steps. */
  readonly rollsOut: boolean;
  readonly snapshots: Pick<SnapshotCache, 'state'>;
  readonly keeper: Pick<RecordKeeper, 'record' | 'trouble'>;
  readonly write: (change: ChangeRecord) => Promise<boolean>;
  /** Nobody wants the revision of this rollout any more. */
  readonly giveWay: (open: RolloutOnRecord, newest: string) => Promise<unknown>;
  readonly clock: Clock;
}

export function createRemembering(deps: RememberingDeps): Remembering {
  const { rollsOut, snapshots, keeper, write, clock } = deps;
  /** In force here when it was last compared with the record. */
  let noted: string | undefined;

  /** True when it is being written. */
  function noteInForce({ inForce, newest }: SnapshotState, record: RolloutRecord): boolean {
    if (inForce?.content !== noted) noted = undefined;
    const isUsed = rollsOut || record.verdicts.length > 0 || record.inForce.length > 0;
    const isWanted = inForce?.isAtOnce || inForce?.revision.id === newest?.revision.id;
    if (inForce === undefined || !isUsed || !isWanted || inForce.content === noted) return false;
    noted = inForce.content;
    if (record.inForce[0]?.content === noted) return false;
    const now = { revision: inForce.revision.id, content: inForce.content };
    void write((before) =>
      // Another control plane was faster.
      before.inForce[0]?.content === now.content ? undefined : withInForce(before, now),
    ).then((isWritten) => {
      if (!isWritten) noted = undefined;
    });
    return true;
  }

  function noteHeldBack({ inForce, newest }: SnapshotState, record: RolloutRecord): void {
    if (!newest?.isHeldBack || newest.content === undefined) return;
    const { content, revision, problems } = newest;
    if (verdictOf(record, revision.id, content) !== undefined) return;
    const reason = problems.find(({ rule }) => rule === 'large-removal')?.message ?? 'held back';
    const verdict = { revision: revision.id, content, outcome: 'held_back', reason } as const;
    void write((before) => {
      // A control plane without state serves what was in force before.
      const known =
        inForce && before.inForce.length === 0
          ? withInForce(before, { revision: inForce.revision.id, content: inForce.content })
          : before;
      return withVerdict(known, { ...verdict, by: '', atMs: clock.wallMs() });
    });
  }

  return {
    remember() {
      if (keeper.trouble !== undefined) return;
      const { record } = keeper;
      const state = snapshots.state();
      const open = openRolloutOf(record);
      if (open !== undefined && (!rollsOut || open.revision === state.withdrawn?.revision)) {
        void deps.giveWay(open, state.newest?.revision.id ?? '');
      } else if (!noteInForce(state, record)) {
        noteHeldBack(state, record);
      }
    },
    isUnwritten: (content) => content !== noted,
  };
}
