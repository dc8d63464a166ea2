import test from 'ava';
import { extensionsAnnouncement } from '../../../shared/rules/wire/resource-fields.ts';
import type { WorkerJson } from './fleet-json.ts';
import { findUnenforced } from './unenforced-report.ts';

const workerOf = (id: string, group: string, metadata: object = {}) =>
  ({ id, group, metadata, address: '10.0.0.1:5' }) as WorkerJson;
const ours = (id: string, group: string) =>
  workerOf(id, group, Object.fromEntries([extensionsAnnouncement]));
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
  const workers = [ours('a', 'edge'), workerOf('b', 'edge'), workerOf('c', 'edge')];
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
  const older = workerOf('old', 'edge', { 'ratelane.fields': 'value_to_metric algorithm' });
  const reports = findUnenforced([older, workerOf('b', 'edge')], inForce);
  t.deepEqual(
    reports.map(({ fields, workers, example }) => [example.id, workers, ...fields]),
    [
      ['old', 1, 'burst'],
      ['b', 1, 'algorithm', 'burst'],
    ],
  );
});

test('workers without the domain, and those that announce all of its fields, are not reported', (t) => {
  t.deepEqual(findUnenforced([ours('a', 'edge'), workerOf('b', 'others')], inForce), []);
  t.deepEqual(findUnenforced([workerOf('b', 'edge')], { ...inForce, leftOut: [] }), []);
});
