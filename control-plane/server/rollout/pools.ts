// Chooses the workers of each step. A group of nodes with its own steps (node-groups.yaml) is a pool; all other workers
// are the first pool. The groups take their steps one after the other, in the order of their file, and the other
// workers follow. Each worker has a position, derived from the rollout's id, its node id and its instance: no worker can
// choose to be first, and each rollout has a different order. Pure.
import { createHash } from 'node:crypto';
import { matchesNode, type NodeGroup } from '../snapshot/node-groups.ts';
import type { RolloutStep } from '../snapshot/rollout-steps.ts';
import type { NodeIdentity } from '../snapshot/snapshot.ts';

export interface OrderedWorker {
  readonly pool: number;
  readonly position: string;
}

/** The workers that have the revision. */
export interface Share {
  /** The positions of single workers. */
  readonly chosen: readonly string[];
  /** Pools in which all workers have the revision. */
  readonly whole: readonly number[];
}

/** The step that a share belongs to, counted from 0. */
interface Given {
  readonly step: number;
}

/** Whether any worker has the revision. */
export function isGiven({ chosen, whole }: Share): boolean {
  return chosen.length + whole.length > 0;
}

/** Whether one of these workers is in the pool that the step divides. */
export function isOfStep({ steps }: Pools, { step }: Given, workers: readonly OrderedWorker[]) {
  const at = steps[step];
  return workers.some(({ pool }) => at === undefined || pool === at.pool);
}

export interface Pools {
  poolOf(node: NodeIdentity): number;
  /** The pool's human-readable name; undefined for the first one. */
  nameOf(pool: number): string | undefined;
  /** The steps in their order, before all workers have the revision. */
  readonly steps: readonly PoolStep[];
  /** The share of the connected workers: those of `before` stay in it as far as the step allows, and those of them that
   * have left also count. */
  shareAt(step: number, workers: readonly OrderedWorker[], before: Share & Given): Share;
}

export interface PoolStep extends RolloutStep {
  readonly pool: number;
}

/** `unchanged`: the names of groups for which the revision changes nothing, so that it cannot be tried with them. */
export function toPools(
  steps: readonly RolloutStep[],
  groups: readonly NodeGroup[],
  unchanged: ReadonlySet<string> = new Set(),
): Pools {
  const own = groups.flatMap(({ name, rollout }) => (rollout ? [{ name, steps: rollout }] : []));
  const pools: readonly { name: string | undefined; steps: readonly RolloutStep[] }[] = [
    { name: undefined, steps },
    ...own,
  ];
  const inOrder = [...pools.keys()].slice(1).concat(0);
  const all = inOrder.flatMap((pool) => {
    const { name, steps: ofPool = [] } = pools[pool] ?? {};
    const isTried = name === undefined || !unchanged.has(name);
    return isTried ? ofPool.map((step): PoolStep => ({ ...step, pool })) : [];
  });
  /** Nodes are queried at each check, and matching one may involve hundreds of groups. */
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
    steps: all,
    shareAt(step, workers, before) {
      const { pool: now, percent = 100 } = all[step] ?? {};
      const past = all.slice(0, step).flatMap(({ pool }) => (pool === now ? [] : pool));
      const whole = new Set([...before.whole, ...past]);
      if (now !== undefined && percent === 100) whole.add(now);
      const positions = workers.flatMap(({ pool, position }) => (pool === now ? position : []));
      const isComplete = now === undefined || whole.has(now);
      // If the previous step was of another pool, that pool is complete.
      const chosenBefore = new Set(all[before.step]?.pool === now ? before.chosen : []);
      const left = chosenBefore.difference(new Set(positions));
      const chosen = isComplete ? [] : [...left, ...chooseShare(positions, percent, chosenBefore)];
      return { chosen: chosen.sort(), whole: [...whole].sort((a, b) => a - b) };
    },
  };
}

/** Makes the predicate whether a worker has the revision. */
export function createIsWithin({ chosen, whole }: Share): (worker: OrderedWorker) => boolean {
  const positions = new Set(chosen);
  return ({ pool, position }) => positions.has(position) || whole.includes(pool);
}

/** 12 hexadecimal digits; '' for workers of other makes, which have no instance and get the revision with the last of
 * their pool. */
export function positionOf(
  rolloutId: string,
  nodeId: string,
  instance: string | undefined,
): string {
  if (instance === undefined) return '';
  return createHash('sha256')
    .update(JSON.stringify([rolloutId, nodeId, instance]))
    .digest('hex')
    .slice(0, 12);
}

/** Chooses the positions of `percent` of the workers, rounded down, but of at least one worker and never of all: those in
 * `chosenBefore` first; others never replace one of these, even if it has left. Empty if no such share can be made. */
export function chooseShare(
  positions: readonly string[],
  percent: number,
  chosenBefore: ReadonlySet<string> = new Set(),
): readonly string[] {
  const most = Math.min(
    Math.max(1, Math.floor((positions.length * Math.round(percent * 1_000)) / 100_000)),
    positions.length - 1,
  );
  const named = positions.filter((position) => position !== '').sort();
  const wasChosen = (position: string) => chosenBefore.has(position);
  const others = named
    .filter((position) => !wasChosen(position))
    .slice(0, Math.max(0, most - chosenBefore.size));
  return [...named.filter(wasChosen).slice(0, Math.max(0, most)), ...others];
}
