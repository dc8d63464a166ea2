// Tests behaviour that only Git can show: rewritten branches, tags, passwords, damaged copies. The store contract tests
// the rest.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import test from 'ava';
import type { AppError } from '../../../shared/errors.ts';
import { formatProblems } from '../../../shared/rules/problem/problem-text.ts';
import { defaultBounds } from '../../../shared/rules-file.ts';
import {
  createGitRepository,
  type GitRepository,
  gitEnvironment,
  serveOverHttp,
} from '../../../test/support/git-repository.ts';
import { openGitStore } from '../../../test/support/git-store.ts';
import { pluck } from '../../../test/support/pluck.ts';
import { applyChange } from './file-change.ts';
import { createCredentialReader } from './git-command.ts';
import type { GitStoreOptions } from './git-store.ts';
import type { Revision } from './revision.ts';

const textsOf = ({ files }: Revision) => files.map(({ path, text }) => `${path}=${text}`).join(' ');
const problemsOf = ({ problems }: Revision) => formatProblems(problems);
const unconditional = {
  expectedRevision: undefined,
  author: { name: 'Ann', email: '' },
  message: 'change',
};
const smallFiles = { ...defaultBounds, fileBytes: 1024 * 1024 };
const bytesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).reduce(
    (sum, name) => sum + statSync(join(folder, name)).size,
    0,
  );
const put = (path: string, text: string) => ({ put: [{ path, text }], delete: [] });

/** The environment of a git that first runs this command. */
function beforeGit({ folder }: GitRepository, command: string) {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const script = `#!/bin/sh\n${command}\nPATH="\${PATH#*:}" exec git "$@"\n`;
  writeFileSync(join(bin, 'git'), script, { mode: 0o755 });
  return { ...gitEnvironment, PATH: `${bin}:${gitEnvironment.PATH}` };
}

test('a branch whose history was rewritten is followed to its new state', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  const old = repository.push({ 'a.yaml': '2', 'b.yaml': '2' });
  const { store } = openGitStore(t, repository);
  await store.read();
  const rewritten = repository.rewrite({ 'a.yaml': '3' });
  const revision = await store.read();
  t.is(revision.id, rewritten);
  t.is(textsOf(revision), 'a.yaml=3');
  t.is((await store.history(10)).length, 1);
  // A rollback to a revision that is no longer in the history is still possible.
  const before = await store.readRevision(old);
  t.is(before && textsOf(before), 'a.yaml=2 b.yaml=2');
  const back = await store.write(put('a.yaml', '2'), {
    ...unconditional,
    expectedRevision: rewritten,
  });
  t.true(back.ok);
});

test('a branch that is reset to an earlier commit is followed, and a write does not undo the reset', async (t) => {
  const repository = createGitRepository(t);
  const first = repository.push({ 'a.yaml': '1' });
  repository.push({ 'a.yaml': '2' });
  const { store } = openGitStore(t, repository);
  const { id } = await store.read();
  repository.gitAtRemote('update-ref', 'refs/heads/main', first);
  const result = await store.write(put('b.yaml', 'b'), { ...unconditional, expectedRevision: id });
  t.like(result, { ok: false, reason: 'changed_since' });
  t.is(textsOf(await store.read()), 'a.yaml=1');
});

test('a deleted branch keeps its last revision, and is followed again once recreated', async (t) => {
  const repository = createGitRepository(t);
  const id = repository.push({ 'a.yaml': '1' });
  const { store } = openGitStore(t, repository, { ref: 'main' });
  await store.read();
  repository.gitAtRemote('update-ref', '-d', 'refs/heads/main');
  t.is((await store.read()).id, id);
  t.is(store.status().lastError, "the repository has no branch or tag 'main'");
  repository.gitAtRemote('update-ref', 'refs/heads/main', id);
  await store.trigger();
  t.true(store.status().reachable);
});

test('after a restart without the remote, the last revision of the mirror is returned', async (t) => {
  const repository = createGitRepository(t);
  const id = repository.push({ 'a.yaml': '1' });
  const first = openGitStore(t, repository);
  await first.store.read();
  await first.store.close();
  repository.hide();
  const { store } = openGitStore(t, repository);
  const revision = await store.read();
  t.is(revision.id, id);
  t.is(textsOf(revision), 'a.yaml=1');
  t.like(store.status(), { reachable: false, lastSuccessMs: undefined });
});

