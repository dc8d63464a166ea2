import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../../shared/rules/problem/problem-text.ts';
import { defaultBounds } from '../../../shared/rules-file.ts';
import { runInProcess } from '../../../test/support/command-run.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { pluck } from '../../../test/support/pluck.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createRulesFolder, type RulesFolder } from '../../../test/support/rules-folder.ts';
import { createDirectoryStore, type DirectoryStoreDeps } from './directory-store.ts';

function openStore(
  t: ExecutionContext,
  folder: RulesFolder,
  directory = 'rules',
  deps: Partial<DirectoryStoreDeps> = {},
) {
  const log = createRecordedLog();
  const store = createDirectoryStore({
    options: {
      directory: join(folder.path, directory),
      stateDirectory: join(folder.path, 'state'),
    },
    log,
    clock: systemClock,
    // Changes are noticed by events, not by polls.
    timing: { quiet: 10, patience: 50, poll: 3_600_000 },
    ...deps,
  });
  t.teardown(() => store.close());
  const seen: string[] = [];
  return {
    store,
    log,
    async follow(): Promise<void> {
      store.watch(({ files }) => seen.push(files.map((file) => file.text).join(' ')));
      await store.trigger();
    },
    becomes: (wanted: string) =>
      eventually(`'${wanted}' in ${JSON.stringify(seen)}`, () => seen.at(-1) === wanted),
  };
}

const unconditional = {
  expectedRevision: undefined,
  author: { name: 'Ann', email: '' },
  message: 'change',
};
const put = (path: string, text: string) => ({ put: [{ path, text }], delete: [] });

test('files that are written, replaced, added and removed are noticed', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': '1' });
  const { follow, becomes } = openStore(t, folder);
  await follow();
  await becomes('1');
  folder.write('rules/a.yaml', '2');
  await becomes('2');
  folder.replace('rules/a.yaml', '3');
  await becomes('3');
  folder.write('rules/new/deep/b.yaml', 'b');
  await becomes('3 b');
  folder.write('rules/new/deep/b.yaml', 'c');
  await becomes('3 c');
  rmSync(join(folder.path, 'rules/new'), { recursive: true });
  await becomes('3');
  t.pass();
});

test('a replaced link on the path to the directory is noticed', async (t) => {
  const folder = createRulesFolder(t, { 'v1/limits/a.yaml': '1', 'v2/limits/a.yaml': '2' });
  folder.relink('current', 'v1');
  folder.relink('alias', 'current');
  const { follow, becomes } = openStore(t, folder, 'alias/limits');
  await follow();
  await becomes('1');
  folder.relink('current', 'v2');
  await becomes('2');
  folder.write('v2/limits/a.yaml', '3');
  await becomes('3');
  folder.relink('alias', 'v1');
  await becomes('1');
  t.pass();
});

test('a mounted volume whose whole content is replaced is noticed', async (t) => {
  const folder = createRulesFolder(t, { 'rules/..1/a.yaml': '1' });
  folder.relink('rules/..data', '..1');
  folder.relink('rules/a.yaml', '..data/a.yaml');
  const { store, follow, becomes } = openStore(t, folder);
  await follow();
  await becomes('1');
  folder.write('rules/..2/a.yaml', '2');
  folder.relink('rules/..data', '..2');
  await becomes('2');
  const result = await store.write(put('a.yaml', '3'), unconditional);
  t.is(
    !result.ok && result.reason === 'refused' ? result.problems[0]?.message : '',
    "'a.yaml' is a symbolic link, which is not written through",
  );
});

test('a directory that is missing at first is noticed when it is created', async (t) => {
  const folder = createRulesFolder(t);
  const { store, log, follow, becomes } = openStore(t, folder, 'not/yet');
  await follow();
  t.regex(
    log.lines[0] ?? '',
    /^warning The store .*\/not\/yet cannot be read: the directory does not exist: create it, or correct --config-dir; no revision of it is known; next attempt in 1h0?m?0?s?/,
  );
  t.is(
    store.status().lastError,
    'the directory does not exist: create it, or correct --config-dir',
  );
  folder.write('not/yet/a.yaml', '1');
  await becomes('1');
});

test('nothing is written through a link to another folder', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': '1' });
  mkdirSync(join(folder.path, 'elsewhere'));
  symlinkSync('../elsewhere', join(folder.path, 'rules/link'));
  const { store } = openStore(t, folder);
  const result = await store.write(put('link/b.yaml', 'b'), unconditional);
  t.like(result, { ok: false, reason: 'refused' });
  t.deepEqual(readdirSync(join(folder.path, 'elsewhere')), []);
});

