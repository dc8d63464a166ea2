// The state that the gauges show.

import { isError, isWarning } from '../../shared/rules/problem/problem.ts';
import { countWorkers, findStaleness } from '../admin/status-report.ts';
import type { Rollout } from '../rollout/rollout.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import { toWorkerState } from '../xds/workers.ts';
import type { Overview } from './metrics.ts';

export function toOverview(
  snapshots: Pick<SnapshotCache, 'state' | 'current'>,
  workers: Pick<ConnectedWorkers, 'list'>,
  { state: readRollout, memory }: Pick<Rollout, 'state' | 'memory'>,
  certificates: Overview['certificates'] = {},
): Overview {
  const state = snapshots.state();
  const rollout = readRollout();
  const { alone, trouble, isForgetful } = memory();
  const { newest, inForce, store, counts } = state;
  const having = countWorkers(
    workers.list().map((worker) => toWorkerState(worker, snapshots.current(worker.node))),
  );
  const errors = newest?.problems.filter(isError).length ?? 0;
  return {
    revisionInForceAtMs: inForce?.revision.atMs,
    isStale: findStaleness(state) !== undefined,
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
    rollout: rollout && {
      isPaused: rollout.phase === 'paused' || rollout.phase === 'indivisible',
      workers: rollout.workers.chosen,
      ledHereSinceMs: rollout.ledHereSinceMs,
    },
    isRecordShared: alone === undefined && trouble === undefined,
    isForgetful,
    certificates,
    workers: { in_force: having.inForce, pending: having.pending, refused: having.refused },
  };
}
