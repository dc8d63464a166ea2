// The individual workers in the format of the admin API, of one control plane and of several. Pure.
import Type from 'typebox';
import { orNull, time, toTime } from '../api-shape.ts';
import type { LinkedWorker } from '../fleet/fleet.ts';
import { findSharedIds, toWorkerName } from '../fleet/worker-name.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import {
  type ConnectedWorker,
  toWorkerState,
  type VanishedWorker,
  type VersionAt,
} from '../xds/workers.ts';
import { createFindFigures, type FindFigures, figuresJson } from './traffic-json.ts';

const versionAt = Type.Object({ version: Type.String(), at: time });

/** `on_trial`: it has the revision that some workers receive first. */
export const workerStateJson = Type.Union([
  Type.Literal('in_force'),
  Type.Literal('on_trial'),
  Type.Literal('pending'),
  Type.Literal('refused'),
]);

export const workerJson = Type.Object(
  {
    id: Type.String(),
    /** One start of a Ratelane worker; null for workers of other makes. */
    instance: orNull(Type.String()),
    /** Human-readable: the id, and what distinguishes it from others with the same id. */
    name: Type.String(),
    cluster: Type.String(),
    metadata: Type.Record(Type.String(), Type.String()),
    address: Type.String(),
    protocol: Type.Union([Type.Literal('sotw'), Type.Literal('delta')]),
    connectedSince: time,
    group: orNull(Type.String()),
    state: workerStateJson,
    /** Whether it acknowledged its rules more than 10 s ago but reports that it decides by others: then it is
     * pending. */
    unused: Type.Optional(Type.Boolean()),
    /** The revision of its rules; null if that is neither in force nor on trial. */
    revision: orNull(Type.String()),
    /** The revision that it is served; null while there is none. */
    gets: orNull(Type.String()),
    /** The version of the rules that the worker wants; null when it wants none, and when there are none
     * yet. */
    expected: orNull(Type.String()),
    sent: orNull(versionAt),
    acked: orNull(versionAt),
    nacked: orNull(Type.Object({ version: orNull(Type.String()), at: time, text: Type.String() })),
    /** Null for a worker that does not report. */
    figures: orNull(figuresJson),
  },
  { title: 'Worker' },
);
export type WorkerJson = Type.Static<typeof workerJson>;

export const goneWorkerJson = Type.Object(
  {
    id: Type.String(),
    instance: orNull(Type.String()),
    address: Type.String(),
    /** The last version that it accepted. */
    version: orNull(Type.String()),
    at: time,
    /** Its last refusal, until a later version was accepted. An older control plane does not include it. */
    refusal: Type.Optional(orNull(Type.Object({ at: time, text: Type.String() }))),
  },
  { title: 'GoneWorker' },
);
export type GoneWorkerJson = Type.Static<typeof goneWorkerJson>;

/** The part of the snapshots that is needed here. */
export type WorkerSnapshots = Pick<SnapshotCache, 'state' | 'current' | 'groupOf' | 'compare'>;

/** `now`: the time on both clocks. */
export function toGoneJson(
  gone: readonly VanishedWorker[],
  now: { readonly wallMs: number; readonly monotonicMs: number },
): GoneWorkerJson[] {
  return gone.map(({ node, instance, address, acked, nacked, goneAtMs }) => ({
    id: node.id,
    instance: instance ?? null,
    address,
    version: acked?.version ?? null,
    at: toTime(now.wallMs - Math.max(0, now.monotonicMs - goneAtMs)),
    refusal: nacked === undefined ? null : { at: toTime(nacked.atMs), text: nacked.text },
  }));
}

function toWorkersJson(
  workers: readonly ConnectedWorker[],
  snapshots: WorkerSnapshots,
  findFigures: FindFigures,
): WorkerJson[] {
  const { inForce, trial } = snapshots.state();
  const ids = { inForce: inForce?.revision.id ?? null, trial: trial?.revision.id ?? null };
  return workers.map((worker) => {
    const { node, instance, address, mode, sinceMs, sent, acked, nacked } = worker;
    return {
      id: node.id,
      instance: instance ?? null,
      name: toWorkerName(worker, false),
      cluster: node.cluster,
      metadata: Object.fromEntries(node.metadata),
      address,
      protocol: mode,
      connectedSince: toTime(sinceMs),
      group: snapshots.groupOf(node) ?? null,
      ...toRulesState(worker, snapshots, ids),
      ...(worker.isUnused && { unused: true }),
      sent: toVersionJson(sent),
      acked: toVersionJson(acked),
      nacked: nacked
        ? { version: nacked.version ?? null, at: toTime(nacked.atMs), text: nacked.text }
        : null,
      figures: findFigures(worker),
    };
  });
}

