// Git treats a requested name as a pattern, which also matches longer names that end with it; those may be listed
// first.

import test from 'ava';
import { createGitRepository, gitEnvironment } from '../../../test/support/git-repository.ts';
import { openGitStore, toGitStoreOptions } from '../../../test/support/git-store.ts';
import { createGitSharedText } from './git-shared-text.ts';

test("the text of a ref is read and replaced despite a branch whose name ends with the ref's name", async (t) => {
  const repository = createGitRepository(t);
  const shared = createGitSharedText(
    { options: toGitStoreOptions(repository, { ref: 'main' }), environment: gitEnvironment },
    'text',
  );
  t.teardown(shared.close);
  const [ref = ''] = shared.description.split(' of ');
  repository.gitAtRemote('update-ref', `refs/heads/${ref}`, 'refs/heads/main');
  t.is(await shared.read(), undefined);

  const first = await shared.swap(undefined, 'first');
  t.is(first.kind, 'written');
  const version = first.kind === 'written' ? first.version : undefined;
  t.deepEqual(await shared.read(), { version, text: 'first' });
  t.is((await shared.swap(version, 'second')).kind, 'written');
  t.is((await shared.read())?.text, 'second');
});

test('a branch is followed and written despite a branch whose name ends with its name', async (t) => {
  const repository = createGitRepository(t);
  const other = repository.push({ 'a.yaml': 'domain: other\n' });
  repository.gitAtRemote('update-ref', 'refs/heads/refs/heads/main', other);
  const newest = repository.push({ 'a.yaml': 'domain: a\n' });
  const { store } = openGitStore(t, repository, { ref: 'main' });
  t.is((await store.read()).id, newest);
  const written = await store.write(
    { put: [{ path: 'b.yaml', text: 'domain: b\n' }], delete: [] },
    {
      expectedRevision: newest,
      author: { name: 'Ann', email: 'ann@example.test' },
      message: 'a second domain',
    },
  );
  t.true(written.ok);
  const id = written.ok ? written.revision.id : '';
  t.is(repository.gitAtRemote('rev-parse', 'refs/heads/main').trim(), id);
  t.is(repository.gitAtRemote('rev-parse', 'refs/heads/refs/heads/main').trim(), other);
});
