// Rules files that change in place (RUNTIME_WATCH_ROOT=false), on a real file system.

import {
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { createParsingThread } from '../../../shared/rules/thread/parsing-thread.ts';
import type { RulesFile } from '../../../shared/rules-file.ts';
import { createLoadRules } from '../../../worker/rules-source/load-rules.ts';
import { eventually } from '../../support/eventually.ts';
import { createRecordedLog } from '../../support/recorded-log.ts';
import {
  createRulesFolder,
  problemTexts,
  ruleText,
  startFileSource,
} from '../../support/rules-folder.ts';

test('all YAML files below the folder are loaded, sorted by path', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/b.yml', ruleText('b', 2));
  folder.write('config/a.yaml', ruleText('a', 1));
  folder.write('config/team/deep/c.yaml', ruleText('c', 3));
  const { limits, loads, metrics } = await startFileSource(t, folder.path);
  t.is(limits(), 'a=1 b=2 c=3');
  t.is(loads.length, 1);
  t.is(loads[0]?.origin, `3 files from ${folder.path}/config`);
  t.is(metrics.snapshot().get('runtime.num_values'), 3);
  t.is(metrics.snapshot().get('runtime.load_attempts'), 1);
  t.is(metrics.snapshot().get('runtime.load_failures'), 0);
});

// Proof of migrating.md: `RUNTIME_SUBDIRECTORY` may be unset
test('the folder is root, subdirectory and app directory, of which some may be empty', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('one/two/a.yaml', ruleText('a', 1));
  const named = { subdirectory: 'one', appDirectory: 'two' };
  t.is((await startFileSource(t, folder.path, named)).limits(), 'a=1');
  const bare = { subdirectory: '', appDirectory: '' };
  t.is((await startFileSource(t, join(folder.path, 'one/two'), bare)).limits(), 'a=1');
  // Files of a hidden name are not taken for ones beside a folder without a name.
  folder.write('one/two/.b.yaml', ruleText('b', 1));
  symlinkSync('one/two', join(folder.path, 'current'));
  const swapped = { ...bare, watchRoot: true };
  t.is((await startFileSource(t, join(folder.path, 'current'), swapped)).limits(), 'a=1 b=1');
});

test('a file that is added, replaced, rewritten, renamed away or removed is noticed', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const { becomes } = await startFileSource(t, folder.path);
  folder.write('config/b.yaml', ruleText('b', 1));
  await becomes('a=1 b=1');
  folder.replace('config/a.yaml', ruleText('a', 2));
  await becomes('a=2 b=1');
  folder.write('config/a.yaml', ruleText('a', 3));
  await becomes('a=3 b=1');
  renameSync(join(folder.path, 'config/b.yaml'), join(folder.path, 'b.yaml'));
  await becomes('a=3');
  folder.write('config/c.yaml', ruleText('c', 1));
  await becomes('a=3 c=1');
  unlinkSync(join(folder.path, 'config/a.yaml'));
  await becomes('c=1');
});

test('a changed mode alone loads the files again', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const { loads } = await startFileSource(t, folder.path);
  chmodSync(join(folder.path, 'config/a.yaml'), 0o600);
  await eventually('a second load', () => loads.length === 2);
  t.true(loads.every((result) => result.ok));
});

test('changes in subfolders are noticed, also in those that come later', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/team/a.yaml', ruleText('a', 1));
  const { becomes } = await startFileSource(t, folder.path);
  folder.write('config/team/a.yaml', ruleText('a', 2));
  await becomes('a=2');
  folder.write('config/x/y/b.yaml', ruleText('b', 1));
  await becomes('a=2 b=1');
  folder.write('config/x/y/b.yaml', ruleText('b', 2));
  await becomes('a=2 b=2');
  rmSync(join(folder.path, 'config/x'), { recursive: true });
  await becomes('a=2');
});

test('an unchanged folder is not loaded again, however often it is looked at', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const timing = { quiet: 5, patience: 20, settle: 20, poll: 20 };
  const { loads, becomes } = await startFileSource(t, folder.path, {}, { timing });
  // Names of two dots are none of the rules' business, but the system tells of them.
  for (let i = 0; i < 5; i++) folder.write('config/..noise', String(i));
  folder.write('config/a.yaml', ruleText('a', 2));
  await becomes('a=2');
  t.true(loads.length <= 3, 'a rewritten file may be seen cut off and whole');
  t.true(loads.every((result) => result.ok));
});

