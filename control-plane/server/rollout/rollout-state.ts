// The state of a rollout, for API, commands and metrics.
import { openRolloutOf } from '../record/record.ts';
import { leads, type RecordState } from '../record/record-state.ts';
import type { Phase } from './decide.ts';
import { type FleetState, toShownId } from './fleet-state.ts';
import { isGiven } from './pools.ts';

/** Plain data, for the API and the status command. */
export interface RolloutState {
  /** Null before it is on record. */
  readonly id: string | null;
  readonly revision: string;
  /** Wall time. */
  readonly sinceMs: number;
  /** Counted from 1; 0 before any worker has it. */
  readonly step: number;
  readonly steps: number;
  readonly phase: Phase;
  /** One sentence for people: what it waits for. */
  readonly text: string;
  /** Of all control planes where this one leads, else of this one. */
  readonly workers: { readonly having: number; readonly chosen: number; readonly others: number };
  /** The control plane that decides; undefined where there is only this one, and while none does. */
  readonly leader: RolloutLeader | undefined;
  /** Since when this control plane decides, also where it is the only one: wall time. Undefined while it does not. */
  readonly ledHereSinceMs: number | undefined;
}

export interface RolloutLeader {
  readonly name: string;
  readonly isThis: boolean;
  /** As it is known here: wall time. */
  readonly sinceMs: number;
  /** The leader before, which has stopped; undefined where this one began. */
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
