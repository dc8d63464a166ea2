// Rules files that change by a swap of the root link (RUNTIME_WATCH_ROOT=true), on a real file
// system.

import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';
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

test('of a root that is no link it is said what is waited for, and once that its files were edited in place', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('root/config/a.yaml', ruleText('a', 1));
  const root = join(folder.path, 'root');
  const clock = createManualClock();
  const { log, limits } = await startFileSource(t, root, { watchRoot: true }, { clock });
  const awaited = `notice RUNTIME_ROOT ${root} is not a link: the rules are loaded again when it is replaced (RUNTIME_WATCH_ROOT=true), not when files in it change; for that write RUNTIME_WATCH_ROOT=false`;
  t.deepEqual(log.lines, [awaited]);
  folder.write('root/config/a.yaml', ruleText('a', 200));
  let advancedMs = 0;
  await eventually('it is said', () => {
    clock.advance(10_000);
    advancedMs += 10_000;
    return log.lines.length > 1;
  });
  t.true(advancedMs >= 40_000, 'seen at a poll, and 30 s later');
  t.regex(
    log.lines[1] ?? '',
    /^warning The files in \S+config differ from the rules in force: .*, or, with RUNTIME_WATCH_ROOT=false, when files change$/,
  );
  t.is(limits(), 'a=1');
  // A folder in its place is loaded, and told once.
  folder.write('next/config/a.yaml', ruleText('a', 3));
  renameSync(root, join(folder.path, 'before'));
  renameSync(join(folder.path, 'next'), root);
  await eventually('the other folder', () => {
    clock.advance(10_000);
    return limits() === 'a=3';
  });
  t.is(log.lines.filter((line) => line.startsWith('warning')).length, 1);
});

test('of a root that is a link, or has the link of a ConfigMap, nothing is said', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('one/config/a.yaml', ruleText('a', 1));
  folder.write('map/..1/config/a.yaml', ruleText('a', 1));
  symlinkSync('one', join(folder.path, 'current'));
  symlinkSync('..1', join(folder.path, 'map/..data'));
  for (const root of ['current', 'map']) {
    const { log } = await startFileSource(t, join(folder.path, root), { watchRoot: true });
    t.false(
      log.lines.some((line) => line.includes('is not a link')),
      log.lines.join('\n'),
    );
  }
});
