// The guide to a first application, followed as a reader would: each block is written to the file named before it.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { ownedByFile } from '../../test/support/owner.ts';
import { createRouterFolder, writeFilesOf } from '../../test/support/router-folder.ts';
import { createApp } from './app.ts';

const root = join(import.meta.dirname, '..', '..');
const guide = readFileSync(new URL('docs/first-application.md', import.meta.url), 'utf8');
const run = promisify(execFile);
const folder = createRouterFolder(ownedByFile(test), []);
writeFilesOf(guide, folder);

test('the application of the guide compiles with the settings that it shows', async (t) => {
  const compiler = join(root, 'node_modules', '.bin', 'tsc');
  const { stdout } = await run(compiler, ['-p', folder]).catch(
    (error: { stdout: string }) => error,
  );
  t.is(stdout, '');
});

test('the tests of the guide pass', async (t) => {
  const { stdout } = await run(process.execPath, ['--test'], { cwd: folder }).catch(
    (error: { stdout: string }) => error,
  );
  t.regex(stdout, /pass [1-9]\d*\n/);
  t.regex(stdout, /fail 0\n/, stdout);
});

test('the application of the guide starts where guards are required, and without a warning', async (t) => {
  const warnings: string[] = [];
  const { routes } = await createApp({
    controllerPrefix: join(folder, 'controllers'),
    requireGuards: true,
    warn: (text) => warnings.push(text),
  });
  t.deepEqual(warnings, []);
  t.is(routes.length, 6);
});
