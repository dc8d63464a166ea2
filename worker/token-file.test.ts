import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createRecordedLog } from '../test/support/recorded-log.ts';
import { createTemporaryFolder } from '../test/support/temporary-folder.ts';
import { createReadToken, readTokenFile } from './token-file.ts';

function createFile(t: ExecutionContext): string {
  const folder = createTemporaryFolder(t);
  return join(folder, 'token');
}

test('the token is read each time; while the file has none the last valid one is used, which is logged once', async (t) => {
  const path = createFile(t);
  const log = createRecordedLog();
  const readToken = createReadToken(path, log);
  await t.throwsAsync(readToken, {
    message: `the file ${path} of the token for management servers cannot be read (ENOENT: no such file or directory, open '${path}')`,
  });
  writeFileSync(path, ' first-sesame \n');
  t.is(await readToken(), 'first-sesame');
  writeFileSync(path, 'second-sesame');
  t.is(await readToken(), 'second-sesame');
  t.deepEqual(log.lines, []);

  const logged = (problem: string) =>
    `warning the file ${path} of the token for management servers ${problem}; the last good token stays in use`;
  writeFileSync(path, '\n');
  t.is(await readToken(), 'second-sesame');
  t.is(await readToken(), 'second-sesame');
  t.deepEqual(log.lines, [logged('is empty')]);
  writeFileSync(path, 'third-sesame');
  t.is(await readToken(), 'third-sesame');
  writeFileSync(path, '');
  t.is(await readToken(), 'third-sesame');
  t.deepEqual(log.lines, [logged('is empty'), logged('is empty')], 'again, after a good one');
});

for (const [text, problem] of [
  ['two words', 'does not hold one token in ASCII without white space'],
  ['sésame', 'does not hold one token in ASCII without white space'],
] as const) {
  test(`a file with ${JSON.stringify(text.slice(0, 9))} is not a token`, async (t) => {
    const path = createFile(t);
    writeFileSync(path, text);
    t.deepEqual(await readTokenFile(path), { ok: false, problem });
  });
}

test('an endless file is not a token', async (t) => {
  const problem = 'cannot be read (/dev/zero has more than 16384 bytes)';
  t.deepEqual(await readTokenFile('/dev/zero'), { ok: false, problem });
});
