// The only place that decides whether a worker has its rules: of those for its node, the ones it wants.
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { ConnectedWorker } from './workers.ts';

export interface WorkerState {
  readonly state: 'in_force' | 'pending' | 'refused';
  /** The version of the rules that the worker wants; undefined when it wants none, and when there are none
   * yet. */
  readonly expected: string | undefined;
}

/** `current` is the snapshot for the worker's node. */
export function toWorkerState(
  { acked, nacked, wantedVersion }: ConnectedWorker,
  current: Snapshot | undefined,
): WorkerState {
  const expected = current && wantedVersion(current);
  const wantsNothing = current !== undefined && expected === undefined;
  const hasIt = expected !== undefined && acked?.version === expected;
  const state = wantsNothing ? 'in_force' : nacked ? 'refused' : hasIt ? 'in_force' : 'pending';
  return { state, expected };
}
