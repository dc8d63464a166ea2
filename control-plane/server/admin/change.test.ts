// Tests changes of all files at once, where some of them are unreadable: over a real socket, in a real directory and a
// real Git repository.
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type AdminApi, startAdminApi } from '../../../test/support/admin-api.ts';
import { createGitRepository } from '../../../test/support/git-repository.ts';
import { openGitStore } from '../../../test/support/git-store.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { pluck } from '../../../test/support/pluck.ts';
import { ruleText } from '../../../test/support/rules-folder.ts';
import type { ConfigStore } from '../store/store.ts';

type Files = Readonly<Record<string, string | Buffer | undefined>>;

interface Target {
  readonly store: ConfigStore;
  readonly ask: AdminApi['ask'];
  /** Changes files as another writer would; undefined deletes one. */
  put(files: Files): void;
  /** Replaces whatever is at the path with a dangling symbolic link. */
  link(path: string): void;
}

/** Changes wait for their turn for as long as it takes. */
const toOptions = () => ({ files: {}, clock: createManualClock(Date.now()) });

async function openDirectory(t: ExecutionContext): Promise<Target> {
  const { store, ask, rules } = await startAdminApi(t, toOptions());
  return {
    store,
    ask,
    put(files) {
      for (const [path, text] of Object.entries(files)) {
        if (text === undefined) rmSync(join(rules.path, path));
        else writeFileSync(join(rules.path, path), text);
      }
    },
    link: (path) => rules.relink(path, 'nowhere.yaml'),
  };
}

async function openGit(t: ExecutionContext): Promise<Target> {
  const repository = createGitRepository(t);
  const { store } = openGitStore(t, repository);
  const { ask } = await startAdminApi(t, { ...toOptions(), store });
  return {
    store,
    ask,
    put: (files) => repository.push(files),
    link(path) {
      const file = join(repository.folder, 'clone', path);
      repository.git('pull', '--quiet', '--rebase', 'origin', 'main');
      rmSync(file, { force: true });
      symlinkSync('nowhere.yaml', file);
      repository.git('add', '--all');
      repository.git('commit', '--quiet', '--message=link');
      repository.git('push', '--quiet', 'origin', 'main');
    },
  };
}

interface Reply {
  readonly status: number;
  readonly problems: readonly string[];
}

async function post({ ask }: Pick<Target, 'ask'>, path: string, json: object): Promise<Reply> {
  const { status, body } = await ask('POST', path, { json });
  const { problems = [] } = body as { problems?: { file: string; message: string }[] };
  return { status, problems: problems.map(({ file, message }) => `${file}: ${message}`) };
}

const rollBack = (target: Target, revision: string) => post(target, '/rollbacks', { revision });

async function read({ store }: Target) {
  const { files, problems } = await store.read();
  return {
    texts: Object.fromEntries(files.map(({ path, text }) => [path, text])),
    problems: problems.map(({ file, message }) => `${file}: ${message}`),
  };
}

const notText = Buffer.from('\xff', 'latin1');
const good = { 'a.yaml': ruleText('a', 1), 'b.yaml': ruleText('b', 1) };
const targets = [
  ['directory', openDirectory],
  ['git', openGit],
] as const;

for (const [name, open] of targets) {
  test(`${name}: a rollback replaces and deletes files that are unreadable now`, async (t) => {
    const target = await open(t);
    target.put(good);
    const { id } = await target.store.read();
    target.put({ 'b.yaml': notText, 'c.yaml': notText });
    target.link('d.yaml');
    t.is((await read(target)).problems.length, 3);
    t.deepEqual(await rollBack(target, id), { status: 201, problems: [] });
    t.deepEqual(await read(target), { texts: good, problems: [] });
  });

  test(`${name}: a rollback to a revision with unreadable files is refused, and loses no rules`, async (t) => {
    const target = await open(t);
    target.put({ ...good, 'b.yaml': notText });
    const { id } = await target.store.read();
    target.put(good);
    await target.store.read();
    const problems = ['b.yaml: the file is not UTF-8 text'];
    t.deepEqual(await rollBack(target, id), { status: 422, problems });
    t.deepEqual(await read(target), { texts: good, problems: [] });
  });

  test(`${name}: a push replaces and deletes unreadable files`, async (t) => {
    const target = await open(t);
    target.put({ ...good, 'b.yaml': notText, 'c.yaml': notText });
    const files = Object.entries(good).map(([path, text]) => ({ path, text }));
    t.deepEqual(await post(target, '/revisions', { files }), { status: 201, problems: [] });
    t.deepEqual(await read(target), { texts: good, problems: [] });
  });

  test(`${name}: an unreadable file remains an error of a change to another file`, async (t) => {
    const target = await open(t);
    target.put({ 'a.yaml': ruleText('a', 1), 'b.yaml': notText });
    const yaml = ruleText('c', 1);
    t.is((await post(target, '/domains', { yaml })).status, 201);
    const { texts, problems } = await read(target);
    t.deepEqual(texts, { 'a.yaml': ruleText('a', 1), 'c.yaml': yaml });
    t.deepEqual(problems, ['b.yaml: the file is not UTF-8 text']);
  });
}

