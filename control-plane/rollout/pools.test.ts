import test from 'ava';
import fc from 'fast-check';
import { type NodeGroup, noConditions } from '../snapshot/node-group.ts';
import { parseRolloutSteps } from '../snapshot/rollout-steps.ts';
import { isWithin, type PlacedWorker, toPools, widen } from './pools.ts';
import { placeOf } from './share.ts';

const step = { percent: 10, holdMs: 60_000 };

function groupOf(name: string, rollout: string | undefined): NodeGroup {
  const parsed = rollout === undefined ? undefined : parseRolloutSteps(rollout);
  if (parsed?.ok === false) throw new Error(parsed.reason);
  const id = [{ text: `${name}-*`, offset: undefined }];
  const match = { ...noConditions, id };
  return { name, domains: [], match, rollout: parsed?.steps, offset: undefined };
}

function nodeOf(id: string) {
  return { id, cluster: '', metadata: new Map() };
}

function workersOf(...pools: readonly number[]): PlacedWorker[] {
  return pools.flatMap((count, pool) =>
    Array.from({ length: count }, (_, index) => ({ pool, place: placeOf(`${pool}-${index}`) })),
  );
}

test('a node is in the pool of its group, and in the first one without steps of its own', (t) => {
  const groups = [groupOf('a', undefined), groupOf('b', '100%'), groupOf('c', '5%')];
  const pools = toPools([step], groups);
  t.deepEqual(
    ['a-1', 'b-1', 'c-1', 'd-1'].map((id) => pools.poolOf(nodeOf(id))),
    [0, 1, 2, 0],
  );
  t.deepEqual([0, 1, 2].map(pools.nameOf), [undefined, 'b', 'c']);
});

test('a step lasts as long as the longest hold in it, and there are as many as of the longest list', (t) => {
  const pools = toPools([step], [groupOf('a', '0%:10m,5%:1s,100%'), groupOf('b', '100%')]);
  t.deepEqual([0, 1, 2].map(pools.holdMsOf), [600_000, 1_000, 0]);
  t.is(pools.stepCount, 2);
});

test('each pool is divided by itself; one that cannot be is left for the end', (t) => {
  const pools = toPools([step], [groupOf('a', '0%:10m,50%:1s'), groupOf('b', '50%:1s')]);
  const workers = workersOf(20, 4, 1);
  const counts = (at: number) => {
    const limits = pools.limitsAt(at, workers);
    const chosen = workers.filter((worker) => isWithin(limits, worker));
    return [0, 1, 2].map((pool) => chosen.filter((worker) => worker.pool === pool).length);
  };
  t.deepEqual(counts(0), [2, 0, 0]);
  t.deepEqual(counts(1), [20, 2, 1]);
});

test('a share does not get smaller from step to step', (t) => {
  const pools = toPools([step], [groupOf('a', '5%,10%,90%')]);
  const counts = fc.array(fc.nat(20), { minLength: 2, maxLength: 2 });
  fc.assert(
    fc.property(counts, counts, (before, after) => {
      const first = pools.limitsAt(0, workersOf(...before));
      const second = widen(pools.limitsAt(1, workersOf(...after)), first);
      return workersOf(20, 20).every(
        (worker) => !isWithin(first, worker) || isWithin(second, worker),
      );
    }),
  );
  t.pass();
});
