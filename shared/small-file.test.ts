import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createRulesFolder } from '../test/support/rules-folder.ts';
import { readSecretFile, readSmallFile } from './small-file.ts';

test('a file is read up to its bound, and an endless one is refused by name', async (t) => {
  const path = join(createRulesFolder(t).path, 'secret');
  writeFileSync(path, 'ä'.repeat(50));
  t.is(await readSmallFile(path, 100), 'ä'.repeat(50));
  await t.throwsAsync(readSmallFile(path, 99), { message: `${path} has more than 99 bytes` });
  await t.throwsAsync(readSmallFile('/dev/zero', 100_000), {
    message: '/dev/zero has more than 100000 bytes',
  });
  await t.throwsAsync(readSmallFile(`${path}.old`, 100), { code: 'ENOENT' });
  execFileSync('mkfifo', [`${path}.pipe`]);
  t.is(await readSmallFile(`${path}.pipe`, 100), '', 'not waited for');
  await t.throwsAsync(readSmallFile(join(path, '..'), 100), { code: 'EISDIR' });
  writeFileSync(path, '');
  t.is(await readSmallFile(path, 100), '');
  for (const misplaced of ['e', '']) {
    const message = "ENOENT: no such file or directory, open '*****'";
    await t.throwsAsync(readSecretFile(misplaced, 9), { message });
  }
});
