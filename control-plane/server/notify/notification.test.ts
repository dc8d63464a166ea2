// Tests the notifications of a revision.
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { pluck } from '../../../test/support/pluck.ts';
import { revisionOf } from '../../../test/support/revision-store.ts';
import { createExamine } from '../admin/examination.ts';
import { Building } from '../snapshot/building.ts';
import { toNotification } from './notification.ts';

test('files are named relative to the root of their repository, where a bot finds them', async (t) => {
  const problems = [
    problemOf('error', 'other', 'shop.yaml', 'it is wrong'),
    problemOf('error', 'large-removal', '(all files)', 'held back'),
  ];
  const notification = await toNotification(
    {
      store: { readRevision: async () => revisionOf(1) },
      examine: async () => ({
        ruleSet: undefined,
        governed: undefined,
        documents: [],
        content: undefined,
        problems,
      }),
      repositoryFolder: 'rules/',
      publicUrl: undefined,
    },
    [{ revisions: [revisionOf(1).id], content: '', kind: 'invalid', atMs: 0, reason: '', by: '' }],
  );
  t.deepEqual(pluck(notification?.problems, 'file'), ['rules/shop.yaml', '(all files)']);
});

test('a domain that a node group no longer gets is among the changed ones', async (t) => {
  const building = new Building({
    options: { mergeDomains: false, maxResponseBytes: 1_000_000 },
    encode: loadProtos().rateLimitConfig.serialize,
    clock: systemClock,
  });
  const shop = { path: 'shop.yaml', text: 'domain: shop\ndescriptors: [{key: a}]\n' };
  const groups = { path: 'node-groups.yaml', text: 'groups: [{name: all, domains: []}]\n' };
  const revisions = [
    { ...revisionOf(2), files: [groups, shop] },
    { ...revisionOf(1), files: [shop] },
  ];
  const notification = await toNotification(
    {
      store: { readRevision: async (id) => revisions.find((each) => each.id === id) },
      examine: createExamine(building),
      repositoryFolder: '',
      publicUrl: undefined,
    },
    [2, 1].map((number) => ({
      ...{ revisions: [revisionOf(number).id], content: '', kind: 'in_force' as const },
      ...{ atMs: 0, reason: '', by: '' },
    })),
  );
  t.deepEqual(notification?.domains, ['shop']);
});