test('a moved tag is followed, and is not written to', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  repository.git('tag', '--annotate', '--message=one', 'live');
  repository.git('push', '--quiet', 'origin', 'live');
  const { store } = openGitStore(t, repository, { ref: 'live' });
  t.is(textsOf(await store.read()), 'a.yaml=1');
  const second = repository.push({ 'a.yaml': '2' });
  t.is(textsOf(await store.read()), 'a.yaml=1');
  repository.git('tag', '--force', '--annotate', '--message=two', 'live');
  repository.git('push', '--quiet', '--force', 'origin', 'live');
  t.like(await store.read(), { id: second });
  const error = await t.throwsAsync<AppError>(store.write(put('a.yaml', '3'), unconditional));
  t.is(error?.code, 'bad_request');
  t.is(error?.message, 'refs/tags/live is not a branch, so nothing is written to it');
});

test('a branch takes precedence over a tag of the same name', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': 'tagged' });
  repository.git('push', '--quiet', 'origin', 'HEAD:refs/tags/main');
  repository.push({ 'a.yaml': 'branch' });
  const { store } = openGitStore(t, repository, { ref: 'main' });
  t.is(textsOf(await store.read()), 'a.yaml=branch');
});

test('a branch that is created later replaces a tag of the same name', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': 'tagged' });
  repository.git('push', '--quiet', 'origin', 'HEAD:refs/tags/live');
  const { store } = openGitStore(t, repository, { ref: 'live' });
  t.is(textsOf(await store.read()), 'a.yaml=tagged');
  repository.push({ 'a.yaml': 'branch' });
  repository.git('push', '--quiet', 'origin', 'HEAD:refs/heads/live');
  t.is(textsOf(await store.read()), 'a.yaml=branch');
});

test('when the default branch changes, the new one is followed and written to, even while the old one exists', async (t) => {
  const repository = createGitRepository(t);
  const old = repository.push({ 'a.yaml': 'old' });
  const { store } = openGitStore(t, repository);
  t.is(textsOf(await store.read()), 'a.yaml=old');
  repository.git('push', '--quiet', 'origin', 'HEAD:refs/heads/next');
  repository.gitAtRemote('symbolic-ref', 'HEAD', 'refs/heads/next');
  // The commit is still the same, so only the branch's name decides where to write.
  const result = await store.write(put('a.yaml', 'next'), unconditional);
  t.true(result.ok);
  t.is(repository.gitAtRemote('rev-parse', 'main'), old);
  t.is(repository.gitAtRemote('show', 'next:a.yaml'), 'next');
  repository.push({ 'a.yaml': 'old again' });
  t.is(textsOf(await store.read()), 'a.yaml=next');
});

test('commits outside the folder are revisions with the same content', async (t) => {
  const repository = createGitRepository(t);
  const first = repository.push({ 'limits/a.yaml': '1', 'b.yaml': 'not ours' });
  const { store } = openGitStore(t, repository, { folder: 'limits' });
  await store.read();
  const beside = repository.push({ 'b.yaml': 'still not ours' });
  const revision = await store.read();
  t.is(revision.id, beside);
  t.is(textsOf(revision), 'a.yaml=1');
  t.deepEqual(pluck(await store.history(5), 'id'), [beside, first]);
  // The author of a change need not know about commits elsewhere.
  const result = await store.write(put('a.yaml', '2'), {
    ...unconditional,
    expectedRevision: first,
  });
  t.is(result.ok ? textsOf(result.revision) : '', 'a.yaml=2');
  t.is(repository.gitAtRemote('show', 'main:b.yaml'), 'still not ours');
});

test('a commit without the folder is an invalid revision, and a change can restore the folder', async (t) => {
  const repository = createGitRepository(t);
  const { store } = openGitStore(t, repository, { folder: 'limits' });
  t.regex(problemsOf(await store.read()), /the commit has no folder 'limits'/);
  repository.push({ 'limits/a.yaml': '1' });
  const good = await store.read();
  t.is(textsOf(good), 'a.yaml=1');
  const id = repository.push({ 'limits/a.yaml': undefined, 'rules/a.yaml': '1' });
  const renamed = await store.read();
  t.like(renamed, { id, files: [], author: good.author });
  t.regex(problemsOf(renamed), /\.: error: the commit has no folder 'limits'/);
  t.true(store.status().reachable, 'that is no outage');
  const change = put('a.yaml', '2');
  t.deepEqual(applyChange(renamed, change).problems, []);
  const back = await store.write(change, unconditional);
  t.is(back.ok ? textsOf(back.revision) : '', 'a.yaml=2');
});

