import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRulesFolder } from '../../test/support/rules-folder.ts';
import { openOwnText } from './own-text.ts';

test('the newest text of a store is found again, and no other store finds it', async (t) => {
  const log = createRecordedLog();
  const { path } = createRulesFolder(t);
  const folder = join(path, 'state');
  const text = openOwnText(folder, 'one store', log);
  t.is(await text.read(), undefined);
  await text.swap(undefined, 'first');
  await text.swap(undefined, 'second');
  t.is((await text.read())?.text, 'second');
  await text.settled();
  t.is((await openOwnText(folder, 'one store', log).read())?.text, 'second');
  t.is(await openOwnText(folder, 'another', log).read(), undefined);
  t.deepEqual(log.lines, []);
});

test('a text that is damaged, or cannot be written, is said and passed over', async (t) => {
  const log = createRecordedLog();
  const { path } = createRulesFolder(t);
  writeFileSync(join(path, 'rollout.json'), '{"format":1');
  t.is(await openOwnText(path, 'a store', log).read(), undefined);
  writeFileSync(join(path, 'rollout.json'), '{"store":"a store","text":1}');
  t.is(await openOwnText(path, 'a store', log).read(), undefined);
  const nowhere = openOwnText(join(path, 'rollout.json'), 'a store', log);
  t.is((await nowhere.swap(undefined, 'text')).kind, 'written');
  await nowhere.settled();
  t.is(log.lines.length, 3);
  t.regex(log.lines[1] ?? '', /rollout\.json cannot be read \(it is not the record of a rollout\)/);
  t.regex(log.lines[2] ?? '', /cannot be written \(.*\): a restart begins the rollout anew/);
});
