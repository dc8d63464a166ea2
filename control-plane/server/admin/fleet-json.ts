// The individual workers in the format of the admin API, of one control plane and of several. Pure.
import Type from 'typebox';
import { linkJson } from './link-json.ts';
import {
  type GoneWorkerJson,
  goneWorkerJson,
  nameTogether,
  type WorkerJson,
  workerJson,
} from './worker-json.ts';

export const fleetJson = Type.Object({
  workers: Type.Array(workerJson),
  /** Links that no rollout is judged by: no stream of rules has their instance and node id. */
  links: Type.Array(linkJson),
  /** Workers whose connection broke without a goodbye in the last hour and that have not reconnected, the most recent
   * first. */
  gone: Type.Array(goneWorkerJson),
});
export type FleetJson = Type.Static<typeof fleetJson>;

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
export function withoutReturned(
  gone: readonly GoneWorkerJson[],
  workers: readonly Pick<WorkerJson, 'id' | 'instance'>[],
): GoneWorkerJson[] {
  const instances = new Set(workers.map(({ instance }) => instance));
  const ids = new Set(workers.map(({ id }) => id));
  return gone
    .filter(({ id, instance }) => (instance === null ? !ids.has(id) : !instances.has(instance)))
    .sort((a, b) => b.at.localeCompare(a.at));
}