for (const [name, open] of targets) {
  test(`${name}: simultaneous changes without conflicts all succeed`, async (t) => {
    t.timeout(300_000);
    const target = await open(t);
    target.put(good);
    const { id } = await target.store.read();
    const at = Array.from({ length: 10 }, (_, index) => index);
    const lifted = { domain: 'a', reason: 'a demo', for: '1h' };
    const created = at.map((each) =>
      each % 2 === 0
        ? post(target, '/domains', { yaml: ruleText(`new-${each}`, 1) })
        : post(target, '/lifts', { ...lifted, descriptors: [[{ key: 'k', value: `u${each}` }]] }),
    );
    const replaced = at.slice(0, 2).map(() =>
      post(target, '/revisions', {
        files: [{ path: 'a.yaml', text: ruleText('a', 2) }],
        expectedRevision: id,
      }),
    );
    const statuses = (await Promise.all(created)).map(({ status }) => status);
    t.deepEqual(
      statuses,
      at.map((each) => (each % 2 === 0 ? 201 : 200)),
    );
    t.deepEqual(pluck(await Promise.all(replaced), 'status'), [412, 412]);
    const { texts } = await read(target);
    t.is(Object.keys(texts).length, 7);
    t.is(texts['a.yaml']?.match(/unlimited/g)?.length, 5);
  });

  test(`${name}: a domain whose file is unreadable is neither created again nor deleted`, async (t) => {
    const target = await open(t);
    target.put({ 'shop.yaml': notText, 'other.yaml': ruleText('other', 1) });
    const { id } = await target.store.read();
    const asked: [string, string, Readonly<Record<string, string>>][] = [
      ['PUT', '/domains/shop', {}],
      ['PUT', '/domains/shop', { 'if-none-match': '*' }],
      ['PUT', '/domains/shop', { 'if-match': '*' }],
      ['DELETE', '/domains/shop', { 'if-match': '*' }],
      ['POST', '/domains', {}],
    ];
    for (const [method, path, headers] of asked) {
      const yaml = method === 'DELETE' ? undefined : ruleText('shop', 1);
      const { status, body } = await target.ask(method, path, { headers, ...(yaml && { yaml }) });
      t.is(status, 409, `${method} ${JSON.stringify(headers)}`);
      const reason = 'the file is not UTF-8 text';
      t.is(
        body.detail,
        `shop.yaml of the domain shop is not readable (${reason}): repair it where it lies, or push a revision`,
      );
    }
    t.is((await target.store.read()).id, id);
  });
}

test('git: a rollback replaces a symbolic link with a file', async (t) => {
  const target = await openGit(t);
  target.put(good);
  const { id } = await target.store.read();
  target.link('b.yaml');
  t.is((await read(target)).problems.length, 1);
  t.deepEqual(await rollBack(target, id), { status: 201, problems: [] });
  t.deepEqual(await read(target), { texts: good, problems: [] });
});

test('directory: a rollback does not write in the place of a symbolic link', async (t) => {
  const target = await openDirectory(t);
  target.put(good);
  const { id } = await target.store.read();
  target.link('b.yaml');
  const problems = ["b.yaml: 'b.yaml' is a symbolic link, which is not written through"];
  t.deepEqual(await rollBack(target, id), { status: 422, problems });
});

test('git: a change that meant to restore files is not mixed with files that reappear meanwhile', async (t) => {
  const repository = createGitRepository(t);
  const { store } = openGitStore(t, repository);
  const first = repository.push({ 'a.yaml': ruleText('a', 1), 'b.yaml': ruleText('b', 1) });
  const changed = { 'a.yaml': ruleText('a', 2), 'b.yaml': ruleText('b', 2) };
  repository.push(changed);
  let readsBefore = Number.POSITIVE_INFINITY;
  const readStore = store.read.bind(store);
  store.read = async () => {
    // Decided at the call: the initial read may still be running.
    const isNext = readsBefore-- === 0;
    const revision = await readStore();
    if (isNext) repository.push({ 'a.yaml': ruleText('a', 1), 'b.yaml': ruleText('b', 1) });
    return revision;
  };
  const { ask } = await startAdminApi(t, { ...toOptions(), store });
  readsBefore = 0;
  const files = Object.entries(changed).map(([path, text]) => ({ path, text }));
  const target = { store, ask, put: repository.push, link() {} };
  const body = { files, expectedRevision: first };
  t.is((await post(target, '/revisions', body)).status, 412);
  t.is((await post(target, '/revisions', body)).status, 201);
  t.deepEqual((await read(target)).texts, changed);
});

test('git: commits outside the folder do not prevent a change', async (t) => {
  const repository = createGitRepository(t);
  const { store } = openGitStore(t, repository, { folder: 'limits' });
  const first = repository.push({ 'limits/a.yaml': ruleText('a', 1) });
  const { ask } = await startAdminApi(t, { ...toOptions(), store });
  const target = { store, ask, put: repository.push, link() {} };
  repository.push({ 'README.md': 'not ours' });
  const pushed = (requests: number) =>
    post(target, '/revisions', {
      files: [{ path: 'a.yaml', text: ruleText('a', requests) }],
      expectedRevision: first,
    });
  t.is((await pushed(2)).status, 201);
  t.is((await pushed(3)).status, 412);
  t.is((await read(target)).texts['a.yaml'], ruleText('a', 2));
});
