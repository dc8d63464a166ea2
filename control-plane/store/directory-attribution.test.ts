// The authors of changes of a directory, as other control planes there know them. The behaviour of all stores is
// in the contract.
import { readFileSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRulesFolder } from '../../test/support/rules-folder.ts';
import { createDirectoryStore } from './directory-store.ts';
import type { ConfigStore } from './store.ts';

const fileName = '.ratelane-revisions.json';

function prepare(t: ExecutionContext) {
  const folder = createRulesFolder(t);
  let states = 0;
  return {
    file: join(folder.path, 'rules', fileName),
    write: (path: string, text: string) => folder.write(`rules/${path}`, text),
    open(state = `state-${states++}`) {
      const log = createRecordedLog();
      const store = createDirectoryStore({
        options: {
          directory: join(folder.path, 'rules'),
          stateDirectory: join(folder.path, state),
        },
        log,
        clock: systemClock,
      });
      t.teardown(() => store.close());
      return { store, log };
    },
  };
}

async function change(store: ConfigStore, text: string, message: string) {
  const result = await store.write(
    { put: [{ path: 'a.yaml', text }], delete: [] },
    { expectedRevision: undefined, author: { name: 'Ann', email: '' }, message },
  );
  if (!result.ok) throw new Error(result.reason);
  return result.revision;
}

test('content that comes back by hand has no author, whoever made it before', async (t) => {
  const { write, open } = prepare(t);
  write('a.yaml', 'full');
  const [one, other] = [open().store, open('kept').store];
  await other.read();
  const emptied = await change(one, '', 'empty\n\nAllow-Removal: yes');
  t.is((await other.read()).message, emptied.message);
  write('a.yaml', 'full');
  for (const store of [one, other]) t.is((await store.read()).message, undefined);
  write('a.yaml', '');
  await other.close();
  for (const store of [one, open('kept').store]) {
    const { id, message } = await store.read();
    t.is(id, emptied.id);
    t.is(message, undefined);
  }
});

test('content from long before what is there was seen has no author', async (t) => {
  const { write, open, file } = prepare(t);
  write('a.yaml', 'full');
  const { id } = await change(open().store, '', 'empty\n\nAllow-Removal: yes');
  const text = readFileSync(file, 'utf8');
  const anHourAgo = text.replace(/"atMs":\d+/, `"atMs":${Date.now() - 3_600_000}`);
  writeFileSync(file, anHourAgo);
  write('a.yaml', 'full');
  const { store } = open();
  await store.read();
  write('a.yaml', '');
  t.like(await store.read(), { id, message: undefined });
  // A control plane that has seen nothing before can only go by the file.
  t.like(await open().store.read(), { id, author: 'Ann' });
  writeFileSync(file, text.replace(/"atMs":\d+/, `"atMs":${Date.now() + 3_600_000}`));
  t.like(await open().store.read(), { id, author: undefined });
});

test('an author who becomes known later is noted, and no new revision', async (t) => {
  const { write, open, file } = prepare(t);
  const one = open();
  write('a.yaml', '1');
  const { id } = await one.store.read();
  const told: unknown[] = [];
  one.store.watch((revision) => told.push(revision));
  await one.store.trigger();
  const revision = { id, atMs: Date.now(), author: 'Ann', message: 'late' };
  writeFileSync(file, JSON.stringify({ format: 1, revisions: [revision] }));
  t.like(await one.store.read(), revision);
  t.deepEqual(await one.store.history(5), [revision]);
  t.like(one.store.status().revision, revision);
  await one.store.trigger();
  t.is(told.length, 1);
});

test('a line for a state that never came is for nothing else', async (t) => {
  const { write, open, file } = prepare(t);
  write('a.yaml', '1');
  const { store } = open();
  const { id, message } = await change(store, '2', 'made');
  const other = { id: 'f'.repeat(40), atMs: Date.now() + 1, author: 'Eve', message: 'never came' };
  const { revisions } = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, JSON.stringify({ format: 1, revisions: [other, ...revisions] }));
  t.like(await open().store.read(), { id, message });
  write('a.yaml', '3');
  t.like(await open().store.read(), { author: undefined, message: undefined });
});

