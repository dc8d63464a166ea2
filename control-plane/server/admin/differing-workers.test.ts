import test from 'ava';
import { agreementKey } from '../../../shared/agreement-key.ts';
import { extensionsAnnouncement } from '../../../shared/rules/wire/resource-fields.ts';
import {
  countAgreements,
  findDisagreements,
  findUnenforced,
  joinAgreements,
} from './differing-workers.ts';
import type { WorkerJson } from './fleet-json.ts';

const differencesOf = (workers: readonly WorkerJson[]) =>
  findDisagreements(countAgreements(workers));

/** A worker with this agreement, or without any. */
function workerOf(id: string, agreement?: string, group: string | null = 'default'): WorkerJson {
  return {
    ...{ id, instance: null, name: id, cluster: '', address: `${id}:5`, protocol: 'sotw', group },
    metadata: { team: id, ...(agreement !== undefined && { [agreementKey]: agreement }) },
    ...{ connectedSince: '2026-01-01T00:00:00.000Z', state: 'in_force', revision: null },
    ...{ gets: null, expected: null, sent: null, acked: null, nacked: null, figures: null },
  };
}

/** `b` and `c` agree, `a` does not. */
const twoOfThree = {
  group: 'default',
  count: 2,
  agreements: [
    { agreement: 'y', workers: 2, example: { id: 'b', address: 'b:5' } },
    { agreement: 'x', workers: 1, example: { id: 'a', address: 'a:5' } },
  ],
};

test('workers that agree, and those that announce nothing, are not reported', (t) => {
  t.deepEqual(differencesOf([]), []);
  t.deepEqual(differencesOf([workerOf('a', 'x'), workerOf('b', 'x'), workerOf('c')]), []);
});

test('workers that differ are counted, those of the majority first', (t) => {
  const workers = [workerOf('a', 'x'), workerOf('b', 'y'), workerOf('c', 'y'), workerOf('d')];
  t.deepEqual(differencesOf(workers), [twoOfThree]);
});

test('workers of different node groups may differ', (t) => {
  const workers = [
    workerOf('a', 'x', 'west'),
    workerOf('b', 'y', 'east'),
    workerOf('c', 'z', null),
  ];
  t.deepEqual(differencesOf(workers), []);
  const [found, ...others] = differencesOf([...workers, workerOf('d', 'x', 'east')]);
  t.deepEqual([found?.group, found?.count, others.length], ['east', 2, 0]);
});

test('the number and the length of agreements are bounded', (t) => {
  const workers = Array.from({ length: 50 }, (_, index) =>
    workerOf(`w${index}`, `${index}`.padEnd(5_000, '-')),
  );
  const [found] = differencesOf(workers);
  t.is(found?.count, 50);
  t.is(found?.agreements.length, 10);
  t.true(found?.agreements.every(({ agreement }) => agreement.length < 100));
});

test('workers of different control planes differ like those of one', (t) => {
  const here = countAgreements([workerOf('a', 'x'), workerOf('e', 'z', 'east')]);
  const there = countAgreements([
    workerOf('b', 'y'),
    workerOf('c', 'y'),
    workerOf('f', 'z', 'east'),
  ]);
  t.deepEqual([...findDisagreements(here), ...findDisagreements(there)], []);
  t.deepEqual(findDisagreements(joinAgreements([...here, ...there])), [twoOfThree]);
  const twice = joinAgreements([...here, ...here]);
  t.is(twice[0]?.agreements[0]?.workers, 2);
});

const workerIn = (id: string, group: string, metadata: object = {}) =>
  ({ id, group, metadata, address: '10.0.0.1:5' }) as WorkerJson;
const ours = (id: string, group: string) =>
  workerIn(id, group, Object.fromEntries([extensionsAnnouncement]));
const groupOf = (name: string, ...domains: string[]) => ({ name, domains });
const inForce = {
  leftOut: [
    {
      domain: 'shop',
      fields: [
        'descriptors[0].rate_limit.algorithm',
        'descriptors[1].rate_limit.algorithm',
        'descriptors[1].burst',
      ],
    },
  ],
  groups: [groupOf('edge', 'shop', 'mail'), groupOf('others', 'mail')],
};

test('workers that do not announce a field that a rule needs are counted by domain', (t) => {
  const workers = [ours('a', 'edge'), workerIn('b', 'edge'), workerIn('c', 'edge')];
  t.deepEqual(findUnenforced(workers, inForce), [
    {
      domain: 'shop',
      fields: ['algorithm', 'burst'],
      workers: 2,
      example: { id: 'b', address: '10.0.0.1:5' },
    },
  ]);
});

test('an older Ratelane worker, which announces fewer fields, is reported only for those that it lacks', (t) => {
  const older = workerIn('old', 'edge', { 'ratelane.fields': 'value_to_metric algorithm' });
  const reports = findUnenforced([older, workerIn('b', 'edge')], inForce);
  t.deepEqual(
    reports.map(({ fields, workers, example }) => [example.id, workers, ...fields]),
    [
      ['old', 1, 'burst'],
      ['b', 1, 'algorithm', 'burst'],
    ],
  );
});

test('workers without the domain, and those that announce all of its fields, are not reported', (t) => {
  t.deepEqual(findUnenforced([ours('a', 'edge'), workerIn('b', 'others')], inForce), []);
  t.deepEqual(findUnenforced([workerIn('b', 'edge')], { ...inForce, leftOut: [] }), []);
});
