import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { rows } from './rows.ts';

const main = fileURLToPath(new URL('main.ts', import.meta.url));

test('every server of the comparison answers every row as it must', async (t) => {
  t.timeout(120_000);
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, [main, '--rounds', '1', '--requests', '100']);
  for (const { name } of rows) t.regex(stdout, new RegExp(`^${name}(?: +[0-9.]+){5}$`, 'm'));
});

test('an unknown row prints the usage', async (t) => {
  const run = promisify(execFile)(process.execPath, [main, '--row', 'tea']);
  const { code, stdout } = await t.throwsAsync<Error & { code: number; stdout: string }>(run);
  t.is(code, 2);
  t.regex(stdout, /^Usage: npm run bench:router/);
});