test("a change without effect is not said to be anybody's", async (t) => {
  const { write, open } = prepare(t);
  write('a.yaml', '1');
  const { store } = open();
  await change(store, '1', 'nothing\n\nRollout: now');
  t.like(await store.read(), { author: undefined, message: undefined });
  t.like(await open().store.read(), { author: undefined, message: undefined });
});

const id = 'a'.repeat(40);
const damaged: readonly (readonly [what: string, text: string, problem: string])[] = [
  ['no JSON', '{"format":1,', 'it is damaged'],
  ['null', 'null', 'it is damaged'],
  ['no list', '{"format":1,"revisions":{}}', 'it is damaged'],
  ['no revision', '{"format":1,"revisions":[null]}', 'it is damaged'],
  ['a wrong id', '{"format":1,"revisions":[{"id":"../x","atMs":1}]}', 'it is damaged'],
  ['a wrong time', `{"format":1,"revisions":[{"id":"${id}","atMs":1e300}]}`, 'it is damaged'],
  [
    'a wrong author',
    `{"format":1,"revisions":[{"id":"${id}","atMs":1,"author":[]}]}`,
    'it is damaged',
  ],
  [
    'too many revisions',
    JSON.stringify({ format: 1, revisions: Array(51).fill({ id, atMs: 1 }) }),
    'it is damaged',
  ],
  ['too many bytes', ' '.repeat(256 * 1024 + 1), 'it has more than 262144 bytes'],
];

for (const [what, text, problem] of damaged) {
  test(`a file with ${what} is set aside, said once, and written anew by the next change`, async (t) => {
    const { write, open, file } = prepare(t);
    write('a.yaml', '1');
    writeFileSync(file, text);
    const { store, log } = open();
    await store.read();
    await store.read();
    const { message } = await change(store, '2', 'repaired');
    t.deepEqual(log.lines, [
      `warning ${file} is ignored, so the authors and messages of changes may be missing: ${problem}; it is kept as .ratelane-revisions.json.unreadable`,
    ]);
    t.is(readFileSync(`${file}.unreadable`, 'utf8'), text);
    t.is((await open().store.read()).message, message);
  });
}

test('a file of a newer version is said, and stays for the program that wrote it until the next change', async (t) => {
  const { write, open, file } = prepare(t);
  write('a.yaml', '1');
  const text = '{"format":2,"revisions":[]}';
  writeFileSync(file, text);
  const { store, log } = open();
  await store.read();
  t.regex(log.lines.join('\n'), /it is of a newer version \(format 2\); the next change .* it$/);
  t.is(readFileSync(file, 'utf8'), text);
  const { message } = await change(store, '2', 'made');
  t.is((await open().store.read()).message, message);
});

test('a link in its place is not followed, and replaced', async (t) => {
  const { write, open, file } = prepare(t);
  write('a.yaml', '1');
  const { id } = await open().store.read();
  const elsewhere = join(file, '../../elsewhere.json');
  const text = JSON.stringify({ format: 1, revisions: [{ id, atMs: Date.now(), author: 'Eve' }] });
  writeFileSync(elsewhere, text);
  symlinkSync(elsewhere, file);
  const { store, log } = open();
  t.is((await store.read()).author, undefined);
  t.regex(
    log.lines.join('\n'),
    /\.ratelane-revisions\.json is ignored, .*: it is a symbolic link;/,
  );
  await change(store, '2', 'made');
  t.is(readFileSync(elsewhere, 'utf8'), text);
  t.is((await open().store.read()).message, 'made');
});

test('the file has the last fifty revisions, and no more than its bound', async (t) => {
  const { open, file, write } = prepare(t);
  write('a.yaml', '');
  const { store } = open();
  const revisions = () => JSON.parse(readFileSync(file, 'utf8')).revisions;
  for (let number = 0; number < 52; number++)
    await change(store, String(number), `change ${number}`);
  t.deepEqual(
    revisions().map((each: { message: string }) => each.message),
    Array.from({ length: 50 }, (_, index) => `change ${51 - index}`),
  );
  const long = '\u0007'.repeat(4000);
  for (let number = 0; number < 15; number++)
    await change(store, `long ${number}`, `${number} ${long}`);
  t.true(readFileSync(file).length <= 256 * 1024);
  t.is(revisions().length, 10);
  t.is((await open().store.read()).message, `14 ${long}`);
  unlinkSync(file);
  t.is((await open().store.read()).message, undefined);
});
