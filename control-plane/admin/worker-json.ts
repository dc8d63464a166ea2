// A connected worker as the admin API shows it, and whether it has its rules. Pure.
import Type from 'typebox';
import { orNull } from '../../shared/or-null.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import { findSharedIds, toWorkerName } from '../xds/worker-name.ts';
import { toWorkerState } from '../xds/worker-state.ts';
import type { ConnectedWorker, VersionAt } from '../xds/workers.ts';
import { toTime } from './revision-json.ts';
import { type FindFigures, figuresJson } from './traffic-json.ts';

const time = Type.String({ format: 'date-time' });
const versionAt = Type.Object({ version: Type.String(), at: time });

export const workerJson = Type.Object(
  {
    id: Type.String(),
    /** One start of a Ratelane worker; null for workers of other makes. */
    instance: orNull(Type.String()),
    /** For people: the id, and what tells it from others with the same id. */
    name: Type.String(),
    cluster: Type.String(),
    metadata: Type.Record(Type.String(), Type.String()),
    address: Type.String(),
    protocol: Type.Union([Type.Literal('sotw'), Type.Literal('delta')]),
    connectedSince: time,
    group: orNull(Type.String()),
    state: Type.Union([Type.Literal('in_force'), Type.Literal('pending'), Type.Literal('refused')]),
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

/** With names that fit together. */
export function toWorkersJson(
  workers: readonly ConnectedWorker[],
  snapshots: Pick<SnapshotCache, 'current' | 'groupOf'>,
  findFigures: FindFigures,
): WorkerJson[] {
  const shared = findSharedIds(workers);
  return workers.map((worker) =>
    toWorkerJson(worker, toWorkerName(worker, shared.has(worker.node.id)), snapshots, findFigures),
  );
}

/** Of several control planes: an id may be shared by workers of different ones. */
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

function toWorkerJson(
  worker: ConnectedWorker,
  name: string,
  snapshots: Pick<SnapshotCache, 'current' | 'groupOf'>,
  findFigures: FindFigures,
): WorkerJson {
  const { node, instance, address, mode, sinceMs, sent, acked, nacked } = worker;
  const { state, expected } = toWorkerState(worker, snapshots.current(node));
  return {
    id: node.id,
    instance: instance ?? null,
    name,
    cluster: node.cluster,
    metadata: Object.fromEntries(node.metadata),
    address,
    protocol: mode,
    connectedSince: toTime(sinceMs),
    group: snapshots.groupOf(node) ?? null,
    state,
    expected: expected ?? null,
    sent: toVersionJson(sent),
    acked: toVersionJson(acked),
    nacked: nacked
      ? { version: nacked.version ?? null, at: toTime(nacked.atMs), text: nacked.text }
      : null,
    figures: findFigures(worker),
  };
}

function toVersionJson(version: VersionAt | undefined): WorkerJson['sent'] {
  return version ? { version: version.version, at: toTime(version.atMs) } : null;
}
