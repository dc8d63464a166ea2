// The notifications of a revision to people outside.
import test from 'ava';
import { problemOf } from '../../shared/rules/problem/problem.ts';
import { revisionOf } from '../../test/support/revision-store.ts';
import { toNotification } from './notification.ts';

test('files are named from the root of their repository, where a bot finds them', async (t) => {
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
  t.deepEqual(
    notification?.problems.map(({ file }) => file),
    ['rules/shop.yaml', '(all files)'],
  );
});
