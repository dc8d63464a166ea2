// Tests the removal of files that killed processes left behind.
import { existsSync, readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createRulesFolder } from '../../../test/support/rules-folder.ts';
import { removeStagedFiles, toStagedName } from './atomic-file.ts';

test('temporary files and folders are removed when they are old enough', async (t) => {
  const { path, write } = createRulesFolder(t);
  const [file, folder, young] = [toStagedName('a.yaml'), toStagedName('lock'), toStagedName('b')];
  write(`rules/${file}`, '');
  write(`${folder}/token/file`, '');
  write(young, '');
  write('.a.tmp', '');
  for (const name of [`rules/${file}`, folder, '.a.tmp']) utimesSync(join(path, name), 1, 1);
  await removeStagedFiles(path, 60_000);
  const left = [`rules/${file}`, folder, young, '.a.tmp'].filter((name) =>
    existsSync(join(path, name)),
  );
  t.deepEqual(left, [young, '.a.tmp']);
});

test('a folder with more entries than the limit is read only up to it', async (t) => {
  const { path, write } = createRulesFolder(t);
  for (let at = 0; at < 5; at++) write(`rules/${toStagedName(`${at}`)}`, '');
  await removeStagedFiles(path, 0, 3);
  // The first entry is the folder.
  t.is(readdirSync(join(path, 'rules')).length, 3);
});
