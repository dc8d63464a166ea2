import test from 'ava';
import { findSharedIds, toWorkerName } from './worker-name.ts';

const workerOf = (id: string, instance?: string) => ({
  node: { id },
  address: '10.0.0.1:5',
  instance,
});

test('a worker is called by its node id, and by what distinguishes it where that is shared', (t) => {
  const instance = '3f2a91c0-5d3e-4c0e-9d2f-0a1b2c3d4e5f';
  const cases: [string, string | undefined, boolean, string][] = [
    ['edge', instance, false, 'edge'],
    ['edge', instance, true, 'edge (instance 3f2a91c0)'],
    ['edge', undefined, true, 'edge (at 10.0.0.1:5)'],
    ['', undefined, false, '10.0.0.1:5'],
    ['', undefined, true, '10.0.0.1:5'],
    ['', instance, true, '10.0.0.1:5 (instance 3f2a91c0)'],
    ['x'.repeat(300), undefined, false, 'x'.repeat(200)],
  ];
  for (const [id, each, isShared, name] of cases)
    t.is(toWorkerName(workerOf(id, each), isShared), name);
});

test('node ids that two workers have are shared', (t) => {
  const ids = ['a', 'b', 'a', 'c', 'a', 'c'].map((id) => workerOf(id));
  t.deepEqual([...findSharedIds(ids)], ['a', 'c']);
});
