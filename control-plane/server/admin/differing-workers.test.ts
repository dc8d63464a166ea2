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

test('workers that differ are counted, those of the majority first, at one control plane or several', (t) => {
  const here = [workerOf('a', 'x'), workerOf('e', 'z', 'east')];
  const there = [...['b', 'c'].map((id) => workerOf(id, 'y')), workerOf('f', 'z', 'east')];
  t.deepEqual(differencesOf([...here, ...there, workerOf('d')]), [twoOfThree]);
  const all = [here, there].flatMap(countAgreements);
  t.deepEqual(findDisagreements(all), []);
  t.deepEqual(findDisagreements(joinAgreements(all)), [twoOfThree]);
  t.is(joinAgreements([...all, ...all])[0]?.agreements[1]?.workers, 2);
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

/** A worker of a node group that announces these fields. */
const readerOf = (id: string, group: string, fields?: string): WorkerJson => ({
  ...workerOf(id, undefined, group),
  metadata: fields === undefined ? {} : { [extensionsAnnouncement[0]]: fields },
});
const ours = (id: string, group: string) => readerOf(id, group, extensionsAnnouncement[1]);
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
  const workers = [ours('a', 'edge'), readerOf('b', 'edge'), readerOf('c', 'edge')];
  t.deepEqual(findUnenforced(workers, inForce), [
    {
      domain: 'shop',
      fields: ['algorithm', 'burst'],
      workers: 2,
      example: { id: 'b', address: 'b:5' },
    },
  ]);
});

test('an older Ratelane worker, which announces fewer fields, is reported only for those that it lacks', (t) => {
  const older = readerOf('old', 'edge', 'value_to_metric algorithm');
  const reports = findUnenforced([older, readerOf('b', 'edge')], inForce);
  t.deepEqual(
    reports.map(({ fields, workers, example }) => [example.id, workers, ...fields]),
    [
      ['old', 1, 'burst'],
      ['b', 1, 'algorithm', 'burst'],
    ],
  );
});

test('workers without the domain, and those that announce all of its fields, are not reported', (t) => {
  t.deepEqual(findUnenforced([ours('a', 'edge'), readerOf('b', 'others')], inForce), []);
  t.deepEqual(findUnenforced([readerOf('b', 'edge')], { ...inForce, leftOut: [] }), []);
});