test('an object in the place of the folder is reported, and the mirror is not recreated for it', async (t) => {
  const repository = createGitRepository(t, { 'rules/a.yaml': 'a' });
  const commit = repository.git('rev-parse', 'HEAD');
  const file = repository.git('rev-parse', 'HEAD:rules/a.yaml');
  repository.git('update-index', '--add', '--cacheinfo', `120000,${file},link`);
  repository.git('update-index', '--add', '--cacheinfo', `160000,${commit},module`);
  repository.git('commit', '--quiet', '--message=others');
  repository.git('push', '--quiet', 'origin', 'main');
  const others = [
    ['link', 'a symbolic link'],
    ['module', 'a submodule'],
    ['rules/a.yaml', 'a file'],
  ] as const;
  for (const [folder, what] of others) {
    const { store, log } = openGitStore(t, repository, { folder });
    const text = `the commit has ${what} at '${folder}', where --git-path needs a folder`;
    t.true(problemsOf(await store.read()).includes(text));
    t.deepEqual(
      log.lines.filter((line) => !line.startsWith('info ')),
      [],
    );
  }
});

test('links and submodules are reported, not followed', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': 'a' });
  const id = repository.git('rev-parse', 'HEAD');
  repository.git('update-index', '--add', '--cacheinfo', `160000,${id},module`);
  const target = repository.git('rev-parse', 'HEAD:a.yaml');
  repository.git('update-index', '--add', '--cacheinfo', `120000,${target},link.yaml`);
  repository.git('commit', '--quiet', '--message=links');
  repository.git('push', '--quiet', 'origin', 'main');
  const { store } = openGitStore(t, repository);
  const revision = await store.read();
  t.is(textsOf(revision), 'a.yaml=a');
  t.is(
    formatProblems(revision.problems),
    `link.yaml: error: a symbolic link is not followed in a Git repository
    hint: put the file itself in its place
module: warning: a submodule is not read; it is ignored [ignored-file]
    hint: rules in it would not be read: put them into this repository`,
  );
});

test('a damaged mirror is recreated', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  const { store, log } = openGitStore(t, repository);
  await store.read();
  const state = join(repository.folder, 'state');
  const mirror = join(state, readdirSync(state)[0] ?? '');
  rmSync(join(mirror, 'objects'), { recursive: true });
  repository.push({ 'a.yaml': '2' });
  t.is(textsOf(await store.read()), 'a.yaml=2');
  rmSync(join(mirror, 'refs'), { recursive: true });
  repository.push({ 'a.yaml': '3' });
  t.is(textsOf(await store.read()), 'a.yaml=3');
  writeFileSync(join(mirror, 'refs/ratelane/tip.lock'), '');
  repository.push({ 'a.yaml': '4' });
  t.is(textsOf(await store.read()), 'a.yaml=4');
  t.deepEqual(readdirSync(state).length, 1);
  t.deepEqual(
    log.lines.filter((line) => line.includes('cannot be read')),
    [],
  );
});

