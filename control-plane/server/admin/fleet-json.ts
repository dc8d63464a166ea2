// The workers one by one as the admin API shows them, of one control plane and of several. Pure.
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
  /** Links that no rollout is judged by: without a stream of rules of their instance and node id. */
  links: Type.Array(linkJson),
  /** Workers whose connection broke without a goodbye in the last hour and that have not reconnected, the last first. */
  gone: Type.Array(goneWorkerJson),
});
export type FleetJson = Type.Static<typeof fleetJson>;

/** Joins the workers of several control planes: an id may be shared by workers of different ones, and a worker that is gone from one may
 * be at another. */
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

/** The last first. A worker that names no instance has reconnected when one with its node id is there. */
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
