import test from 'ava';
import fc from 'fast-check';
import { pluck } from '../../../test/support/pluck.ts';
import { type NodeGroup, noConditions } from '../snapshot/node-groups.ts';
import { parseRolloutSteps } from '../snapshot/rollout-steps.ts';
import {
  chooseShare,
  createIsWithin,
  type OrderedWorker,
  positionOf,
  type Share,
  toPools,
} from './pools.ts';

const step = { percent: 10, holdMs: 60_000 };
const noShare = { step: 0, chosen: [], whole: [] };

function groupOf(name: string, rollout: string | undefined): NodeGroup {
  const parsed = rollout === undefined ? undefined : parseRolloutSteps(rollout);
  if (parsed?.ok === false) throw new Error(parsed.reason);
  const id = [{ text: `${name}-*`, offset: undefined }];
  const match = { ...noConditions, id };
  return { name, domains: [], match, rollout: parsed?.steps, offset: undefined };
}

function nodeOf(id: string) {
  return { id, cluster: '', metadata: new Map<string, string>() };
}

/** Makes this number of workers of each pool. */
function workersOf(...pools: readonly number[]): OrderedWorker[] {
  return pools.flatMap((count, pool) =>
    Array.from({ length: count }, (_, index) => ({ pool, position: `${pool}-${100 + index}` })),
  );
}

function countsOf(share: Share, workers: readonly OrderedWorker[]): number[] {
  const within = workers.filter(createIsWithin(share));
  return [0, 1, 2].map((pool) => within.filter((worker) => worker.pool === pool).length);
}

test('a node is in the pool of its group, or in the first one if that has no steps', (t) => {
  const groups = [groupOf('a', undefined), groupOf('b', '100%'), groupOf('c', '5%')];
  const pools = toPools([step], groups);
  const nodes = ['a-1', 'b-1', 'c-1', 'd-1'].map(nodeOf);
  for (const _ of ['first', 'known']) t.deepEqual(nodes.map(pools.poolOf), [0, 1, 2, 0]);
  t.deepEqual([0, 1, 2, 3].map(pools.nameOf), [undefined, 'b', 'c', undefined]);
  t.is(toPools([step], []).poolOf(nodeOf('b-1')), 0);
});

test('groups go through their steps in the order of their file, and all other workers follow', (t) => {
  const pools = toPools([step], [groupOf('a', '5%:1s,100%:10m'), groupOf('b', '100%')]);
  t.deepEqual(
    pools.steps.map(({ pool, percent, holdMs }) => [pool, percent, holdMs]),
    [
      [1, 5, 1_000],
      [1, 100, 600_000],
      [2, 100, 60_000],
      [0, 10, 60_000],
    ],
  );
  const unchanged = toPools([step], [groupOf('a', '5%'), groupOf('b', '100%')], new Set(['a']));
  t.deepEqual(pluck(unchanged.steps, 'pool'), [2, 0]);
});

test('each step divides one pool, and all workers of earlier pools have the revision', (t) => {
  const pools = toPools([step], [groupOf('a', '50%:1s'), groupOf('b', '50%:1s')]);
  const workers = workersOf(20, 4, 2);
  const shares: Share[] = [];
  for (const at of pools.steps.keys()) {
    const before = { ...(shares.at(-1) ?? noShare), step: at - 1 };
    shares.push(pools.shareAt(at, workers, before));
  }
  t.deepEqual(shares, [
    { chosen: ['1-100', '1-101'], whole: [] },
    { chosen: [], whole: [1] },
    { chosen: ['2-100'], whole: [1] },
    { chosen: [], whole: [1, 2] },
    { chosen: ['0-100', '0-101'], whole: [1, 2] },
  ]);
  t.deepEqual(pools.shareAt(0, workers.toReversed(), noShare), shares[0]);
});

test('a complete pool stays complete, whichever workers connect', (t) => {
  const pools = toPools([step], [groupOf('a', '50%:1s')]);
  const share = pools.shareAt(0, workersOf(10, 10), { ...noShare, whole: [1] });
  t.deepEqual(share, { chosen: [], whole: [1] });
});

test('a share may be less than a percent', (t) => {
  const pools = toPools([{ ...step, percent: 0.5 }], []);
  const workers = workersOf(400);
  t.deepEqual(countsOf(pools.shareAt(0, workers, noShare), workers), [2, 0, 0]);
});

test('the share of each step is never all workers, never larger than configured, and keeps the workers that have the revision', (t) => {
  const pools = toPools([step, { percent: 50, holdMs: 1_000 }], []);
  fc.assert(
    fc.property(fc.nat(60), (all) => {
      const workers = workersOf(all);
      const first = pools.shareAt(0, workers, noShare);
      const second = pools.shareAt(1, workers, { ...first, step: 0 });
      const isIn = createIsWithin(second);
      const includesFirst = workers.every(
        (worker) => !createIsWithin(first)(worker) || isIn(worker),
      );
      const most = (percent: number) =>
        Math.max(0, Math.min(Math.max(1, Math.floor((all * percent) / 100)), all - 1));
      return includesFirst && first.chosen.length === most(10) && second.chosen.length === most(50);
    }),
  );
  t.pass();
});