test('files that are too large are refused, and are not downloaded if the host can omit them', async (t) => {
  const repository = createGitRepository(t);
  repository.gitAtRemote('config', 'uploadpack.allowFilter', 'true');
  repository.push({ 'a.yaml': '1' });
  const { store, log } = openGitStore(t, repository, {}, { bounds: smallFiles });
  await store.read();
  const large = randomBytes(8 * 1024 * 1024);
  repository.push({ 'big.yaml': large, 'picture.png': large.subarray(1) });
  const state = join(repository.folder, 'state');
  const refused = await store.read();
  t.is(
    formatProblems(refused.problems.filter(({ severity }) => severity === 'error')),
    'big.yaml: error: more than the 1048576 bytes that a file may have',
  );
  t.is(textsOf(refused), 'a.yaml=1');
  t.true(bytesIn(state) < 1024 * 1024, `${bytesIn(state)}`);
  // The omission is known by now, and the copy is not mistaken for a damaged one again.
  const { length } = log.lines;
  repository.push({ 'b.yaml': '2' });
  t.is(textsOf(await store.read()), 'a.yaml=1 b.yaml=2');
  t.is(log.lines.length, length);
  t.true((await store.write(put('c.yaml', '3'), unconditional)).ok);
  repository.push({ 'big.yaml': undefined });
  const mended = await store.read();
  t.is(textsOf(mended), 'a.yaml=1 b.yaml=2 c.yaml=3');
  t.is(repository.gitAtRemote('cat-file', '-s', 'main:picture.png'), `${large.length - 1}`);
  // After a restart, an earlier revision is still refused for this file.
  const again = openGitStore(t, repository, {}, { bounds: smallFiles });
  await again.store.read();
  t.is((await again.store.history(10)).length, 6);
  const reread = await again.store.readRevision(refused.id);
  t.deepEqual(reread?.problems, refused.problems);
  t.true(bytesIn(state) < 1024 * 1024, `${bytesIn(state)}`);
});

for (const [host, key, value] of [
  ['sends everything', 'uploadpack.allowFilter', 'false'],
  ['refuses such a fetch', 'uploadpackfilter.blob:limit.allow', 'false'],
] as const) {
  test(`files that are too large are refused, and reported to stay, where the host ${host}`, async (t) => {
    const repository = createGitRepository(t);
    repository.gitAtRemote('config', 'uploadpack.allowFilter', 'true');
    repository.gitAtRemote('config', key, value);
    repository.push({ 'big.yaml': randomBytes(2 * 1024 * 1024), 'a.yaml': '1' });
    const { store, log } = openGitStore(t, repository, {}, { bounds: smallFiles });
    const refused = await store.read();
    t.is(textsOf(refused), 'a.yaml=1');
    t.is(
      formatProblems(refused.problems),
      'big.yaml: error: 2097152 bytes, more than the 1048576 that a file may have',
    );
    repository.push({ 'big.yaml': undefined });
    t.deepEqual((await store.read()).problems, []);
    const state = join(repository.folder, 'state');
    const copy = join(state, readdirSync(state)[0] ?? '');
    t.deepEqual(log.lines, [
      `info The host of ${repository.url} cannot omit large files from a fetch (uploadpack.allowFilter): a file of more than 1048576 bytes is refused, and stays in the copy, ${copy}`,
    ]);
  });
}

test('a host that no longer omits files is followed', async (t) => {
  const repository = createGitRepository(t);
  repository.gitAtRemote('config', 'uploadpack.allowFilter', 'true');
  repository.push({ 'big.yaml': randomBytes(2 * 1024 * 1024), 'a.yaml': '1' });
  const { store } = openGitStore(t, repository, {}, { bounds: smallFiles });
  await store.read();
  repository.gitAtRemote('config', 'uploadpackfilter.blob:limit.allow', 'false');
  repository.push({ 'a.yaml': '2' });
  t.is(textsOf(await store.read()), 'a.yaml=2');
  repository.push({ 'big.yaml': '3' });
  t.is(textsOf(await store.read()), 'a.yaml=2 big.yaml=3');
});

test('a file that is missing in a damaged copy is fetched, and is not mistaken for one that is too large', async (t) => {
  const repository = createGitRepository(t);
  repository.gitAtRemote('config', 'uploadpack.allowFilter', 'true');
  repository.push({ 'a.yaml': '1' });
  await openGitStore(t, repository).store.read();
  const state = join(repository.folder, 'state');
  const copy = join(state, readdirSync(state)[0] ?? '');
  const packs = join(copy, 'objects/pack');
  const name = readdirSync(packs).find((each) => each.endsWith('.pack')) ?? '';
  const pack = readFileSync(join(packs, name));
  rmSync(packs, { recursive: true });
  const inCopy = { env: { ...gitEnvironment, GIT_DIR: copy }, input: pack };
  execFileSync('git', ['unpack-objects', '-q'], inCopy);
  const blob = repository.git('rev-parse', 'HEAD:a.yaml');
  rmSync(join(copy, 'objects', blob.slice(0, 2), blob.slice(2)));

  const { store, log } = openGitStore(t, repository);
  const revision = await store.read();
  t.is(textsOf(revision), 'a.yaml=1');
  t.deepEqual(revision.problems, []);
  t.deepEqual(log.lines, [
    `warning The copy of ${store.description} is fetched again, since a file is too large or the copy is damaged: a.yaml (object ${blob}) is not in it`,
  ]);
});