// Proof of migrating.md: Changes in subfolders and files renamed away are noticed, and a ConfigMap's swap is
// one load
test('the swap of a ConfigMap is one good load, and its folders are not loaded twice', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/..2026_1/a.yaml', ruleText('a', 1));
  folder.write('config/..2026_1/b.yaml', ruleText('b', 1));
  folder.relink('config/..data', '..2026_1');
  symlinkSync('..data/a.yaml', join(folder.path, 'config/a.yaml'));
  symlinkSync('..data/b.yaml', join(folder.path, 'config/b.yaml'));
  const { loads, limits, becomes } = await startFileSource(t, folder.path);
  t.is(limits(), 'a=1 b=1');
  t.is(problemTexts(loads[0], folder.path), '');

  folder.write('config/..2026_2/a.yaml', ruleText('a', 2));
  folder.write('config/..2026_2/b.yaml', ruleText('b', 2));
  folder.relink('config/..data', '..2026_2');
  rmSync(join(folder.path, 'config/..2026_1'), { recursive: true });
  await becomes('a=2 b=2');

  folder.write('config/..2026_3/a.yaml', ruleText('a', 3));
  folder.write('config/..2026_3/b.yaml', ruleText('b', 3));
  folder.relink('config/..data', '..2026_3');
  await becomes('a=3 b=3');
  t.is(loads.length, 3);
  t.true(loads.every((result) => result.ok));
});

test('a bad file leaves a load with every problem, and its repair is noticed', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const { loads, limits, becomes } = await startFileSource(t, folder.path);
  folder.write('config/a.yaml', 'domain: a\ndescriptors:\n  - kee: k\n');
  folder.write('config/b.yaml', 'domain: [\n');
  await eventually('a failed load of both', () => {
    const last = loads.at(-1);
    return last?.ok === false && last.problems.length >= 2;
  });
  t.is(limits(), 'a=1');
  const text = problemTexts(loads.at(-1), folder.path);
  t.regex(text, /^\/config\/a\.yaml:3:5: error: .*kee/m);
  t.regex(text, /^\/config\/b\.yaml:\d+:\d+: error: /m);
  unlinkSync(join(folder.path, 'config/b.yaml'));
  folder.write('config/a.yaml', ruleText('a', 2));
  await becomes('a=2');
});

test('a bad first load is delivered as such', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', 'domain: ""\n');
  const { loads, becomes } = await startFileSource(t, folder.path);
  t.is(loads.length, 1);
  t.false(loads[0]?.ok);
  folder.write('config/a.yaml', ruleText('a', 1));
  await becomes('a=1');
});

test('a file that is still being written is not told as bad', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const timing = { quiet: 5, patience: 20, settle: 1000, poll: 10_000 };
  const { loads, metrics, becomes } = await startFileSource(t, folder.path, {}, { timing });
  const attempts = () => metrics.counter('runtime.load_attempts').value;
  const before = attempts();
  folder.write('config/a.yaml', 'domain: a\ndescriptors:\n  - ke');
  await eventually('a look at half of the file', () => attempts() > before);
  folder.write('config/a.yaml', ruleText('a', 2));
  await becomes('a=2');
  t.true(loads.every((result) => result.ok));
});

// Proof of migrating.md: Files are `*.yaml` and `*.yml`; any other file is named once in a warning
test('other files are named once in a warning and are not read', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  folder.write('config/README', 'hello');
  folder.write('config/old.yaml.bak', 'domain: [');
  const { loads } = await startFileSource(t, folder.path);
  t.true(loads[0]?.ok);
  t.is(
    problemTexts(loads[0], folder.path),
    [
      '/config/README: warning: only files named *.yaml and *.yml are read; it is ignored [ignored-file]',
      '    hint: rename it if it holds rules, else move it elsewhere',
      '/config/old.yaml.bak: warning: only files named *.yaml and *.yml are read; it is ignored [ignored-file]',
      '    hint: rename it if it holds rules, else move it elsewhere',
    ].join('\n'),
  );
});