test('a write keeps the mode of a file and leaves nothing behind', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': '1' });
  chmodSync(join(folder.path, 'rules/a.yaml'), 0o640);
  const { store } = openStore(t, folder);
  const change = { put: ['a.yaml', 'b.yaml'].map((path) => ({ path, text: '2' })), delete: [] };
  t.true((await store.write(change, unconditional)).ok);
  t.is(statSync(join(folder.path, 'rules/a.yaml')).mode & 0o777, 0o640);
  t.is(statSync(join(folder.path, 'rules/b.yaml')).mode & 0o777, 0o644);
  t.deepEqual(readdirSync(join(folder.path, 'rules')), ['a.yaml', 'b.yaml']);
});

test('a file that replaces one without permissions can be read', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': '1' });
  chmodSync(join(folder.path, 'rules/a.yaml'), 0);
  const { store } = openStore(t, folder);
  t.true((await store.write(put('a.yaml', '2'), unconditional)).ok);
  t.is(statSync(join(folder.path, 'rules/a.yaml')).mode & 0o777, 0o400);
});

test('a dangling link is deleted, but a folder in the place of a file is not', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': '1' });
  folder.write('rules/deep/folder.yaml/b.yaml', '1');
  folder.relink('rules/link.yaml', 'nowhere.yaml');
  const bounds = { ...defaultBounds, depth: 1 };
  const { store } = openStore(t, folder, 'rules', { bounds });
  const before = await store.read();
  t.deepEqual(before.problems.map(({ file }) => file).sort(), ['deep/folder.yaml', 'link.yaml']);
  const remove = (...paths: string[]) => store.write({ put: [], delete: paths }, unconditional);
  const refused = await remove('link.yaml', 'deep/folder.yaml');
  t.is(
    !refused.ok && refused.reason === 'refused' ? formatProblems(refused.problems) : '',
    'deep/folder.yaml: error: it is a directory, which is not deleted',
  );
  t.is((await store.read()).id, before.id);
  const result = await remove('link.yaml');
  t.deepEqual(result.ok && result.revision.problems.map(({ file }) => file), ['deep/folder.yaml']);
});

test('a write that fails reports what was written', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': '1' });
  // A folder in the place of the file: no user can write there, not even root.
  mkdirSync(join(folder.path, 'rules/z.yaml'));
  const { store } = openStore(t, folder);
  const fail = async (...paths: string[]) => {
    const put = [...paths, 'z.yaml'].map((path) => ({ path, text: '2' }));
    const error = await t.throwsAsync(store.write({ put, delete: [] }, unconditional));
    return error?.message ?? '';
  };
  t.regex(await fail('a.yaml'), /\/rules cannot be written to: EISDIR.*; written so far: a\.yaml$/);
  t.deepEqual(readdirSync(join(folder.path, 'rules')), ['a.yaml', 'z.yaml']);
  const many = Array.from({ length: 25 }, (_, at) => `${at}.yaml`);
  t.true((await fail(...many)).endsWith(`: ${many.slice(0, 20).join(', ')} and 5 more files`));
});

test('equal content is the same revision, whatever its path and whatever other files there are', async (t) => {
  const [one, other] = [createRulesFolder(t), createRulesFolder(t)];
  one.write('rules/a.yaml', '1');
  other.write('rules/a.yaml', '1');
  other.write('rules/README', 'read me');
  const ids = [one, other].map(async (folder) => (await openStore(t, folder).store.read()).id);
  const [a, b] = await Promise.all(ids);
  t.is(a, b);
});

test('the last fifty revisions are kept in the history', async (t) => {
  const folder = createRulesFolder(t);
  const { store } = openStore(t, folder);
  const ids: string[] = [];
  for (let number = 0; number < 53; number++) {
    folder.write('rules/a.yaml', String(number));
    ids.push((await store.read()).id);
  }
  const history = await store.history(100);
  t.deepEqual(pluck(history, 'id'), ids.slice(3).reverse());
  t.is(await store.readRevision(ids[0] ?? ''), undefined);
  t.is((await store.readRevision(ids[3] ?? ''))?.files[0]?.text, '3');
  t.is(readdirSync(join(folder.path, 'state/directory-history')).length, 51);
});