test('the new mirror of a killed process is removed, that of a running one is not', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  const first = openGitStore(t, repository);
  await first.store.read();
  await first.store.close();
  const state = join(repository.folder, 'state');
  const [mirror = ''] = readdirSync(state);
  const [left, young] = [`${mirror}.fresh-left`, `${mirror}.fresh-young`];
  mkdirSync(join(state, left, 'objects'), { recursive: true });
  mkdirSync(join(state, young));
  const yesterday = Date.now() / 1000 - 86_400;
  utimesSync(join(state, left), yesterday, yesterday);
  t.is(textsOf(await openGitStore(t, repository).store.read()), 'a.yaml=1');
  t.deepEqual(readdirSync(state).sort(), [mirror, young].sort());
});

test('a commit has its author, and the control plane as committer', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  const { store } = openGitStore(t, repository);
  await store.write(put('a.yaml', '2'), {
    expectedRevision: undefined,
    author: { name: 'Bo <bo>\n', email: 'bo@example.test>' },
    message: '  two\n\nlines\0 ',
  });
  t.is(
    repository.gitAtRemote('log', '-1', '--format=%an|%ae|%cn|%ce|%B', 'main'),
    'Bo bo|bo@example.test|Ratelane|ratelane@example.test|two\n\nlines',
  );
  await store.write(put('a.yaml', '3'), {
    expectedRevision: undefined,
    author: { name: '', email: '' },
    message: '',
  });
  t.is(
    repository.gitAtRemote('log', '-1', '--format=%an|%B', 'main'),
    'Ratelane|Change the configuration',
  );
  await store.write(put('a.yaml', '4'), {
    expectedRevision: undefined,
    author: { name: 'pipeline', email: '' },
    message: 'four',
  });
  t.is(repository.gitAtRemote('log', '-1', '--format=%an|%ae', 'main'), 'pipeline|');
  t.is((await store.history(1))[0]?.author, 'pipeline');
  t.is(repository.gitAtRemote('fsck', '--strict'), '');
});

test("a push that the remote forbids fails with the remote's message", async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  writeFileSync(
    join(repository.path, 'hooks/pre-receive'),
    '#!/bin/sh\necho main is protected >&2\nexit 1\n',
    { mode: 0o755 },
  );
  const { store } = openGitStore(t, repository);
  const error = await t.throwsAsync<AppError>(store.write(put('a.yaml', '2'), unconditional));
  t.is(error?.code, 'store');
  t.regex(error?.message ?? '', /main is protected/);
  t.is(textsOf(await store.read()), 'a.yaml=1');
});

test('a password reaches the remote, but no log, error, argument or file', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  const access = { username: 'ann', password: 'correct horse' };
  const url = await serveOverHttp(t, repository, access);
  const passwordFile = join(repository.folder, 'password');
  writeFileSync(passwordFile, 'wrong pony\n');
  // A wrapper around git that records its arguments.
  const args = join(repository.folder, 'arguments');
  const environment = beforeGit(repository, `echo "$@" >> ${args}`);
  const readCredentials = createCredentialReader({ username: 'ann', password: '', passwordFile });
  writeFileSync(passwordFile, '\n');
  await t.throwsAsync(readCredentials(), {
    message: `${passwordFile} has no password: it is empty`,
  });
  writeFileSync(passwordFile, 'wrong pony\n');
  const { store, log } = openGitStore(t, repository, { url }, { readCredentials, environment });
  store.watch(() => {});
  const refused = await t.throwsAsync(store.read());
  t.regex(refused?.message ?? '', /Authentication failed/);
  // A new password is picked up without a restart.
  writeFileSync(passwordFile, 'correct horse\n');
  t.is(textsOf(await store.read()), 'a.yaml=1');
  const written = await store.write(put('a.yaml', '2'), unconditional);
  t.true(written.ok);
  access.password = 'changed by others';
  await store.trigger();
  const texts = [refused?.message, refused?.stack, store.description, store.status().lastError];
  const state = join(repository.folder, 'state');
  const config = readFileSync(join(state, readdirSync(state)[0] ?? '', 'config'), 'utf8');
  const usedArguments = readFileSync(args, 'utf8');
  t.regex(usedArguments, /^push .*http/m);
  for (const text of [...texts, ...log.lines, config, usedArguments])
    t.notRegex(text ?? '', /pony|horse/);
});