test('dot files and folders are rules unless they are to be ignored', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/.a.yaml', ruleText('a', 1));
  folder.write('config/.git/b.yaml', ruleText('b', 1));
  folder.write('config/.git/HEAD', 'ref');
  folder.write('config/c.yaml', ruleText('c', 1));
  t.is((await startFileSource(t, folder.path)).limits(), 'a=1 b=1 c=1');
  const ignoring = await startFileSource(t, folder.path, { ignoreDotFiles: true });
  t.is(ignoring.limits(), 'c=1');
  t.is(problemTexts(ignoring.loads[0], folder.path), '');
});

test('files take effect in the order of their paths, a folder as if a dot followed it', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('second', 1));
  folder.write('config/a/b.yaml', ruleText('first', 1));
  folder.write('config/a.z/c.yaml', ruleText('third', 1));
  t.is((await startFileSource(t, folder.path)).limits(), 'first=1 second=1 third=1');
});

test('links to files are followed; a link to a folder is named, counted and left out', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('elsewhere/a.yaml', ruleText('a', 1));
  mkdirSync(join(folder.path, 'config'));
  symlinkSync('../elsewhere/a.yaml', join(folder.path, 'config/a.yaml'));
  symlinkSync('../elsewhere', join(folder.path, 'config/linked'));
  const { limits, loads, metrics } = await startFileSource(t, folder.path);
  t.is(limits(), 'a=1');
  t.is(metrics.snapshot().get('runtime.load_failures'), 1);
  t.regex(
    problemTexts(loads[0], folder.path),
    /^\/config\/linked: warning: a symbolic link to a directory is not followed; it is ignored \[ignored-file\]\n/,
  );
});

test('a change of a link’s target elsewhere is found by looking from time to time', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('elsewhere/a.yaml', ruleText('a', 1));
  mkdirSync(join(folder.path, 'config'));
  symlinkSync('../elsewhere/a.yaml', join(folder.path, 'config/a.yaml'));
  const timing = { quiet: 5, patience: 20, settle: 20, poll: 50 };
  const { becomes } = await startFileSource(t, folder.path, {}, { timing });
  folder.write('elsewhere/a.yaml', ruleText('a', 2));
  await becomes('a=2');
});

// Proof of migrating.md: A file that cannot be read keeps the rules that were there
test('a file that cannot be read keeps the rules that were there', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const { loads, limits, metrics } = await startFileSource(t, folder.path);
  symlinkSync('nowhere.yaml', join(folder.path, 'config/b.yaml'));
  await eventually('a second load', () => loads.length === 2);
  t.false(loads[1]?.ok);
  t.is(limits(), 'a=1');
  t.is(
    problemTexts(loads[1], folder.path),
    '/config/b.yaml: error: cannot be read: it does not exist (ENOENT)',
  );
  t.true(metrics.counter('runtime.load_failures').value > 0);
});

test('a file that is not UTF-8 is an error', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', '');
  writeFileSync(join(folder.path, 'config/a.yaml'), Buffer.from([0x64, 0xff, 0xfe, 0x00]));
  const { loads } = await startFileSource(t, folder.path);
  t.false(loads[0]?.ok);
  t.regex(problemTexts(loads[0], folder.path), /a\.yaml:1:2: error: the file is not UTF-8 text\n/);
});

test('an empty folder is a good load without rules, and says so', async (t) => {
  const folder = createRulesFolder(t);
  mkdirSync(join(folder.path, 'config'));
  const { loads, limits, becomes } = await startFileSource(t, folder.path);
  t.is(limits(), '');
  t.is(
    problemTexts(loads[0], folder.path),
    '/config: warning: no file named *.yaml or *.yml; no limit applies [no-rules-file]',
  );
  folder.write('config/a.yaml', ruleText('a', 1));
  await becomes('a=1');
});

// Proof of migrating.md: A folder that has no rules file any more keeps the rules that were there; the
// configuration's component of health is unhealthy then
test('a folder that becomes empty keeps the rules that were there, and says so once', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const { loads, becomes, limits } = await startFileSource(t, folder.path);
  unlinkSync(join(folder.path, 'config/a.yaml'));
  await eventually('the load that fails', () => loads.length === 2);
  t.regex(
    problemTexts(loads[1], folder.path),
    /^\/config: error: no file named \*\.yaml or \*\.yml any more/,
  );
  t.is(limits(), 'a=1');
  folder.write('config/notes.txt', 'x');
  folder.write('config/b.yaml', ruleText('b', 2));
  await becomes('b=2');
});

