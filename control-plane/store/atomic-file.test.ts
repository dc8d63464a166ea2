// The files that killed processes left behind.
import { existsSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createRulesFolder } from '../../test/support/rules-folder.ts';
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