test('a password in the URL is used, and never shown', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  const access = { username: 'git', password: 'to%ken/@1' };
  const url = await serveOverHttp(t, repository, access);
  const withToken = url.replace('//', `//${encodeURIComponent(access.password)}@`);
  const { store } = openGitStore(t, repository, { url: withToken });
  t.is(textsOf(await store.read()), 'a.yaml=1');
  t.is(store.description, `${url} (its default branch)`);
});

test('without a password, git does not prompt', async (t) => {
  const repository = createGitRepository(t);
  const url = await serveOverHttp(t, repository, { username: 'ann', password: 'x' });
  const { store } = openGitStore(t, repository, { url });
  const error = await t.throwsAsync(store.read());
  t.regex(error?.message ?? '', /could not read Username .* terminal prompts disabled/);
});

test('waiting for a remote that does not answer ends in time', async (t) => {
  const repository = createGitRepository(t);
  const url = await serveOverHttp(t, repository, 'slow');
  const { store } = openGitStore(t, repository, { url, timeoutMs: 300 });
  const error = await t.throwsAsync(store.read());
  t.is(error?.message, 'git ls-remote did not answer within 0.3s');
});

test("of a large repository, only the history and the folder's files are copied, and an interrupted copy is completed", async (t) => {
  const repository = createGitRepository(t);
  repository.gitAtRemote('config', 'uploadpack.allowFilter', 'true');
  const folder = 'teams/limits';
  const first = repository.push({ [`${folder}/a.yaml`]: '1', 'big.bin': randomBytes(500_000) });
  repository.push({ [`${folder}/a.yaml`]: '2', 'big.bin': randomBytes(500_000) });
  // A wrapper around git that is interrupted while the files are fetched.
  const isSecond = 'test "$1" = fetch && test -e "$GIT_DIR/refs/ratelane/incomplete"';
  const environment = beforeGit(repository, `${isSecond} && sleep 30`);
  const cut = openGitStore(t, repository, { folder, fetchTimeoutMs: 3_000 }, { environment });
  await t.throwsAsync(cut.store.read(), { message: /within 3s \(--git-fetch-timeout\)$/ });
  await cut.store.close();
  const state = join(repository.folder, 'state');
  const storedBytes = bytesIn(state);
  const { store } = openGitStore(t, repository, { folder });
  const { id, ...revision } = await store.read();
  t.is(textsOf({ id, ...revision }), 'a.yaml=2');
  const before = await store.readRevision(first);
  t.is(before && textsOf(before), 'a.yaml=1');
  t.true(bytesIn(state) < 200_000, `${storedBytes}, then ${bytesIn(state)} bytes`);
  const written = await store.write(put('b.yaml', 'b'), { ...unconditional, expectedRevision: id });
  t.true(written.ok);
  repository.push({ [`${folder}/a.yaml`]: '3' });
  t.is(textsOf(await store.read()), 'a.yaml=3 b.yaml=b');
  t.is(repository.gitAtRemote('ls-tree', '--name-only', 'main').includes('big.bin'), true);
});

test('a fetch has its own deadline, and leaves nothing behind when it is ended', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  // A wrapper around git whose fetches never end.
  const begin = 'touch "$GIT_DIR/objects/pack/tmp_pack_x" "$GIT_DIR/objects/tmp_obj_x"; sleep 30';
  const environment = beforeGit(repository, `test "$1" = fetch && { ${begin}; }`);
  const { store } = openGitStore(t, repository, { fetchTimeoutMs: 1_000 }, { environment });
  const error = await t.throwsAsync(store.read());
  t.is(error?.message, 'git fetch did not answer within 1s (--git-fetch-timeout)');
  const state = join(repository.folder, 'state');
  const objects = join(state, readdirSync(state)[0] ?? '', 'objects');
  const partial = () =>
    readdirSync(objects, { recursive: true }).filter((name) => name.toString().includes('tmp'));
  t.deepEqual(partial(), []);
  await store.close();

  // A file that a killed process could not remove.
  writeFileSync(join(objects, 'pack/tmp_pack_y'), '');
  const restarted = openGitStore(t, repository);
  t.is(textsOf(await restarted.store.read()), 'a.yaml=1');
  t.deepEqual(partial(), []);
});