test('only files that changed are read again', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  folder.write('config/b.yaml', ruleText('b', 1));
  const seen: (readonly RulesFile[])[] = [];
  const load = createLoadRules({ mergeDomains: false, sanitizeMetricDots: false });
  const { becomes } = await startFileSource(
    t,
    folder.path,
    {},
    {
      load(files) {
        seen.push(files);
        return load(files);
      },
    },
  );
  folder.write('config/b.yaml', ruleText('b', 2));
  await becomes('a=1 b=2');
  t.is(seen.at(-1)?.[0], seen[0]?.[0]);
  t.not(seen.at(-1)?.[1], seen[0]?.[1]);
});

test('a large file that is written again is the same file where its whole text is the same', async (t) => {
  const folder = createRulesFolder(t);
  const large = (limit: number, end: string) =>
    `${ruleText('a', limit)}# ${'x'.repeat(300_000)}${end}\n`;
  const seen: (readonly RulesFile[])[] = [];
  const load = createLoadRules({ mergeDomains: false, sanitizeMetricDots: false });
  folder.write('config/a.yaml', large(1, 'x'));
  folder.write('config/b.yaml', ruleText('b', 1));
  const { becomes } = await startFileSource(
    t,
    folder.path,
    {},
    {
      load(files) {
        seen.push(files);
        return load(files);
      },
    },
  );
  folder.write('config/a.yaml', large(1, 'x'));
  folder.write('config/b.yaml', ruleText('b', 2));
  await becomes('a=1 b=2');
  t.is(seen.at(-1)?.[0], seen[0]?.[0]);
  folder.write('config/a.yaml', large(1, 'y'));
  folder.write('config/b.yaml', ruleText('b', 3));
  await becomes('a=1 b=3');
  t.not(seen.at(-1)?.[0], seen[0]?.[0]);
});

/** Of a hundred and more lines: parsed in the thread. */
function largeText(limit: number): string {
  const rules = Array.from(
    { length: 500 },
    (_, at) => `  - {key: k${at}, rate_limit: {unlimited: true}}`,
  );
  return `${ruleText('a', limit)}${rules.join('\n')}\n`;
}

test('a large file that is replaced while it is parsed is loaded as it is in the end', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', largeText(1));
  let parsed = 0;
  const log = createRecordedLog();
  const thread = createParsingThread({ log, clock: systemClock });
  t.teardown(() => thread.close());
  const load = createLoadRules(
    { mergeDomains: false, sanitizeMetricDots: false },
    {
      ...thread,
      parse(text, file) {
        const document = thread.parse(text, file);
        if (++parsed === 1) folder.write('config/a.yaml', largeText(3));
        return document;
      },
    },
  );
  const { loads } = await startFileSource(t, folder.path, {}, { load });
  folder.write('config/a.yaml', largeText(2));
  await eventually('both loads', () => loads.length === 3);
  const limits = loads.map((result) =>
    result.ok
      ? result.ruleSet.domains.get('a')?.match([{ key: 'k', value: '' }])?.limit
      : undefined,
  );
  t.deepEqual(
    limits.map((limit) => limit?.requestsPerUnit),
    [1, 2, 3],
  );
  t.is(parsed, 2);
  t.deepEqual(log.lines, []);
});

test('a source that is closed while a large file is parsed loads nothing more', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', largeText(1));
  const thread = createParsingThread({
    log: createRecordedLog(),
    clock: systemClock,
    startWorker: () =>
      new Worker('require("worker_threads").parentPort.on("message", () => { for (;;); })', {
        eval: true,
      }),
  });
  const asked = Promise.withResolvers<void>();
  const load = createLoadRules(
    { mergeDomains: false, sanitizeMetricDots: false },
    {
      ...thread,
      parse(text, file) {
        asked.resolve();
        return thread.parse(text, file);
      },
    },
  );
  const { source, loads, log } = await startFileSource(t, folder.path, {}, { load });
  folder.write('config/a.yaml', largeText(2));
  await asked.promise;
  await Promise.all([source.close(), thread.close()]);
  t.is(loads.length, 1);
  t.deepEqual(log.lines, []);
});

