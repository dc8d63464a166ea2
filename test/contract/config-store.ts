// What every configuration store must do, as one suite: each implementation runs it from its own test file. Behaviour
// of a single implementation is tested next to it.
import type { ExecutionContext, TestFn } from 'ava';
import type { Revision } from '../../control-plane/server/store/revision.ts';
import type { ConfigStore, WriteOptions } from '../../control-plane/server/store/store.ts';
import type { AppError } from '../../shared/errors.ts';
import { formatProblem, formatProblems } from '../../shared/rules/problem/problem-text.ts';
import type { Bounds } from '../../shared/rules-file.ts';
import { eventually } from '../support/eventually.ts';
import { pluck } from '../support/pluck.ts';
import type { RecordedLog } from '../support/recorded-log.ts';

/** A place with configuration, and the ways in which others change it. */
export interface StoreTarget {
  /** Another store on this place, as another control plane would open it, with its own state unless `state` names one.
   * Closed after the test. */
  open(options?: { readonly bounds?: Bounds; readonly state?: string }): OpenedStore;
  /** Changes by others: texts by path, undefined deletes. */
  put(files: Readonly<Record<string, string | Buffer | undefined>>): Promise<void>;
  hide(): void;
  show(): void;
}

export interface OpenedStore {
  readonly store: ConfigStore;
  readonly log: RecordedLog;
}

export interface ConfigStoreSuite {
  /** The prefix of the titles. */
  readonly name: string;
  /** How many control planes may write to a place concurrently. */
  readonly writers: 1 | 2;
  /** An empty place. */
  prepare(t: ExecutionContext): Promise<StoreTarget>;
}

const ann = { name: 'Ann', email: 'ann@example.test' };
const unconditional: WriteOptions = { expectedRevision: undefined, author: ann, message: 'change' };

const pathsOf = (revision: Revision) => revision.files.map(({ path }) => path);
const textsOf = (revision: Revision | undefined) =>
  Object.fromEntries(revision?.files.map(({ path, text }) => [path, text]) ?? []);