test('closing ends running operations', async (t) => {
  const repository = createGitRepository(t);
  const url = await serveOverHttp(t, repository, 'slow');
  const { store } = openGitStore(t, repository, { url });
  const read = t.throwsAsync(store.read());
  await new Promise((resolve) => setImmediate(resolve));
  await store.close();
  t.regex((await read)?.message ?? '', /was (?:closed|stopped)$/, 'and its time was not over');
});

test('a relative path is resolved from the working directory', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  const url = `./${relative(process.cwd(), repository.path)}`;
  const { store } = openGitStore(t, repository, { url });
  t.is(textsOf(await store.read()), 'a.yaml=1');
  t.is(store.description, `${repository.path} (its default branch)`);
});

test('impossible options stop the start', (t) => {
  const repository = createGitRepository(t);
  const refusals: [Partial<GitStoreOptions>, string][] = [
    [
      { url: 'ext::sh -c id' },
      "The Git repository's URL cannot be used: it has a space or a character that cannot be seen",
    ],
    [
      { ref: '--upload-pack=x' },
      "'--upload-pack=x' cannot be a Git branch or tag: a name cannot begin with '-'",
    ],
    [
      { folder: '../x' },
      "'../x' cannot be a folder of a Git repository: no part of it can be empty, '.' or '..'",
    ],
  ];
  for (const [options, message] of refusals)
    t.throws(() => openGitStore(t, repository, options), { message, code: 'cannot_start' });
});

test('with a local path too, an unknown revision is reported as unknown without contacting the remote', async (t) => {
  const repository = createGitRepository(t);
  repository.git('-C', repository.path, 'config', 'uploadpack.allowFilter', 'true');
  repository.push({ 'a.yaml': '1' });
  for (const url of [repository.path, repository.url]) {
    const { store } = openGitStore(t, repository, { url });
    await store.read();
    repository.hide();
    t.is(await store.readRevision('f'.repeat(40)), undefined);
    t.is(await store.locate('f'.repeat(40), 'f'.repeat(40)), undefined);
    repository.show();
  }
});

test('however many questions are asked, the store waits for none and reads its history once for all', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': '1' });
  const [go, logs] = ['go', 'logs'].map((name) => join(repository.folder, name)) as [
    string,
    string,
  ];
  const wait = `[ "$1" = merge-base ] && while [ ! -e ${go} ]; do sleep 0.05; done`;
  const note = `case "$*" in *"-n 200"*) echo >> ${logs};; esac`;
  const environment = beforeGit(repository, `${wait}\n${note}`);
  const { store } = openGitStore(t, repository, {}, { environment });
  const { id } = await store.read();
  const questions = Array.from({ length: 20 }, () => store.locate(id, id));
  repository.push({ 'a.yaml': '2' });
  t.is(textsOf(await store.read()), 'a.yaml=2');
  writeFileSync(go, '');
  t.true((await Promise.all(questions)).every((found) => found?.isIncluded));
  const histories = await Promise.all([200, 21, 200].map((limit) => store.history(limit)));
  t.deepEqual(pluck(histories, 'length'), [3, 3, 3]);
  t.is(readFileSync(logs, 'utf8'), '\n');
});

test('an entry that is not a regular file is reported by its name', async (t) => {
  const repository = createGitRepository(t);
  const lfs = 'version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 120\n';
  repository.push({
    'lfs.yaml': lfs,
    'annex.yaml': '/annex/objects/SHA256E-s1--0123.yaml\n',
    'crypt.yaml': '\0GITCRYPT\0\u0001',
  });
  const { store } = openGitStore(t, repository);
  t.deepEqual(
    (await store.read()).problems.map(({ file, message }) => `${file}: ${message}`),
    [
      'annex.yaml: it is a pointer of git-annex, not the file itself',
      'crypt.yaml: it is encrypted by git-crypt, not the file itself',
      'lfs.yaml: it is a pointer of Git LFS, not the file itself',
    ],
  );
});