test('a revision whose file is missing is dropped from the history, which continues', async (t) => {
  const folder = createRulesFolder(t);
  const { store, log } = openStore(t, folder);
  const ids: string[] = [];
  for (const text of ['1', '2', '3']) {
    folder.write('rules/a.yaml', text);
    ids.push((await store.read()).id);
    if (text !== '2') continue;
    rmSync(join(folder.path, 'state/directory-history', `${ids[0]}.revision.json`));
  }
  t.deepEqual(pluck(await store.history(5), 'id'), [ids[2], ids[1]]);
  t.deepEqual(log.lines, []);
});

test('no revision is removed while the index cannot be written', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': '1' });
  const { store, log } = openStore(t, folder);
  const { id } = await store.read();
  const history = join(folder.path, 'state/directory-history');
  rmSync(join(history, 'history.json'));
  // A folder in its place: no user can write there, not even root.
  mkdirSync(join(history, 'history.json'));
  folder.write('rules/a.yaml', '2');
  await store.read();
  t.true(existsSync(join(history, `${id}.revision.json`)));
  t.regex(log.lines.at(-1) ?? '', /cannot be stored for a rollback: EISDIR/);
});

test('an unreadable index of the history is logged once, and again after it was readable', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': '1' });
  const { store, log } = openStore(t, folder);
  await store.read();
  const index = join(folder.path, 'state/directory-history/history.json');
  const logged = () =>
    log.lines.filter((line) => line.includes('history.json cannot be read')).length;
  for (const times of [1, 2]) {
    rmSync(index, { force: true });
    mkdirSync(index);
    for (let poll = 0; poll < 3; poll++) await store.history(5);
    t.is(logged(), times);
    rmSync(index, { recursive: true });
    await store.history(5);
  }
});

test('damaged parts of a history are set aside, and a rollback to the others is still possible', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': '1' });
  const first = openStore(t, folder);
  const { id } = await first.store.read();
  const history = join(folder.path, 'state/directory-history');
  const file = join(history, `${id}.revision.json`);
  writeFileSync(file, readFileSync(file, 'utf8').replace('"text":"1"', '"text":"2"'));
  folder.write('rules/a.yaml', '3');
  await first.store.read();
  const second = await first.store.read();
  t.is(await first.store.readRevision(id), undefined);
  t.regex(
    first.log.lines.at(-1) ?? '',
    /is not a stored revision, or it was changed; it is kept as/,
  );
  t.true(existsSync(`${file}.unreadable`));
  for (const damaged of ['[{"id":"../../x","atMs":1},', '[{"id":"../../x","atMs":1}]']) {
    writeFileSync(join(history, 'history.json'), damaged);
    const known = await first.store.history(5);
    t.deepEqual(
      known.map((info) => info.id),
      [second.id],
    );
    t.is(readFileSync(join(history, 'history.json.unreadable'), 'utf8'), damaged);
  }
  t.deepEqual((await first.store.readRevision(second.id))?.files, second.files);
  folder.write('rules/a.yaml', '4');
  const newest = await first.store.read();
  t.deepEqual(
    (await first.store.history(5)).map((info) => info.id),
    [newest.id, second.id],
  );
});

// Proof of SECURITY.md: cannot read files by links
test('a link out of the directory is reported, and its target is in no revision', async (t) => {
  const folder = createRulesFolder(t);
  const secret = 'ann write a-secret-token-0001';
  folder.write('tokens', secret);
  folder.write('rules/.git/config', secret);
  folder.write('rules/a.yaml', '1');
  folder.write('rules/below/b.yaml', '2');
  symlinkSync('../tokens', join(folder.path, 'rules/link.yaml'));
  symlinkSync(join(folder.path, 'tokens'), join(folder.path, 'rules/below/link.yaml'));
  symlinkSync('.git/config', join(folder.path, 'rules/hidden.yaml'));
  symlinkSync('link.yaml', join(folder.path, 'rules/second.yaml'));
  symlinkSync('below/b.yaml', join(folder.path, 'rules/inside.yaml'));
  const { store } = openStore(t, folder);
  const revision = await store.read();
  t.false(JSON.stringify(revision).includes('secret'));
  t.deepEqual(pluck(revision.files, 'path'), ['a.yaml', 'below/b.yaml', 'inside.yaml']);
  t.deepEqual(
    revision.problems.filter(isError).map(({ file }) => file),
    ['below/link.yaml', 'hidden.yaml', 'link.yaml', 'second.yaml'],
  );
  for (const command of ['check', 'push']) {
    const { out, err } = await runInProcess([command, join(folder.path, 'rules')]);
    t.regex(out + err, /link\.yaml: error: it is a symbolic link that leads out of the directory/);
    t.false((out + err).includes('secret'));
  }
});
