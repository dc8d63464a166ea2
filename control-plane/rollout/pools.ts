// Which workers go through which steps: a group of nodes with steps of its own (node-groups.yaml) is a pool, all
// others together are the first one. Pools take their steps at the same time. Pure.
import Type from 'typebox';
import { matchesNode, type NodeGroup } from '../snapshot/node-group.ts';
import type { RolloutStep } from '../snapshot/rollout-steps.ts';
import type { NodeIdentity } from '../snapshot/snapshot.ts';
import { findLimit } from './share.ts';

/** By pool: nodes up to this place (share.ts) have the revision; below 0, or left out, for none. */
export const limitsJson = Type.Unsafe<readonly number[]>(
  Type.Array(Type.Number(), { maxItems: 1_000 }),
);
export type Limits = Type.Static<typeof limitsJson>;

export interface Pools {
  poolOf(node: NodeIdentity): number;
  /** For people; undefined for the first one. */
  nameOf(pool: number): string | undefined;
  /** Steps before everybody has it. */
  readonly stepCount: number;
  /** The longest of all pools, in milliseconds. */
  holdMsOf(step: number): number;
  /** For the workers that are there. A pool that cannot be divided waits for the end. */
  limitsAt(step: number, workers: readonly PlacedWorker[]): Limits;
}

const whole = 1;
const none = -1;

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
      if (pools.length === 1) return 0;
      const pool = known.get(node) ?? findPool(node);
      known.set(node, pool);
      return pool;
    },
    nameOf: (pool) => pools[pool]?.name,
    stepCount: Math.max(...pools.map((pool) => pool.steps.length)),
    holdMsOf: (step) => Math.max(0, ...pools.map((pool) => pool.steps[step]?.holdMs ?? 0)),
    limitsAt: (step, workers) =>
      pools.map((pool, index) => {
        const percent = pool.steps[step]?.percent;
        if (percent === undefined) return whole;
        if (percent === 0) return none;
        const members = workers.filter((worker) => worker.pool === index);
        return (
          findLimit(
            members.map(({ place }) => place),
            percent,
          ) ?? none
        );
      }),
  };
}

export function isWithin(limits: Limits, { pool, place }: PlacedWorker): boolean {
  return place <= (limits[pool] ?? none);
}

export interface PlacedWorker {
  readonly pool: number;
  readonly place: number;
}

/** The larger share of each pool. */
export function widen(limits: Limits, others: Limits): Limits {
  return limits.map((limit, pool) => Math.max(limit, others[pool] ?? none));
}
