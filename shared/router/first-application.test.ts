// The guide to a first application, as its reader writes it: each block into the file that is named before it.
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { createRouterFolder, writeFilesOf } from '../../test/support/router-folder.ts';
import { createApp } from './app.ts';

const root = join(import.meta.dirname, '..', '..');
const guide = await readFile(new URL('docs/first-application.md', import.meta.url), 'utf8');
const run = promisify(execFile);
let folder = '';

test.before('the files of the guide are written', async () => {
  folder = await createRouterFolder([]);
  await writeFilesOf(guide, folder);
});

test.after.always('the folder is removed', () => rm(folder, { recursive: true, force: true }));

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
  t.is(routes.length, 14);
});
