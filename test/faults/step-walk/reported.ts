// Compares what a control plane of a walk reports with the record and the workers: what it serves, its figures of the
// rollout, the verdict of `status`, which determines its exit code, and the gauges.
import { isDeepStrictEqual } from 'node:util';
import { toFleetJson } from '../../../control-plane/server/admin/fleet-json.ts';
import { toStatus } from '../../../control-plane/server/admin/status.ts';
import {
  type OwnStatus,
  type StatusJson,
  toOwnStatus,
} from '../../../control-plane/server/admin/status-report.ts';
import { toOverview } from '../../../control-plane/server/metrics/overview.ts';
import { openRolloutOf, type RolloutRecord } from '../../../control-plane/server/record/record.ts';
import { leads, toMemoryState } from '../../../control-plane/server/record/record-state.ts';
import { toRolloutState } from '../../../control-plane/server/rollout/rollout.ts';
import { contentOf, type SteppedFleet, type SteppedPlane } from './stepped-fleet.ts';

export type Statuses = ReadonlyMap<SteppedPlane, OwnStatus>;

/** Of all control planes that would answer. */
export function readStatuses(fleet: SteppedFleet): Statuses {
  const running = fleet.planes.filter((each) => each.fleet !== undefined && !each.isStanding);
  return new Map(
    running.map((plane) => [
      plane,
      toOwnStatus({
        ...{ storeDescription: 'a store', state: fleet.snapshotsOf(plane).state(), linked: [] },
        fleet: toFleetJson(fleet.list(plane), [], [], fleet.snapshotsOf(plane)),
        ...{ rollout: rolloutOf(plane), memory: toMemoryState(plane.record), setAside: [] },
        ...{ asked: null, rolloutWarning: undefined, clockProblem: undefined },
        nowMs: fleet.wallMs,
      }),
    ]),
  );
}

/** All of it may be briefly outdated. `isCalm`: whether nothing has gone wrong for a while. */
export function findWrong(
  fleet: SteppedFleet,
  plane: SteppedPlane,
  statuses: Statuses,
  isCalm: boolean,
): string[] {
  const { record } = fleet;
  if (record === undefined) return [];
  const verdict = verdictAt(plane, statuses);
  return [
    ...findOtherServed(fleet, plane, record),
    ...(isCalm ? findOtherFigures(fleet, plane, record) : []),
    ...(verdict === undefined ? [] : findOtherVerdict(fleet, verdict, record, isCalm)),
    ...findOtherGauges(fleet, plane, record),
  ];
}

function rolloutOf({ fleet, record }: SteppedPlane) {
  return fleet && toRolloutState(fleet, record);
}

function findOtherServed(
  fleet: SteppedFleet,
  plane: SteppedPlane,
  { inForce, verdicts }: RolloutRecord,
): string[] {
  const { newest, inForce: here } = fleet.stateOf(plane);
  const wrong: string[] = [];
  if (inForce[0] !== undefined && here?.content !== inForce[0].content) {
    wrong.push(
      `it serves ${here?.revision.id.slice(0, 4)}, not ${inForce[0].revision.slice(0, 4)}`,
    );
  }
  const { outcome, reason = '' } =
    verdicts.find(({ revision }) => revision === newest?.revision.id) ?? {};
  const isReported = newest?.problems.some(({ message }) => message.includes(reason));
  if (outcome === 'taken_back' && !isReported) wrong.push(`it does not report '${reason}'`);
  return wrong;
}

/** The figures are of all workers at the control plane that leads, of its own workers at the others. */
function findOtherFigures(
  fleet: SteppedFleet,
  plane: SteppedPlane,
  record: RolloutRecord,
): string[] {
  const state = rolloutOf(plane);
  const open = openRolloutOf(record);
  if (state === undefined || state.revision !== open?.revision) return [];
  const content = fleet.contentOfRevision(open.revision);
  const counted = fleet.workers.filter((worker) =>
    leads(plane.record) ? worker.plane !== undefined : worker.plane === plane,
  );
  const chosen = counted.filter(({ notified }) => contentOf(notified) === content);
  const having = chosen.filter(
    ({ notified, has, nacked }) => notified === has && nacked === undefined,
  );
  const others = counted.length - chosen.length;
  const is = { having: having.length, chosen: chosen.length, others };
  return isDeepStrictEqual(is, state.workers)
    ? []
    : [`${JSON.stringify(state.workers)}, and it is ${JSON.stringify(is)}`];
}

/** The verdict for a caller of this control plane, which asks the others; undefined if it does not answer. */
function verdictAt(plane: SteppedPlane, statuses: Statuses): StatusJson['verdict'] | undefined {
  const own = statuses.get(plane);
  const peers = [...statuses]
    .filter(([peer]) => peer !== plane)
    .map(([{ name: url, isCutOff }, value]) =>
      plane.isCutOff || isCutOff ? { url, error: 'refused', last: undefined } : { url, value },
    );
  return own && toStatus(own, peers.length > 0 ? peers : undefined).verdict;
}

function findOtherVerdict(
  { newest, workers, contentOfRevision }: SteppedFleet,
  verdict: StatusJson['verdict'],
  record: RolloutRecord,
  isCalm: boolean,
): string[] {
  const open = openRolloutOf(record);
  const outcome = record.verdicts.find(({ revision }) => revision === newest.id)?.outcome;
  const content = contentOfRevision(newest.id);
  const areAll = workers.every(({ plane, has }) => plane && contentOf(has) === content);
  const isInForce = record.inForce[0]?.revision === newest.id && open === undefined;
  let wanted: readonly StatusJson['verdict'][] = [];
  if (outcome === 'taken_back' || outcome === 'held_back') wanted = [outcome];
  else if (open?.revision === newest.id) wanted = ['pending', 'refused', 'not_known', 'held_back'];
  else if (isCalm && isInForce && areAll) wanted = ['in_force'];
  const isOther = wanted.length > 0 && !wanted.includes(verdict);
  const isLacked = verdict === 'in_force' && !areAll;
  return isOther || isLacked ? [`status ${verdict}, not ${wanted.join(' or ') || 'so'}`] : [];
}

function findOtherGauges(
  fleet: SteppedFleet,
  plane: SteppedPlane,
  record: RolloutRecord,
): string[] {
  const state = rolloutOf(plane);
  const workers = { list: () => fleet.list(plane), vanished: () => plane.vanished };
  const rollouts = { state: () => state, memory: () => toMemoryState(plane.record) };
  const { rollout, isRecordShared } = toOverview(fleet.snapshotsOf(plane), workers, rollouts);
  const open = openRolloutOf(record);
  const isPaused = open?.outcome === 'paused' || state?.phase === 'indivisible';
  return [
    ...(Boolean(rollout) === Boolean(open) ? [] : [`gauges of ${rollout ? 'a' : 'no'} rollout`]),
    ...(rollout && open && rollout.isPaused !== isPaused ? [`paused ${rollout.isPaused}`] : []),
    ...(isRecordShared ? [] : ['the record is not shared']),
  ];
}
