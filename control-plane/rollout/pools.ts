// Chooses the workers of each step: a group of nodes with steps of its own (node-groups.yaml) is a pool, all
// others together are the first one. Pools take their steps at the same time. Each worker has a place, derived
// from the rollout's id, its node id and its instance: nobody can choose one that comes first, and other workers
// come first each time. Pure.
import { createHash } from 'node:crypto';
import { matchesNode, type NodeGroup } from '../snapshot/node-groups.ts';
import type { RolloutStep } from '../snapshot/rollout-steps.ts';
import type { NodeIdentity } from '../snapshot/snapshot.ts';

export interface PlacedWorker {
  readonly pool: number;
  readonly place: string;
}

/** The workers that have the revision. */
export interface Share {
  /** Places of workers. */
  readonly chosen: readonly string[];
  /** Pools of which all have it. */
  readonly whole: readonly number[];
}

/** Whether anybody has it. */
export function isGiven({ chosen, whole }: Share): boolean {
  return chosen.length + whole.length > 0;
}

export interface Pools {
  poolOf(node: NodeIdentity): number;
  /** The pool's name for people; undefined for the first one. */
  nameOf(pool: number): string | undefined;
  /** Steps before everybody has it. */
  readonly stepCount: number;
  /** The longest of all pools, in milliseconds. */
  holdMsOf(step: number): number;
  /** For the workers that are there: those of `before` stay in it as far as the step allows. A pool that cannot
   * be divided waits for the end. */
  shareAt(step: number, workers: readonly PlacedWorker[], before: Share): Share;
  /** Whether some pool has a share to make at this step or a later one. */
  dividesAt(step: number, workers: readonly PlacedWorker[]): boolean;
}

export function toPools(steps: readonly RolloutStep[], groups: readonly NodeGroup[]): Pools {
  const pools: readonly { name: string | undefined; steps: readonly RolloutStep[] }[] = [
    { name: undefined, steps },
    ...groups.flatMap(({ name, rollout }) => (rollout ? [{ name, steps: rollout }] : [])),
  ];
  /** A node is asked for at each look, and may be matched with hundreds of groups. */
  const known = new WeakMap<NodeIdentity, number>();

  function findPool(node: NodeIdentity): number {
    const group = groups.find(({ match }) => matchesNode(match, node));
    return group?.rollout ? pools.findIndex(({ name }) => name === group.name) : 0;
  }

  return {
    poolOf(node) {
      const pool = known.get(node) ?? findPool(node);
      known.set(node, pool);
      return pool;
    },
    nameOf: (pool) => pools[pool]?.name,
    stepCount: Math.max(...pools.map((pool) => pool.steps.length)),
    holdMsOf: (step) => Math.max(0, ...pools.map((pool) => pool.steps[step]?.holdMs ?? 0)),
    shareAt(step, workers, before) {
      const kept = new Set(before.chosen);
      const whole = [...before.whole];
      const chosen: string[] = [];
      for (const [pool, members] of Map.groupBy(workers, (worker) => worker.pool)) {
        const percent = pools[pool]?.steps[step]?.percent;
        if (whole.includes(pool)) continue;
        if (percent === undefined) whole.push(pool);
        else if (percent > 0) {
          chosen.push(
            ...chooseShare(
              members.map(({ place }) => place),
              percent,
              kept,
            ),
          );
        }
      }
      return { chosen: chosen.sort(), whole: whole.sort((a, b) => a - b) };
    },
    dividesAt: (step, workers) =>
      workers.some(({ pool }) =>
        (pools[pool]?.steps ?? []).slice(step).some(({ percent }) => percent > 0),
      ),
  };
}

/** Whether the worker has the revision. */
export function createIsWithin({ chosen, whole }: Share): (worker: PlacedWorker) => boolean {
  const places = new Set(chosen);
  return ({ pool, place }) => places.has(place) || whole.includes(pool);
}

/** 12 hexadecimal digits. Workers of other makes have no instance: those with one node id share a place. */
export function placeOf(rolloutId: string, nodeId: string, instance: string | undefined): string {
  return createHash('sha256')
    .update(JSON.stringify([rolloutId, nodeId, instance ?? null]))
    .digest('hex')
    .slice(0, 12);
}

/**
 * Places with `percent` of the workers, rounded down, but at least one worker and never all; those of `kept`
 * first. Workers that share a place stay together, and are passed over where they are more than that. Empty
 * when no such share can be made.
 */
export function chooseShare(
  places: readonly string[],
  percent: number,
  kept: ReadonlySet<string> = new Set(),
): readonly string[] {
  const most = Math.min(
    Math.max(1, Math.floor((places.length * Math.round(percent * 1_000)) / 100_000)),
    places.length - 1,
  );
  const counts = Map.groupBy(places, (place) => place);
  const all = [...counts.keys()].sort();
  const inOrder = [
    ...all.filter((place) => kept.has(place)),
    ...all.filter((place) => !kept.has(place)),
  ];
  let left = most;
  return inOrder.filter((place) => {
    const { length } = counts.get(place) ?? [];
    if (length > left) return false;
    left -= length;
    return true;
  });
}