test('a folder that does not exist ends the start and is named', async (t) => {
  const folder = createRulesFolder(t);
  const error = await t.throwsAsync(startFileSource(t, folder.path));
  t.is(
    error?.message,
    `Cannot watch ${folder.path}/config: it does not exist; the rules are read from RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY; create it, or set RUNTIME_ROOT to a directory that is there`,
  );
  folder.write('config', 'a file');
  const other = await t.throwsAsync(startFileSource(t, folder.path));
  t.regex(other?.message ?? '', /config: it is not a directory; /);
});

// Proof of migrating.md: A folder of rules that is gone keeps the rules that were there
test('a folder that is removed keeps its last rules, and coming back it is loaded', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const { loads, limits, becomes } = await startFileSource(t, folder.path);
  renameSync(join(folder.path, 'config'), join(folder.path, 'away'));
  await eventually('a failed load', () => loads.at(-1)?.ok === false);
  t.is(limits(), 'a=1');
  t.is(
    problemTexts(loads.at(-1), folder.path),
    '/config: error: the directory does not exist any more',
  );
  folder.write('config/a.yaml', ruleText('a', 2));
  await becomes('a=2');
  folder.write('config/a.yaml', ruleText('a', 3));
  await becomes('a=3');
});

test('another folder renamed into place is loaded and watched', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  folder.write('next/a.yaml', ruleText('a', 2));
  const { becomes } = await startFileSource(t, folder.path);
  renameSync(join(folder.path, 'config'), join(folder.path, 'old'));
  renameSync(join(folder.path, 'next'), join(folder.path, 'config'));
  await becomes('a=2');
  folder.write('config/a.yaml', ruleText('a', 3));
  await becomes('a=3');
});

test('more than the bounds allow is an error, and nothing is read', async (t) => {
  const folder = createRulesFolder(t);
  const bounds = { fileBytes: 200, totalBytes: 1000, files: 3, entries: 8, depth: 2 };
  const problemsOf = async () => {
    const { loads, source } = await startFileSource(t, folder.path, {}, { bounds });
    await source.close();
    t.false(loads[0]?.ok);
    return problemTexts(loads[0], folder.path);
  };
  folder.write('config/a.yaml', `${ruleText('a', 1)}#${'x'.repeat(300)}`);
  t.regex(await problemsOf(), /^\/config\/a\.yaml: error: \d+ bytes, more than the 200 /);
  folder.write('config/a.yaml', ruleText('a', 1));
  folder.write('config/1/2/3/b.yaml', ruleText('b', 1));
  t.is(await problemsOf(), '/config/1/2/3: error: directories are nested deeper than 2');
  rmSync(join(folder.path, 'config/1'), { recursive: true });
  for (const name of 'bcd') folder.write(`config/${name}.yaml`, ruleText(name, 1));
  t.regex(await problemsOf(), /^\/config: error: more than 3 files; nothing is read\n/);
  for (const name of 'efghi') folder.write(`config/${name}.yaml`, ruleText(name, 1));
  t.regex(await problemsOf(), /^\/config: error: more than 8 entries; nothing is read\n/);
});

test('a defect of the loader becomes a failed load, not the end of the process', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const load = () => {
    throw new TypeError('oops');
  };
  const { loads } = await startFileSource(t, folder.path, {}, { load });
  t.false(loads[0]?.ok);
  t.regex(problemTexts(loads[0], folder.path), /met a defect of the program: TypeError: oops/);
});

test('after close nothing is delivered', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const timing = { quiet: 5, patience: 20, settle: 20, poll: 20 };
  const closed = await startFileSource(t, folder.path, {}, { timing });
  const open = await startFileSource(t, folder.path, {}, { timing });
  await closed.source.close();
  await closed.source.close();
  folder.write('config/a.yaml', ruleText('a', 2));
  await open.becomes('a=2');
  t.is(closed.loads.length, 1);
});

test('it tells what it watches and what became of the last load', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('config/a.yaml', ruleText('a', 1));
  const { source } = await startFileSource(t, folder.path);
  const directory = join(folder.path, 'config');
  t.is(
    source.describe(),
    `files: loaded 1 file from ${directory}; loads again when a file below ${directory} changes (RUNTIME_WATCH_ROOT=false)`,
  );
});
