// Rules files that change by a swap of the root link (RUNTIME_WATCH_ROOT=true), on a real file
// system.

import { mkdirSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { eventually } from '../../support/eventually.ts';
import {
  createRulesFolder,
  problemTexts,
  ruleText,
  startFileSource,
} from '../../support/rules-folder.ts';

const watchRoot = { subdirectory: 'limits', watchRoot: true } as const;

test('the swap of the root link loads the new folder', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('v1/limits/config/a.yaml', ruleText('a', 1));
  folder.relink('current', 'v1');
  const { limits, becomes } = await startFileSource(t, join(folder.path, 'current'), watchRoot);
  t.is(limits(), 'a=1');
  folder.write('v2/limits/config/a.yaml', ruleText('a', 2));
  folder.write('v2/limits/config/b.yaml', ruleText('b', 2));
  folder.relink('current', 'v2');
  await becomes('a=2 b=2');
  folder.relink('current', 'v1');
  await becomes('a=1');
});

test('a link that is removed is no change, and made anew it is loaded', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('v1/limits/config/a.yaml', ruleText('a', 1));
  folder.write('v2/limits/config/a.yaml', ruleText('a', 2));
  folder.relink('current', 'v1');
  const root = join(folder.path, 'current');
  const timing = { quiet: 5, patience: 20, settle: 20, poll: 20 };
  const { loads, becomes } = await startFileSource(t, root, watchRoot, { timing });
  const other = await startFileSource(t, root, { ...watchRoot, watchRoot: false }, { timing });
  unlinkSync(root);
  await eventually('others look as often', () => other.loads.at(-1)?.ok === false);
  t.is(loads.length, 1);
  folder.relink('current', 'v2');
  await becomes('a=2');
  t.is(loads.length, 2);
});

test('a link that is removed after a bad first load does not let everything pass', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('v1/limits/config/a.yaml', 'domain: a\ndescriptorz: []\n');
  folder.write('v2/limits/config/a.yaml', ruleText('a', 2));
  folder.relink('current', 'v1');
  const root = join(folder.path, 'current');
  const { loads, becomes } = await startFileSource(t, root, watchRoot);
  t.is(loads[0]?.ok, false);
  unlinkSync(root);
  folder.relink('current', 'v2');
  await becomes('a=2');
  t.deepEqual(
    loads.map(({ ok }) => ok),
    [false, true],
  );
});

test('changes inside of the folder alone are not loaded', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('v1/limits/config/a.yaml', ruleText('a', 1));
  folder.relink('current', 'v1');
  const root = join(folder.path, 'current');
  const timing = { quiet: 5, patience: 20, settle: 20, poll: 20 };
  const swapped = await startFileSource(t, root, watchRoot, { timing });
  const inPlace = await startFileSource(t, root, { ...watchRoot, watchRoot: false }, { timing });
  folder.write('v1/limits/config/a.yaml', ruleText('a', 2));
  folder.write('v1/limits/config/b.yaml', ruleText('b', 2));
  await inPlace.becomes('a=2 b=2');
  t.is(swapped.loads.length, 1);
  folder.relink('current', 'v1');
  await swapped.becomes('a=2 b=2');
  t.is(swapped.loads.length, 2);
});

test('a root that is no link but a folder replaced as a whole is loaded again', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('current/limits/config/a.yaml', ruleText('a', 1));
  const root = join(folder.path, 'current');
  const { becomes } = await startFileSource(t, root, watchRoot);
  rmSync(root, { recursive: true });
  folder.write('current/limits/config/a.yaml', ruleText('a', 2));
  await becomes('a=2');
});

test('a ConfigMap mounted as the root is loaded when it is swapped', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('current/..1/limits/config/a.yaml', ruleText('a', 1));
  folder.write('current/limits/config/a.yaml', ruleText('a', 1));
  folder.relink('current/..data', '..1');
  const { becomes } = await startFileSource(t, join(folder.path, 'current'), watchRoot);
  folder.write('current/limits/config/a.yaml', ruleText('a', 2));
  folder.relink('current/..data', '..2');
  await becomes('a=2');
});

test('a ConfigMap mounted as the folder of rules is loaded when it is swapped', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('current/limits/config/..1/a.yaml', ruleText('a', 1));
  folder.relink('current/limits/config/..data', '..1');
  folder.relink('current/limits/config/a.yaml', '..data/a.yaml');
  const { limits, becomes } = await startFileSource(t, join(folder.path, 'current'), watchRoot);
  t.is(limits(), 'a=1');
  folder.write('current/limits/config/..2/a.yaml', ruleText('a', 2));
  folder.relink('current/limits/config/..data', '..2');
  await becomes('a=2');
});

test('an empty subdirectory setting means the root itself', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('v1/config/a.yaml', ruleText('a', 1));
  folder.relink('current', 'v1');
  const root = join(folder.path, 'current');
  const { limits } = await startFileSource(t, root, { subdirectory: '', watchRoot: true });
  t.is(limits(), 'a=1');
});

test('files and folders beside the folder whose names begin with its name are rules as well', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('v1/limits/config/a.yaml', ruleText('a', 1));
  folder.write('v1/limits/config.b.yaml', ruleText('b', 1));
  folder.write('v1/limits/config.more/d.yaml', ruleText('d', 1));
  folder.write('v1/limits/config.notes', 'not for the worker');
  folder.write('v1/limits/other.yaml', ruleText('c', 1));
  folder.relink('current', 'v1');
  const root = join(folder.path, 'current');
  const { limits, loads } = await startFileSource(t, root, watchRoot);
  t.is(limits(), 'a=1 b=1 d=1');
  t.is(problemTexts(loads[0], folder.path), '');
});

test('a folder that does not exist at the start is no rules, with a warning', async (t) => {
  const folder = createRulesFolder(t);
  const root = join(folder.path, 'current');
  const { loads, limits, becomes } = await startFileSource(t, root, watchRoot);
  t.is(limits(), '');
  t.is(
    problemTexts(loads[0], folder.path),
    [
      '/current/limits/config: warning: the directory does not exist; no limit applies [no-rules-file]',
      '    hint: create it, then replace /current: only that is noticed, as RUNTIME_WATCH_ROOT is true',
    ].join('\n'),
  );
  folder.write('v1/limits/config/a.yaml', ruleText('a', 1));
  folder.relink('current', 'v1');
  await becomes('a=1');
});

test('the folder above the root must exist', async (t) => {
  const folder = createRulesFolder(t);
  const root = join(folder.path, 'no/current');
  const error = await t.throwsAsync(startFileSource(t, root, watchRoot));
  t.is(
    error?.message,
    `Cannot watch ${folder.path}/no: it does not exist; the directory that holds RUNTIME_ROOT is watched for its replacement (RUNTIME_WATCH_ROOT=true; rules are read from ${root}/limits/config); create it, or set RUNTIME_ROOT to a directory that is there`,
  );
});

test('it tells what it waits for', async (t) => {
  const folder = createRulesFolder(t);
  mkdirSync(join(folder.path, 'current/config'), { recursive: true });
  const root = join(folder.path, 'current');
  const { source } = await startFileSource(t, root, { watchRoot: true });
  t.is(
    source.describe(),
    `files: loaded 0 files from ${root}/config; loads again when ${root} is replaced (RUNTIME_WATCH_ROOT=true)`,
  );
});
