// Whether a worker has what it is to have: of all that applies to its node, what it wants. The one place
// that decides it.
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { ConnectedWorker } from './workers.ts';

export interface WorkerState {
  readonly state: 'in_force' | 'pending' | 'refused';
  /** The version of what the worker wants of its rules; undefined when it wants nothing, and when there
   * is nothing to tell it yet. */
  readonly expected: string | undefined;
}

/** `current` is what the worker's node is to have now. */
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
