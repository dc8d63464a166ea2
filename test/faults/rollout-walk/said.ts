// Compares what each control plane reports about a rollout with the record and the workers: the verdict of `status`,
// which determines its exit code, and the gauges. All of it may be briefly outdated, but must not stay wrong.
import { mergeStatus } from '../../../control-plane/server/admin/merged-status.ts';
import {
  type StatusJson,
  toStatusJson,
} from '../../../control-plane/server/admin/status-report.ts';
import { toOverview } from '../../../control-plane/server/metrics/overview.ts';
import { openRolloutOf, type RolloutRecord } from '../../../control-plane/server/record/record.ts';
import {
  numberOf,
  type SimulatedFleet,
  type SimulatedPlane,
} from '../../support/simulated-fleet.ts';
import type { Revisions } from './published.ts';

export interface SaidDeps {
  readonly fleet: SimulatedFleet;
  readonly revisions: Revisions;
  readonly planeNames: readonly string[];
  readonly standing: ReadonlySet<string>;
  /** Between two polls of the record. */
  readonly pollSeconds: number;
  note(check: string): void;
}

/** Building a status of all workers takes a while. */
const everySeconds = 3;
const lateSeconds = 10;

export function createSaid(deps: SaidDeps) {
  const { fleet, revisions, planeNames, standing, pollSeconds, note } = deps;
  /** Since when, by control plane and problem. */
  const wrongSince = new Map<string, number>();

  function statusOf({ cache, workers, rollout }: SimulatedPlane): StatusJson {
    return toStatusJson({
      storeDescription: 'a store',
      snapshots: cache,
      workers: workers.list(),
      linked: [],
      gone: [],
      tellsFleet: false,
      asked: undefined,
      nowMs: fleet.clock.wallMs(),
      rollout: rollout.state(),
      rolloutWarning: undefined,
      clockProblem: undefined,
      setAside: [],
      memory: rollout.memory(),
    });
  }

  /** The verdict for a caller of this control plane, which asks the others. */
  function verdictAt(
    plane: SimulatedPlane,
    own: ReadonlyMap<string, StatusJson>,
  ): StatusJson['verdict'] | undefined {
    const status = own.get(plane.name);
    if (status === undefined || planeNames.length === 1) return status?.verdict;
    const peers = planeNames
      .filter((name) => name !== plane.name)
      .map((name) => {
        const value = own.get(name);
        const isCutOff = plane.isCutOff || fleet.planes.get(name)?.isCutOff;
        return value === undefined || isCutOff
          ? { url: name, error: 'refused', last: undefined }
          : { url: name, value };
      });
    return mergeStatus(status, peers, undefined).verdict;
  }

  /** The possible verdicts, if they can be derived. */
  function wantedVerdicts(
    record: RolloutRecord,
    isCalm: boolean,
  ): readonly StatusJson['verdict'][] | undefined {
    const { newest } = revisions;
    const open = openRolloutOf(record);
    const verdict = record.verdicts.find(({ revision }) => revision === newest.id);
    if (verdict?.outcome === 'taken_back') return ['taken_back'];
    if (verdict?.outcome === 'held_back') return ['held_back'];
    if (open?.revision === newest.id) return ['pending', 'refused', 'not_known', 'held_back'];
    const isEverywhere = fleet.workers.every(
      ({ plane, has }) => plane !== undefined && contentIn(has) === newest.content,
    );
    const isAll = record.inForce[0]?.revision === newest.id && open === undefined;
    return isCalm && isAll && isEverywhere ? ['in_force'] : undefined;
  }

  function contentIn(snapshot: Parameters<typeof numberOf>[0] | undefined): number | undefined {
    return snapshot && (numberOf(snapshot) ?? 0);
  }

  /** A report of this control plane that is wrong. */
  function findWrong(
    plane: SimulatedPlane,
    own: ReadonlyMap<string, StatusJson>,
    record: RolloutRecord,
    isCalm: boolean,
  ): string[] {
    const wrong: string[] = [];
    const verdict = verdictAt(plane, own);
    const wanted = wantedVerdicts(record, isCalm);
    if (verdict !== undefined && wanted !== undefined) {
      note('the verdict of status is so');
      if (!wanted.includes(verdict)) wrong.push(`verdict ${verdict}, not ${wanted.join(' or ')}`);
    }
    const lacking = fleet.workers.filter(
      (worker) => worker.plane !== undefined && contentIn(worker.has) !== revisions.newest.content,
    );
    if (verdict === 'in_force') {
      note('what is said to be in force is');
      if (lacking.length > 0) wrong.push(`in force, and ${lacking.length} workers lack it`);
    }
    const { rollout, isRecordShared } = toOverview(plane.cache, plane.workers, plane.rollout);
    const open = openRolloutOf(record);
    note('the gauges are so');
    // In a directory, a control plane that was away may never see the revision on trial, and has none.
    const mayLack = open !== undefined && !fleet.canRead(plane.name, open.revision);
    if ((rollout === undefined) !== (open === undefined) && !mayLack) {
      wrong.push(
        `gauges of ${rollout ? 'a' : 'no'} rollout, on record is ${open ? 'one' : 'none'}`,
      );
    }
    const isPaused = open?.outcome === 'paused' || plane.rollout.state()?.phase === 'indivisible';
    if (rollout !== undefined && open !== undefined && rollout.isPaused !== isPaused) {
      wrong.push(`paused is ${rollout.isPaused}`);
    }
    if (!isRecordShared) wrong.push('the record is not shared');
    return wrong;
  }

  return {
    /** `wellFor`: for how many seconds a control plane has been running and connected. */
    check(second: number, record: RolloutRecord | undefined, wellFor: (name: string) => number) {
      if (second % everySeconds !== 0 || record === undefined) return undefined;
      const running = [...fleet.planes.values()].filter(({ name }) => !standing.has(name));
      const own = new Map(running.map((plane) => [plane.name, statusOf(plane)]));
      const isCalm = planeNames.every((name) => wellFor(name) > lateSeconds + pollSeconds);
      const seen = new Set<string>();
      for (const plane of running) {
        if (wellFor(plane.name) <= lateSeconds) continue;
        for (const what of findWrong(plane, own, record, isCalm)) {
          const key = `${plane.name}: ${what.replace(/\d+ /, '')}`;
          seen.add(key);
          const since = wrongSince.get(key) ?? second;
          wrongSince.set(key, since);
          if (second - since > lateSeconds + pollSeconds) {
            return `${plane.name} says what is not so since second ${since}: ${what}`;
          }
        }
      }
      for (const key of [...wrongSince.keys()]) if (!seen.has(key)) wrongSince.delete(key);
      return undefined;
    },
  };
}