export function testConfigStore(test: TestFn, suite: ConfigStoreSuite): void {
  const check = (title: string, run: (t: ExecutionContext, target: StoreTarget) => Promise<void>) =>
    test(`${suite.name}: ${title}`, async (t) => {
      await run(t, await suite.prepare(t));
    });

  /** Two stores, or one that is used twice. */
  const openWriters = (target: StoreTarget) => {
    const { store } = target.open();
    return [store, suite.writers === 2 ? target.open().store : store];
  };

  check('a revision has the files of all folders, ordered by path', async (t, target) => {
    await target.put({ 'b.yaml': 'b', 'a/z.yml': 'z', 'a.yaml': 'ä\n', 'a/b/c.yaml': '' });
    const revision = await target.open().store.read();
    t.deepEqual(pathsOf(revision), ['a.yaml', 'a/b/c.yaml', 'a/z.yml', 'b.yaml']);
    t.deepEqual(textsOf(revision)['a.yaml'], 'ä\n');
    t.deepEqual(revision.problems, []);
    t.regex(revision.id, /^[0-9a-f]{40}$/);
    t.true(Math.abs(revision.atMs - Date.now()) < 120_000);
  });

  check('two stores on one place agree on the revision', async (t, target) => {
    await target.put({ 'a.yaml': 'a' });
    const [one, other] = [target.open(), target.open()];
    t.is((await one.store.read()).id, (await other.store.read()).id);
  });

  check('hidden files are skipped, other files get a warning', async (t, target) => {
    await target.put({ '.ci/x.yaml': 'x', '.y.yaml': 'y', 'a.yaml': 'a', 'docs/README.md': '#' });
    const revision = await target.open().store.read();
    t.deepEqual(pathsOf(revision), ['a.yaml']);
    t.is(
      formatProblems(revision.problems),
      `docs/README.md: warning: only files named *.yaml and *.yml are read; it is ignored [ignored-file]
    hint: rename it if it holds rules, else move it elsewhere`,
    );
  });

  check('of very many ignored files the first forty are named', async (t, target) => {
    const other = Array.from({ length: 60 }, (_, at) => [`f${1_000 + at}.md`, '#']);
    await target.put({ ...Object.fromEntries(other), 'a.yaml': 'a' });
    const revision = await target.open().store.read();
    t.deepEqual(pathsOf(revision), ['a.yaml']);
    const named = revision.problems.map(({ file }) => file);
    t.deepEqual([named.length, named[0], named[39], named[40]], [41, 'f1000.md', 'f1039.md', '.']);
    t.is(revision.problems.at(-1)?.message, '20 more warnings like those before');
  });

  check('a file that is not text, or too large, is an error of the revision', async (t, target) => {
    await target.put({
      'a.yaml': Buffer.from('a: b\nc: \xff', 'latin1'),
      'b.yaml': 'b'.repeat(101),
    });
    const bounds = { fileBytes: 100, totalBytes: 1000, files: 10, entries: 100, depth: 5 };
    const revision = await target.open({ bounds }).store.read();
    t.deepEqual(pathsOf(revision), []);
    t.deepEqual(revision.problems.map((problem) => formatProblem(problem).split('\n')[0]).sort(), [
      'a.yaml:2:4: error: the file is not UTF-8 text',
      'b.yaml: error: 101 bytes, more than the 100 that a file may have',
    ]);
  });

  check('too many files are not read at all', async (t, target) => {
    await target.put({ 'a.yaml': 'a', 'b.yaml': 'b', 'c.yaml': 'c' });
    const bounds = { fileBytes: 100, totalBytes: 1000, files: 2, entries: 100, depth: 5 };
    const revision = await target.open({ bounds }).store.read();
    t.deepEqual(pathsOf(revision), []);
    t.is(
      formatProblems(revision.problems),
      `.: error: more than 2 files; nothing is read
    hint: keep nothing but rules files in this directory`,
    );
  });

  check('a watcher gets the newest revision, then each that differs', async (t, target) => {
    await target.put({ 'a.yaml': '1' });
    const { store } = target.open();
    const seen: Revision[] = [];
    const stop = store.watch((revision) => seen.push(revision));
    await eventually('the first revision', () => seen.length === 1);
    await target.put({ 'a.yaml': '2' });
    await eventually('the second revision', () => seen.length === 2);
    await store.trigger();
    await store.read();
    t.deepEqual(
      seen.map((revision) => textsOf(revision)['a.yaml']),
      ['1', '2'],
    );
    stop();
    stop();
    await target.put({ 'a.yaml': '3' });
    await store.trigger();
    t.is(seen.length, 2);
  });

  check('a later watcher gets the newest revision too', async (t, target) => {
    await target.put({ 'a.yaml': '1' });
    const { store } = target.open();
    const { id } = await store.read();
    const seen: string[] = [];
    store.watch((revision) => seen.push(revision.id));
    await eventually('the revision', () => seen.length > 0);
    t.deepEqual(seen, [id]);
  });

  check('a trigger notifies watchers before it resolves', async (t, target) => {
    await target.put({ 'a.yaml': '1' });
    const { store } = target.open();
    const seen: unknown[] = [];
    store.watch((revision) => seen.push(textsOf(revision)['a.yaml']));
    await store.trigger();
    await target.put({ 'a.yaml': '2' });
    await store.trigger();
    t.is(seen.at(-1), '2');
  });

  check('a write puts and deletes, and everyone sees it', async (t, target) => {
    await target.put({ 'a.yaml': 'a', 'b.yaml': 'b' });
    const [one, other] = [target.open(), target.open()];
    const before = await one.store.read();
    const result = await one.store.write(
      { put: [{ path: 'new/c.yaml', text: 'c' }], delete: ['a.yaml'] },
      { expectedRevision: before.id, author: ann, message: 'c instead of a\n\nSince so.' },
    );
    t.true(result.ok);
    if (!result.ok) return;
    t.deepEqual(textsOf(result.revision), { 'b.yaml': 'b', 'new/c.yaml': 'c' });
    t.not(result.revision.id, before.id);
    const seen = await other.store.read();
    t.is(seen.id, result.revision.id);
    t.deepEqual(textsOf(seen), { 'b.yaml': 'b', 'new/c.yaml': 'c' });
    const [newest, earlier] = await one.store.history(10);
    t.is(newest?.id, result.revision.id);
    t.like(newest, { author: 'Ann <ann@example.test>', message: 'c instead of a\n\nSince so.' });
    t.is(earlier?.id, before.id);
    t.deepEqual(await one.store.history(1), [newest]);
  });

  check('the author and the reason of a change are known to all followers', async (t, target) => {
    await target.put({ 'a.yaml': 'a', 'b.yaml': Buffer.from('\xff', 'latin1'), 'c.yaml': 'c' });
    const [one, other] = openWriters(target) as [ConfigStore, ConfigStore];
    const notified: (string | undefined)[] = [];
    other.watch(({ message }) => notified.push(message));
    await other.trigger();
    const message = 'close the shop\n\nAllow-Removal: yes\nRollout: now';
    const result = await one.write(
      // A byte order mark is not part of the text that is read.
      { put: ['a.yaml', 'b.yaml'].map((path) => ({ path, text: '\ufeffb' })), delete: ['c.yaml'] },
      { expectedRevision: undefined, author: ann, message },
    );
    t.true(result.ok);
    if (!result.ok) return;
    const { id, atMs } = result.revision;
    const wanted = { id, atMs, author: 'Ann <ann@example.test>', message };
    await other.trigger();
    t.is(notified.at(-1), message);
    t.like((await other.history(1))[0], wanted);
    t.like(await other.readRevision(id), wanted);
    if (suite.writers === 2) t.like(await target.open().store.read(), wanted);
  });

  check('watchers are notified of a write of their own store', async (t, target) => {
    await target.put({ 'a.yaml': 'a' });
    const { store } = target.open();
    const seen: string[] = [];
    store.watch((revision) => seen.push(revision.id));
    await store.trigger();
    const result = await store.write(
      { put: [{ path: 'a.yaml', text: 'b' }], delete: [] },
      unconditional,
    );
    t.is(seen.at(-1), result.ok ? result.revision.id : '');
  });

  check('a write that expects an outdated revision writes nothing', async (t, target) => {
    await target.put({ 'a.yaml': 'a' });
    const { store } = target.open();
    const before = await store.read();
    await target.put({ 'b.yaml': 'b' });
    const options = { ...unconditional, expectedRevision: before.id };
    const result = await store.write({ put: [{ path: 'c.yaml', text: 'c' }], delete: [] }, options);
    t.like(result, { ok: false, reason: 'changed_since' });
    const now = await store.read();
    t.deepEqual(pathsOf(now), ['a.yaml', 'b.yaml']);
    t.is(!result.ok && result.reason === 'changed_since' ? result.current.id : '', now.id);
  });

  check('of two writes that expect the same revision one succeeds', async (t, target) => {
    await target.put({ 'a.yaml': 'a' });
    const stores = openWriters(target);
    const options = { ...unconditional, expectedRevision: (await stores[0]?.read())?.id };
    const results = await Promise.all(
      stores.map((store, index) =>
        store.write({ put: [{ path: `w${index}.yaml`, text: 'w' }], delete: [] }, options),
      ),
    );
    t.deepEqual(results.map(({ ok }) => ok).sort(), [false, true]);
    t.is(pathsOf((await stores[0]?.read()) as Revision).length, 2);
  });

  check('writes without expectation all succeed, in any order', async (t, target) => {
    await target.put({ 'a.yaml': 'a' });
    const stores = openWriters(target);
    const results = await Promise.all(
      stores.map((store, index) =>
        store.write({ put: [{ path: `w${index}.yaml`, text: 'w' }], delete: [] }, unconditional),
      ),
    );
    t.deepEqual(pluck(results, 'ok'), [true, true]);
    t.deepEqual(pathsOf((await stores[1]?.read()) as Revision), ['a.yaml', 'w0.yaml', 'w1.yaml']);
  });

  check('a write that changes nothing creates no revision', async (t, target) => {
    await target.put({ 'a.yaml': 'a' });
    const { store } = target.open();
    const { id } = await store.read();
    const result = await store.write(
      { put: [{ path: 'a.yaml', text: 'a' }], delete: [] },
      unconditional,
    );
    t.is(result.ok ? result.revision.id : '', id);
    t.is((await store.read()).id, id);
  });

  check('an impossible change is refused as a whole with every reason', async (t, target) => {
    await target.put({ 'a.yaml': 'a' });
    const { store } = target.open();
    const text = 'x';
    const bad = [
      '../x.yaml',
      '/x.yaml',
      '.git/x.yaml',
      'a//b.yaml',
      'x.txt',
      'x\n.yaml',
      'a.yaml/b.yaml',
    ];
    const put = [...bad, 'good.yaml', 'good.yaml'].map((path) => ({ path, text }));
    const result = await store.write({ put, delete: ['missing.yaml'] }, unconditional);
    t.deepEqual(
      !result.ok && result.reason === 'refused'
        ? result.problems.map(({ file, message }) => `${file}: ${message}`)
        : [],
      [
        'good.yaml: the path occurs twice in one change',
        'missing.yaml: there is no such file to delete',
        "../x.yaml: no part of a path may begin with '.'",
        '/x.yaml: the path has an empty part, or begins with /',
        ".git/x.yaml: no part of a path may begin with '.'",
        'a//b.yaml: the path has an empty part, or begins with /',
        'x.txt: only files named *.yaml and *.yml are configuration',
        'x\n.yaml: the path has a backslash or a character that cannot be seen',
        "a.yaml/b.yaml: 'a.yaml' is a file, so nothing can be in it",
      ],
    );
    t.deepEqual(pathsOf(await store.read()), ['a.yaml']);
  });

  check('unreadable files can be replaced and deleted', async (t, target) => {
    const bytes = Buffer.from('\xff', 'latin1');
    const large = 'l'.repeat(101);
    await target.put({
      'a.yaml': 'a',
      'b.yaml': bytes,
      'c/d.yaml': bytes,
      'e.yaml': large,
      'f.yml': large,
    });
    const bounds = { fileBytes: 100, totalBytes: 1000, files: 10, entries: 100, depth: 5 };
    const { store } = target.open({ bounds });
    const { id, problems } = await store.read();
    t.is(problems.length, 4);
    const put = ['b.yaml', 'e.yaml'].map((path) => ({ path, text: 'new' }));
    const result = await store.write(
      { put, delete: ['c/d.yaml', 'f.yml'] },
      { ...unconditional, expectedRevision: id },
    );
    t.deepEqual(result.ok && [textsOf(result.revision), result.revision.problems], [
      { 'a.yaml': 'a', 'b.yaml': 'new', 'e.yaml': 'new' },
      [],
    ]);
  });

  check('an earlier revision can be read, and written again', async (t, target) => {
    await target.put({ 'a.yaml': '1' });
    const { store } = target.open();
    const first = await store.read();
    await target.put({ 'a.yaml': '2', 'b.yaml': '2' });
    const second = await store.read();
    t.deepEqual(textsOf(await store.readRevision(first.id)), { 'a.yaml': '1' });
    t.deepEqual(textsOf(await store.readRevision(second.id)), { 'a.yaml': '2', 'b.yaml': '2' });
    const back = await store.write(
      { put: first.files, delete: ['b.yaml'] },
      { expectedRevision: second.id, author: ann, message: 'back' },
    );
    t.deepEqual(back.ok ? textsOf(back.revision) : {}, { 'a.yaml': '1' });
    for (const id of ['', 'HEAD', '--help', '../x', 'f'.repeat(40)])
      t.is(await store.readRevision(id), undefined, id);
  });

  check('a revision is found by its prefix; the newest was made from it', async (t, target) => {
    await target.put({ 'a.yaml': '1' });
    const { store } = target.open();
    const first = await store.read();
    await target.put({ 'a.yaml': '2' });
    const second = await store.read();
    const included = (id: string) => ({ id, isIncluded: true });
    t.deepEqual(await store.locate(first.id.slice(0, 8), second.id), included(first.id));
    t.deepEqual(await store.locate(second.id, second.id), included(second.id));
    t.like(await store.locate(second.id, first.id), { isIncluded: false });
    for (const id of ['', second.id.slice(0, 5), 'HEAD~1', '--help', 'f'.repeat(40)])
      t.is(await store.locate(id, second.id), undefined, id);
  });

  check('the history outlives the process', async (t, target) => {
    await target.put({ 'a.yaml': '1' });
    const first = target.open({ state: 'kept' });
    const one = await first.store.read();
    await target.put({ 'a.yaml': '2' });
    const two = await first.store.read();
    await first.store.close();
    const { store } = target.open({ state: 'kept' });
    t.deepEqual(pluck(await store.history(2), 'id'), [two.id, one.id]);
    t.deepEqual(textsOf(await store.readRevision(one.id)), { 'a.yaml': '1' });
  });

  check('an unreachable place keeps the last revision and logs it once', async (t, target) => {
    await target.put({ 'a.yaml': '1' });
    const { store, log } = target.open();
    const seen: string[] = [];
    store.watch((revision) => seen.push(revision.id));
    const { id } = await store.read();
    t.like(store.status(), { reachable: true, failingSinceMs: undefined, lastError: undefined });
    target.hide();
    await store.trigger();
    await store.trigger();
    t.is((await store.read()).id, id);
    const status = store.status();
    t.is(status.reachable, false);
    t.is(status.revision?.id, id);
    t.true((status.failingSinceMs ?? 0) >= (status.lastSuccessMs ?? 0));
    t.truthy(status.lastError);
    target.show();
    await store.trigger();
    t.is(store.status().reachable, true);
    await target.put({ 'a.yaml': '2' });
    await store.trigger();
    t.is(seen.length, 2);
    const lines = log.lines.filter((line) => line.includes('The store'));
    t.is(lines.length, 2);
    t.regex(
      lines[0] ?? '',
      new RegExp(`cannot be read: .*; revision ${id} is kept \\(it is .* old\\)`),
    );
    t.regex(lines[1] ?? '', /can be read again, after .* and \d+ attempts/);
  });

  check('a place that was never reached is an error that names it', async (t, target) => {
    target.hide();
    const { store } = target.open();
    const error = await t.throwsAsync<AppError>(store.read());
    t.like(error, { code: 'store' });
    t.is(store.status().revision, undefined);
    target.show();
    await target.put({ 'a.yaml': '1' });
    t.deepEqual(textsOf(await store.read()), { 'a.yaml': '1' });
  });

  check('after it is closed nothing is read, and closing again is fine', async (t, target) => {
    await target.put({ 'a.yaml': '1' });
    const { store } = target.open();
    const seen: string[] = [];
    store.watch((revision) => seen.push(revision.id));
    await store.close();
    await store.close();
    await t.throwsAsync(store.read(), { message: /was closed/ });
    await target.put({ 'a.yaml': '2' });
    await store.trigger();
    t.true(seen.length <= 1);
  });
}