test('a share in use does not grow when workers reconnect under other names', (t) => {
  const pools = toPools([step], []);
  const share = pools.shareAt(0, workersOf(20), noShare);
  const renamed = workersOf(20).map(({ position }) => ({ pool: 0, position: `${position}-again` }));
  t.deepEqual(countsOf(share, renamed), [0, 0, 0]);
});

/** Positions, including some of workers of other makes. */
const positions = fc
  .uniqueArray(fc.integer({ min: 0, max: 90 }), { maxLength: 60 })
  .map((all) => all.map((each) => (each > 80 ? '' : String(each))));
const percents = fc.integer({ min: 1, max: 99_999 }).map((each) => each / 1_000);

test('a share is at least one worker if possible, never all workers, and never larger than configured', (t) => {
  fc.assert(
    fc.property(positions, percents, (all, percent) => {
      const named = all.filter((position) => position !== '');
      const asked = Math.max(1, Math.floor((all.length * percent) / 100 + 1e-9));
      const most = Math.max(0, Math.min(asked, all.length - 1, named.length));
      const chosen = chooseShare(all, percent);
      return chosen.length === most && new Set(chosen).size === most && !chosen.includes('');
    }),
  );
  t.pass();
});

test('a share is as large as configured', (t) => {
  const all = Array.from({ length: 200 }, (_, index) => positionOf('id', `worker-${index}`, 'x'));
  for (const [percent, count] of [
    [0.1, 1],
    [0.5, 1],
    [1, 2],
    [1.499, 2],
    [1.5, 3],
    [10, 20],
    [29, 58],
    [99.5, 199],
    [99.999, 199],
  ] as const) {
    t.is(chooseShare(all, percent).length, count, `${percent} %`);
  }
  t.is(chooseShare(all.slice(0, 2), 99).length, 1);
  const crowd = Array.from({ length: 10_001 }, (_, index) => String(index));
  t.is(chooseShare(crowd, 99.99).length, 9_999);
});

test('a worker in the share stays in it while the share is large enough', (t) => {
  fc.assert(
    fc.property(positions, percents, percents, (all, one, other) => {
      const small = chooseShare(all, Math.min(one, other));
      const large = chooseShare(all, Math.max(one, other), new Set(small));
      return small.every((position) => large.includes(position));
    }),
  );
  const all = Array.from({ length: 20 }, (_, index) => `${10 + index}`);
  t.deepEqual(chooseShare(all, 10, new Set(['29', '20', '15'])), ['15', '20']);
  t.deepEqual(chooseShare(all, 20, new Set(['29', '20', '99'])), ['20', '29', '10']);
});

test('a share does not depend on the order of the workers', (t) => {
  fc.assert(
    fc.property(positions, percents, (all, percent) => {
      const one = chooseShare(all, percent);
      return String(one) === String(chooseShare(all.toReversed(), percent));
    }),
  );
  t.pass();
});

test('workers of other makes are in no share, but count for its size', (t) => {
  t.deepEqual(chooseShare(['1', '2', '', '', '', ''], 50), ['1', '2']);
  t.deepEqual(chooseShare(['1', '2', '', ''], 50), ['1', '2']);
  t.deepEqual(chooseShare(['', ''], 50), []);
  t.deepEqual(chooseShare(['1'], 99), []);
  t.deepEqual(chooseShare([], 99), []);
  t.false(createIsWithin({ chosen: ['1'], whole: [] })({ pool: 0, position: '' }));
});

test('a position depends on the rollout, the node id and the instance', (t) => {
  const given = [
    positionOf('rollout', 'worker', 'instance'),
    positionOf('another', 'worker', 'instance'),
    positionOf('rollout', 'other', 'instance'),
    positionOf('rollout', 'worker', 'another'),
    positionOf('rollout', 'workerin', 'stance'),
  ];
  t.is(new Set(given).size, given.length);
  for (const position of given) t.regex(position, /^[0-9a-f]{12}$/);
  t.is(positionOf('rollout', 'worker', undefined), '');
});

test('each rollout begins with other workers', (t) => {
  const firstOf = (rollout: string) => {
    const named = Array.from({ length: 50 }, (_, index) => positionOf(rollout, `w-${index}`, 'x'));
    return named.indexOf(chooseShare(named, 2)[0] ?? '');
  };
  const firsts = Array.from({ length: 30 }, (_, index) => firstOf(`rollout-${index}`));
  t.true(new Set(firsts).size > 10);
});
