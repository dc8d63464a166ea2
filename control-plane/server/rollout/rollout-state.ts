// The state of a rollout, for the API, commands and metrics.
import { openRolloutOf } from '../record/record.ts';
import { leads, type RecordState } from '../record/record-state.ts';
import type { Phase } from './decide.ts';
import { type FleetState, toShownId } from './fleet-state.ts';
import { isGiven } from './pools.ts';

/** Plain data, for the API and the status command. */
export interface RolloutState {
  /** Null until the rollout is on record. */
  readonly id: string | null;
  readonly revision: string;
  /** The wall time. */
  readonly sinceMs: number;
  /** Counted from 1; 0 before any worker has the revision. */
  readonly step: number;
  readonly steps: number;
  readonly phase: Phase;
  /** One human-readable sentence: what the rollout waits for. */
  readonly text: string;
  /** The workers of all control planes if this one leads, otherwise its own. */
  readonly workers: { readonly having: number; readonly chosen: number; readonly others: number };
  /** The control plane that decides; undefined if this is the only one, or if none decides at the moment. */
  readonly leader: RolloutLeader | undefined;
  /** The wall time since which this control plane decides, also if it is the only one. Undefined while it does not. */
  readonly ledHereSinceMs: number | undefined;
}

export interface RolloutLeader {
  readonly name: string;
  readonly isThis: boolean;
  /** The wall time, as it is known here. */
  readonly sinceMs: number;
  /** The previous leader, which has stopped; undefined if this one began the rollout. */
  readonly after: string | undefined;
}

/** Undefined without a rollout. */
export function toRolloutState(
  { following, view, decision, options }: FleetState,
  record: RecordState,
): RolloutState | undefined {
  const { running } = following;
  if (running === undefined || view === undefined) return undefined;
  const { leader, after } = record.known.record;
  const open = openRolloutOf(record.known.record);
  const isThis = leads(record);
  const { ledSinceMs } = record;
  const members = running.takenBack === undefined ? view.members : [];
  const chosen = members.filter(({ isChosen }) => isChosen);
  const isAlone = !options.hasPeers && isThis;
  return {
    id: open ? toShownId(open) : null,
    revision: running.trial.revision.id,
    sinceMs: running.trial.sinceMs,
    step: open && isGiven(open) ? open.step + 1 : 0,
    steps: running.pools.steps.length + 1,
    ...decision,
    workers: {
      having: chosen.filter(({ state }) => state === 'in_force').length,
      chosen: chosen.length,
      others: view.connected - chosen.length,
    },
    ledHereSinceMs: open !== undefined && isThis ? ledSinceMs : undefined,
    leader:
      open === undefined || isAlone
        ? undefined
        : { name: leader.name, isThis, sinceMs: ledSinceMs, after: after || undefined },
  };
}
