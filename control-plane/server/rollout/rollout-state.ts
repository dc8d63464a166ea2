// The state of a rollout, for the API, commands and metrics.
import { toTime } from '../api-shape.ts';
import { openRolloutOf } from '../record/record.ts';
import { leads, type RecordState } from '../record/record-state.ts';
import { type FleetState, toShownId } from './fleet-state.ts';
import { isGiven } from './pools.ts';
import { type RolloutState, toReachText } from './rollout-json.ts';

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
  const workers = {
    having: chosen.filter(({ state }) => state === 'in_force').length,
    chosen: chosen.length,
    others: view.connected - chosen.length,
  };
  const shownLeader =
    open === undefined || isAlone
      ? null
      : { name: leader.name, isThis, since: toTime(ledSinceMs), after: after || null };
  return {
    id: open ? toShownId(open) : null,
    revision: running.trial.revision.id,
    step: open && isGiven(open) ? open.step + 1 : 0,
    steps: running.pools.steps.length + 1,
    ...decision,
    workers,
    since: toTime(running.trial.sinceMs),
    reach: toReachText(workers, shownLeader),
    leader: shownLeader,
    ledHereSinceMs: open !== undefined && isThis ? ledSinceMs : undefined,
  };
}
