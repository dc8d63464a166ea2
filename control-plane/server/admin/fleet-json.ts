// The individual workers in the format of the admin API, of one control plane and of several. Pure.
import Type from 'typebox';
import type { LinkedWorker } from '../fleet/fleet.ts';
import type { ConnectedWorker } from '../xds/workers.ts';
import { createFindFigures } from './traffic-json.ts';
import {
  type GoneWorkerJson,
  goneWorkerJson,
  nameTogether,
  toWorkersJson,
  type WorkerJson,
  type WorkerSnapshots,
  workerJson,
} from './worker-json.ts';

export const linkJson = Type.Object(
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
  /** Links that no rollout is judged by: no stream of rules has their instance and node id. */
  links: Type.Array(linkJson),
  /** Workers whose connection broke without a goodbye in the last hour and that have not reconnected, the most recent
   * first. */
  gone: Type.Array(goneWorkerJson),
});
export type FleetJson = Type.Static<typeof fleetJson>;

export function toFleetJson(
  connected: readonly ConnectedWorker[],
  linked: readonly LinkedWorker[],
  gone: readonly GoneWorkerJson[],
  snapshots: WorkerSnapshots,
): FleetJson {
  const workers = toWorkersJson(connected, snapshots, createFindFigures(linked, connected));
  return { workers, links: toLinksJson(linked, connected), gone: withoutReturned(gone, workers) };
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
  if (streamId === undefined) return 'no worker of this instance takes its rules here';
  if (streamId === nodeId) return undefined;
  return `the worker of this instance takes its rules as node '${streamId.slice(0, maxShownId)}'`;
}

/** Merges the workers of several control planes: workers of different ones may share an id, and a worker that is gone
 * from one may be connected to another. */
export function mergeFleets(all: readonly FleetJson[]): FleetJson {
  const workers = nameTogether(all.flatMap((each) => each.workers));
  return {
    workers,
    links: all.flatMap(({ links }) => links),
    gone: withoutReturned(
      all.flatMap(({ gone }) => gone),
      workers,
    ),
  };
}

/** The most recent first. A worker without an instance counts as reconnected when one with its node id is connected. */
function withoutReturned(
  gone: readonly GoneWorkerJson[],
  workers: readonly Pick<WorkerJson, 'id' | 'instance'>[],
): GoneWorkerJson[] {
  const instances = new Set(workers.map(({ instance }) => instance));
  const ids = new Set(workers.map(({ id }) => id));
  return gone
    .filter(({ id, instance }) => (instance === null ? !ids.has(id) : !instances.has(instance)))
    .sort((a, b) => b.at.localeCompare(a.at));
}
