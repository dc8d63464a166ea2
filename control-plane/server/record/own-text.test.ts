import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { Log } from '../../../shared/log.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createRulesFolder } from '../../../test/support/rules-folder.ts';
import { listSetAside } from '../store/set-aside.ts';
import { OwnTextFile } from './own-text.ts';
import { emptyRecord, parseRecord, toRecordText } from './record.ts';

const textOf = (beat: number) => toRecordText({ ...emptyRecord, beat });
const record = { text: textOf(1), plane: 'p'.repeat(64) };
const open = (stateDirectory: string, store: string, log: Log, isInGit = false) =>
  new OwnTextFile({ stateDirectory, store, isInGit }, log);

test('the newest text of a store is found again, also where it was removed, and no other store finds it', async (t) => {
  const log = createRecordedLog();
  const folder = join(createRulesFolder(t).path, 'new', 'state');
  const own = open(folder, 'one store', log);
  t.is(await own.read(), undefined);
  own.save(record);
  own.save({ ...record, text: textOf(2) });
  await own.settled();
  t.deepEqual(await open(folder, 'one store', log).read(), { ...record, text: textOf(2) });
  t.is(await open(folder, 'another', log).read(), undefined);
  t.deepEqual(log.lines, []);
  const file = join(folder, 'rollout.json');
  t.is(statSync(file).mode & 0o777, 0o600);
  t.is(statSync(folder).mode & 0o777, 0o700);
  rmSync(folder, { recursive: true });
  own.restore();
  await own.settled();
  t.deepEqual(await own.read(), { ...record, text: textOf(2) });
  t.deepEqual(log.lines, [`warning ${file} was removed: writing it again`]);
});

for (const content of [
  '{"format":1',
  '{"store":"a store","text":1}',
  '{"plane":"p","store":"a store","text":"{}"}',
  ' '.repeat(5_000_000),
  '7',
  `{"plane":"${'x'.repeat(65)}","store":"a store","text":""}`,
]) {
  test(`a damaged text is logged, set aside, and done without: ${content.slice(0, 60).trim()}`, async (t) => {
    const log = createRecordedLog();
    const { path } = createRulesFolder(t);
    writeFileSync(join(path, 'rollout.json'), content);
    t.is(await open(path, 'a store', log).read(), undefined);
    t.is(log.lines.length, 1);
    t.regex(
      log.lines[0] ?? '',
      /^warning .*rollout\.json cannot be read \(.+\): it is ignored; it is kept as rollout\.json\.unreadable$/,
    );
    t.is(readFileSync(join(path, 'rollout.json.unreadable'), 'utf8'), content);
    t.deepEqual(await listSetAside(path), [join(path, 'rollout.json.unreadable')]);
  });
}

test('the version before reads the file: it has whether the record is beside the rules, in Git', async (t) => {
  for (const isInGit of [false, true]) {
    const { path } = createRulesFolder(t);
    await open(path, 'a store', createRecordedLog(), isInGit).write(record);
    const written = JSON.parse(readFileSync(join(path, 'rollout.json'), 'utf8'));
    t.deepEqual(written, { store: 'a store', ...record, isAlone: !isInGit });
  }
});

test('a record beside the rules is used only with state of an earlier version: authors of rules could write their own approval', async (t) => {
  const [state, rules] = [createRulesFolder(t).path, createRulesFolder(t).path];
  const path = join(rules, '.ratelane-rollout.1.json');
  const approved = {
    revision: 'r',
    content: 'c',
    outcome: 'approved',
    reason: '',
    by: '',
    atMs: 0,
  };
  const takenBack = { ...approved, content: 'bad', outcome: 'taken_back' };
  const record = {
    format: 3,
    ...emptyRecord,
    verdicts: [approved, takenBack],
    inForce: [approved],
  };
  writeFileSync(path, JSON.stringify(record));
  const log = createRecordedLog();
  const options = { stateDirectory: state, store: rules, rulesDirectory: rules, isInGit: false };
  const known = parseRecord((await new OwnTextFile(options, log).read())?.text ?? '');
  t.deepEqual(known, {
    ok: true,
    record: { ...emptyRecord, verdicts: [takenBack], takenBack: [] },
  } as never);
  writeFileSync(join(state, 'last-good.revision.json'), '');
  t.deepEqual(await new OwnTextFile(options, log).read(), { text: JSON.stringify(record) });
});

test('where no second file can be written, as on a full disk, the text replaces the first one in place', async (t) => {
  const { path } = createRulesFolder(t);
  // The name of a second file would be too long.
  const folder = `${path}${`/${'x'.repeat(99)}`.repeat(45)}`.slice(0, 4_070).replace(/\/$/, '');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'rollout.json');
  writeFileSync(file, 'x'.repeat(4_000));
  const own = open(folder, 'a store', createRecordedLog());
  t.is(await own.write(record), undefined);
  t.like(JSON.parse(readFileSync(file, 'utf8')), record);
  t.regex((await own.write({ ...record, text: 'x'.repeat(9_000) })) ?? '', /ENAMETOOLONG/);
  t.like(JSON.parse(readFileSync(file, 'utf8')), record);
});

test('a failure to write is logged once, and again after a success', async (t) => {
  const log = createRecordedLog();
  const { path } = createRulesFolder(t);
  const folder = join(path, 'state');
  writeFileSync(folder, 'in its way');
  const own = open(folder, 'a store', log);
  const save = async (text: string) => {
    own.save({ ...record, text });
    await own.settled();
  };
  await save(textOf(1));
  await save(textOf(2));
  t.is(log.lines.length, 1);
  t.regex(
    log.lines[0] ?? '',
    /rollout\.json cannot be written \(.+\): a restart will not find this record/,
  );
  rmSync(folder);
  await save(textOf(3));
  t.is(JSON.parse(readFileSync(join(folder, 'rollout.json'), 'utf8')).text, textOf(3));
  t.is(log.lines.length, 1);
  rmSync(folder, { recursive: true });
  writeFileSync(folder, 'in its way');
  await save(textOf(4));
  t.is(log.lines.length, 2);
});