const linkJson = Type.Object(
  {
    id: Type.String(),
    instance: Type.String(),
    address: Type.String(),
    problem: Type.String({ description: 'Why no rollout is judged by it' }),
  },
  { title: 'UnjudgedLink' },
);
export type LinkJson = Type.Static<typeof linkJson>;

export const fleetJson = Type.Object({
  workers: Type.Array(workerJson),
  /** Links that do not count in rollouts: no stream of rules has their instance and node id. */
  links: Type.Array(linkJson),
  /** Workers whose connection broke without a goodbye in the last hour and that have not reconnected, the most recent
   * first. */
  gone: Type.Array(goneWorkerJson),
});
export type FleetJson = Type.Static<typeof fleetJson>;

/** The workers of one control plane. */
export function toFleetJson(
  connected: readonly ConnectedWorker[],
  linked: readonly LinkedWorker[],
  gone: readonly GoneWorkerJson[],
  snapshots: WorkerSnapshots,
): FleetJson {
  const workers = toWorkersJson(connected, snapshots, createFindFigures(linked, connected));
  return toFleet([{ workers, links: toLinksJson(linked, connected), gone: [...gone] }]);
}

const maxShownId = 200;

/** The links without a stream of rules of the same instance and node id. */
export function toLinksJson(
  linked: readonly LinkedWorker[],
  workers: readonly Pick<ConnectedWorker, 'node' | 'instance'>[],
): LinkJson[] {
  const idOf = new Map(workers.map(({ node, instance }) => [instance, node.id]));
  return linked.flatMap(({ hello, address }) => {
    const problem = findStreamProblem(hello.nodeId, idOf.get(hello.instance));
    if (problem === undefined) return [];
    return [{ id: hello.nodeId, instance: hello.instance, address, problem }];
  });
}

/** `streamId` is the node id of the instance's stream of rules; undefined without one. */
function findStreamProblem(nodeId: string, streamId: string | undefined): string | undefined {
  if (streamId === undefined) return 'no worker of this instance gets its rules here';
  if (streamId === nodeId) return undefined;
  return `the worker of this instance takes its rules as node '${streamId.slice(0, maxShownId)}'`;
}

/** The workers of all these control planes: those of different ones may share an id, and one that is gone from one may
 * be connected to another. Without an instance, it counts as reconnected when a worker with its node id is connected. */
export function toFleet(all: readonly FleetJson[]): FleetJson {
  const workers = nameTogether(all.flatMap((each) => each.workers));
  const instances = new Set(workers.map(({ instance }) => instance));
  const ids = new Set(workers.map(({ id }) => id));
  return {
    workers,
    links: all.flatMap(({ links }) => links),
    gone: all
      .flatMap(({ gone }) => gone)
      .filter(({ id, instance }) => (instance === null ? !ids.has(id) : !instances.has(instance)))
      .sort((a, b) => b.at.localeCompare(a.at)),
  };
}

/** Makes names unique: workers may share ids. */
export function nameTogether(workers: readonly WorkerJson[]): WorkerJson[] {
  const named = workers.map(({ id, instance, address }) => ({
    node: { id },
    instance: instance ?? undefined,
    address,
  }));
  const shared = findSharedIds(named);
  return workers.map((worker, index) => {
    const each = named[index];
    return each && shared.has(worker.id) ? { ...worker, name: toWorkerName(each, true) } : worker;
  });
}

interface RevisionIds {
  readonly inForce: string | null;
  readonly trial: string | null;
}

/** Whether it has its rules, and their revision. */
function toRulesState(
  worker: ConnectedWorker,
  snapshots: WorkerSnapshots,
  ids: RevisionIds,
): Pick<WorkerJson, 'state' | 'revision' | 'gets' | 'expected'> {
  const { node, acked, wantedVersion } = worker;
  const { state, expected } = toWorkerState(worker, snapshots.current(node));
  const both = snapshots.compare(node);
  const before = both === undefined ? expected : both.before && wantedVersion(both.before);
  const after = both?.after && wantedVersion(both.after);
  // A trial that changes nothing for a worker does not concern it.
  const isTried = after !== undefined && before !== after;
  const revisionOf = (version: string | undefined) => {
    if (version === undefined) return null;
    if (isTried && version === after) return ids.trial;
    return version === before ? ids.inForce : null;
  };
  const gets = revisionOf(expected);
  const isOnTrial = state === 'in_force' && isTried && expected === after;
  return {
    state: isOnTrial ? 'on_trial' : state,
    revision: revisionOf(acked?.version),
    gets,
    expected: expected ?? null,
  };
}

function toVersionJson(version: VersionAt | undefined): WorkerJson['sent'] {
  return version ? { version: version.version, at: toTime(version.atMs) } : null;
}
