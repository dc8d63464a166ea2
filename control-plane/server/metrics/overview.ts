// The state shown by the gauges.

import { isError, isWarning } from '../../../shared/rules/problem/problem.ts';
import { countWorkers, findStaleness, goneLatelyMs } from '../admin/status-report.ts';
import type { Rollout } from '../rollout/rollout.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import { toWorkerState } from '../xds/workers.ts';

/** The TLS files by purpose. */
type Certificates = Readonly<
  Record<string, { readonly expiryMs: number | undefined; readonly problem: string | undefined }>
>;

/** The state at the moment of a scrape. Times in milliseconds since the epoch. */
export type Overview = ReturnType<typeof toOverview>;

export function toOverview(
  snapshots: Pick<SnapshotCache, 'state' | 'current'>,
  workers: ConnectedWorkers,
  rollouts: Pick<Rollout, 'state' | 'memory'>,
  certificates: Certificates = {},
  monotonicMs = 0,
) {
  const state = snapshots.state();
  const rollout = rollouts.state();
  const { denied, error, isForgetful } = rollouts.memory();
  const { newest, inForce, store, counts } = state;
  const having = countWorkers(
    workers.list().map((worker) => toWorkerState(worker, snapshots.current(worker.node))),
  );
  const errors = newest?.problems.filter(isError).length ?? 0;
  return {
    revisionInForceAtMs: inForce?.revision.atMs,
    isStale: findStaleness(state) !== undefined,
    /** Undefined until the store has been read since the start: its content is unknown. */
    newest: newest && {
      isValid: newest.valid,
      isHeldBack: newest.isHeldBack,
      errors,
      warnings: newest.problems.filter(isWarning).length,
    },
    domains: inForce?.domains.length ?? 0,
    isStoreReachable: store.reachable,
    storeSuccessAtMs: store.lastSuccessMs,
    revisions: {
      accepted: counts.accepted,
      refused: counts.refused,
      taken_back: counts.takenBack,
    },
    /** Undefined when no rollout is running. */
    rollout: rollout && {
      isPaused: rollout.phase === 'paused' || rollout.phase === 'indivisible',
      workers: rollout.workers.chosen,
      /** Undefined while another control plane leads it. */
      ledHereSinceMs: rollout.ledHereSinceMs,
    },
    /** Whether verdicts (taken back or held back) are recorded beside the rules. */
    isRecordShared: denied === undefined && error === undefined,
    /** Whether they are not, and the state directory was empty at the start. */
    isForgetful,
    certificates,
    /** Connected workers by what they have received, and recently vanished ones. */
    workers: {
      in_force: having.inForce,
      pending: having.pending,
      refused: having.refused,
      gone: workers.vanished().filter(({ goneAtMs }) => monotonicMs - goneAtMs < goneLatelyMs)
        .length,
    },
  };
}
