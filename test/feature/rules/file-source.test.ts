// Tests rules files on a real file system: changed in place (RUNTIME_WATCH_ROOT=false), or by a swap of the root
// (RUNTIME_WATCH_ROOT=true). file-source.txt has the operations on a folder and the resulting loads.

import { chmodSync, mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { createRuleSetBuilder } from '../../../shared/rules/rule-set.ts';
import type { RulesFile } from '../../../shared/rules-file.ts';
import { createLoadRules } from '../../../worker/rules-source/load-rules.ts';
import { createParsingThread } from '../../../worker/rules-source/parsing-thread.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { createRecordedLog } from '../../support/recorded-log.ts';
import { testLines } from '../../support/reviewed-lines.ts';
import {
  createRulesFolder,
  problemTexts,
  ruleText,
  type StartedSource,
  startFileSource,
} from '../../support/rules-folder.ts';

const watchRoot = { subdirectory: 'limits', watchRoot: true } as const;
const bounds = { fileBytes: 200, totalBytes: 1000, files: 3, entries: 8, depth: 2 };
const quick = { timing: { quiet: 5, patience: 20, settle: 20, poll: 50 } };

// Proof of migrating.md: `RUNTIME_SUBDIRECTORY` may be unset
// Proof of migrating.md: Changes in subfolders and files renamed away are noticed, and a ConfigMap's swap is
// one load
// Proof of migrating.md: Files are `*.yaml` and `*.yml`; any other file is named once in a warning
// Proof of migrating.md: A file that cannot be read keeps the rules that were there
// Proof of migrating.md: A folder that no longer has rules files keeps its rules; the
// configuration's component of health is unhealthy then
// Proof of migrating.md: A folder of rules that is gone keeps the rules that were there
testLines(test, new URL('file-source.txt', import.meta.url), async (given, t) => {
  const { path: root, ...folder } = createRulesFolder(t);
  const at = (path = '') => join(root, path);
  /** A domain with its limit stands for a document, any other text for itself. */
  const toText = (text: string) => {
    const [, domain = '', limit] = /^(\w+)=(\d+)$/.exec(text) ?? [];
    return limit ? ruleText(domain, Number(limit)) : text.replaceAll('\\n', '\n');
  };
  let run: StartedSource | undefined;
  const started = () => run ?? t.fail('a step before the start');
  const reported = () => problemTexts(run?.loads.at(-1), root) || 'no problems';
  const start = async (...words: string[]) => {
    const settings = new Map(words.map((word) => word.split('=') as [string, string | undefined]));
    const has = (word: string) => settings.has(word);
    const options = {
      subdirectory: settings.get('subdirectory') ?? '',
      appDirectory: settings.get('app') ?? 'config',
      watchRoot: has('swapped'),
      ignoreDotFiles: has('without-dot-files'),
    };
    const deps = { ...(has('bounded') && { bounds }), ...(has('quick') && quick) };
    try {
      run = await startFileSource(t, at(settings.get('root')), options, deps);
      return run.limits() || 'no limits';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const steps: Record<string, (...words: string[]) => unknown> = {
    write: (path = '', ...text) => folder.write(path, toText(text.join(' '))),
    replace: (path = '', ...text) => folder.replace(path, toText(text.join(' '))),
    bytes: (path, hex = '') => writeFileSync(at(path), Buffer.from(hex, 'hex')),
    folder: (path) => void mkdirSync(at(path), { recursive: true }),
    link(path = '', target = '') {
      mkdirSync(dirname(at(path)), { recursive: true });
      folder.relink(path, target);
    },
    move: (from, to) => renameSync(at(from), at(to)),
    remove: (path) => rmSync(at(path), { recursive: true }),
    mode: (path, mode = '') => chmodSync(at(path), Number.parseInt(mode, 8)),
    start,
    becomes: (...limits) => started().becomes(limits.join(' ')),
    reports: (...words) => eventually('it is reported', () => reported().includes(words.join(' '))),
    loads: (count) => eventually('the loads', () => started().loads.length === Number(count)),
    'loads?': () =>
      started()
        .loads.map(({ ok }) => (ok ? 'good' : 'bad'))
        .join(' '),
    'problems?': reported,
    'limits?': () => started().limits(),
    'origin?': () => started().loads[0]?.origin,
    'describes?': () => started().source.describe(),
    'log?': () => started().log.lines.join('\n') || 'no line',
    'value?': (name = '') => String(started().metrics.snapshot().get(name)),
  };
  const results: unknown[] = [];
  for (const step of given.split('; ')) {
    const [verb = '', ...words] = step.trim().split(' ');
    const run = steps[verb];
    if (run === undefined) throw new Error(`no verb '${verb}': ${Object.keys(steps).join(', ')}`);
    const result = await run(...words);
    if (typeof result === 'string') results.push(result);
  }
  return results.join('; ').replaceAll(root, '').replaceAll('\n', ' / ');
});

test('an unchanged folder is not loaded again, however often it is polled', async (t) => {
  const folder = createRulesFolder(t, { 'config/a.yaml': ruleText('a', 1) });
  const { loads, becomes } = await startFileSource(t, folder.path, {}, quick);
  // Names that begin with two dots are not rules, but the system reports events for them.
  for (let i = 0; i < 5; i++) folder.write('config/..noise', String(i));
  folder.write('config/a.yaml', ruleText('a', 2));
  await becomes('a=2');
  t.true(loads.length <= 3, 'a rewritten file may be seen cut off and whole');
  t.true(loads.every((result) => result.ok));
});

test('a file that is still being written is not reported as invalid', async (t) => {
  const folder = createRulesFolder(t, { 'config/a.yaml': ruleText('a', 1) });
  const timing = { quiet: 5, patience: 20, settle: 1000, poll: 10_000 };
  const { loads, metrics, becomes } = await startFileSource(t, folder.path, {}, { timing });
  const attempts = () => metrics.counter('runtime.load_attempts').value;
  const before = attempts();
  folder.write('config/a.yaml', 'domain: a\ndescriptors:\n  - ke');
  await eventually('half of the file is read', () => attempts() > before);
  folder.write('config/a.yaml', ruleText('a', 2));
  await becomes('a=2');
  t.true(loads.every((result) => result.ok));
});

const ruleOptions = { mergeDomains: false, sanitizeMetricDots: false };

/** A source, and the files of each of its loads. */
async function startRecording(t: ExecutionContext, root: string) {
  const seen: (readonly RulesFile[])[] = [];
  const loadRules = createLoadRules(createRuleSetBuilder(ruleOptions));
  const load = (files: readonly RulesFile[]) => {
    seen.push(files);
    return loadRules(files);
  };
  return { seen, ...(await startFileSource(t, root, {}, { load })) };
}

test('only changed files are read again', async (t) => {
  const folder = createRulesFolder(t, { 'config/a.yaml': ruleText('a', 1) });
  folder.write('config/b.yaml', ruleText('b', 1));
  const { seen, becomes } = await startRecording(t, folder.path);
  folder.write('config/b.yaml', ruleText('b', 2));
  await becomes('a=1 b=2');
  t.is(seen.at(-1)?.[0], seen[0]?.[0]);
  t.not(seen.at(-1)?.[1], seen[0]?.[1]);
});

test('a large file that is rewritten with the same whole text is the same file', async (t) => {
  const folder = createRulesFolder(t);
  const large = (limit: number, end: string) =>
    `${ruleText('a', limit)}# ${'x'.repeat(300_000)}${end}\n`;
  folder.write('config/a.yaml', large(1, 'x'));
  folder.write('config/b.yaml', ruleText('b', 1));
  const { seen, becomes } = await startRecording(t, folder.path);
  folder.write('config/a.yaml', large(1, 'x'));
  folder.write('config/b.yaml', ruleText('b', 2));
  await becomes('a=1 b=2');
  t.is(seen.at(-1)?.[0], seen[0]?.[0]);
  folder.write('config/a.yaml', large(1, 'y'));
  folder.write('config/b.yaml', ruleText('b', 3));
  await becomes('a=1 b=3');
  t.not(seen.at(-1)?.[0], seen[0]?.[0]);
});

/** At least a hundred lines, so that it is parsed in the thread. */
function largeText(limit: number): string {
  const rules = Array.from(
    { length: 500 },
    (_, at) => `  - {key: k${at}, rate_limit: {unlimited: true}}`,
  );
  return `${ruleText('a', limit)}${rules.join('\n')}\n`;
}

test('a large file that is replaced while it is parsed is loaded with its final content', async (t) => {
  const folder = createRulesFolder(t, { 'config/a.yaml': largeText(1) });
  let parsed = 0;
  const log = createRecordedLog();
  const thread = createParsingThread({ log, clock: systemClock });
  t.teardown(() => thread.close());
  const load = createLoadRules(createRuleSetBuilder(ruleOptions), {
    ...thread,
    parse(text, file) {
      const document = thread.parse(text, file);
      if (++parsed === 1) folder.write('config/a.yaml', largeText(3));
      return document;
    },
  });
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
  const folder = createRulesFolder(t, { 'config/a.yaml': largeText(1) });
  const thread = createParsingThread({
    log: createRecordedLog(),
    clock: systemClock,
    startWorker: () =>
      new Worker('require("worker_threads").parentPort.on("message", () => { for (;;); })', {
        eval: true,
      }),
  });
  const asked = Promise.withResolvers<void>();
  const load = createLoadRules(createRuleSetBuilder(ruleOptions), {
    ...thread,
    parse(text, file) {
      asked.resolve();
      return thread.parse(text, file);
    },
  });
  const { source, loads, log } = await startFileSource(t, folder.path, {}, { load });
  folder.write('config/a.yaml', largeText(2));
  await asked.promise;
  await Promise.all([source.close(), thread.close()]);
  t.is(loads.length, 1);
  t.deepEqual(log.lines, []);
});

test('a defect of the loader becomes a failed load, not the end of the process', async (t) => {
  const folder = createRulesFolder(t, { 'config/a.yaml': ruleText('a', 1) });
  const load = () => {
    throw new TypeError('oops');
  };
  const { loads } = await startFileSource(t, folder.path, {}, { load });
  t.false(loads[0]?.ok);
  t.regex(problemTexts(loads[0], folder.path), /caused a defect of the program: TypeError: oops/);
});

test('after close nothing is delivered', async (t) => {
  const folder = createRulesFolder(t, { 'config/a.yaml': ruleText('a', 1) });
  const closed = await startFileSource(t, folder.path, {}, quick);
  const open = await startFileSource(t, folder.path, {}, quick);
  await closed.source.close();
  await closed.source.close();
  folder.write('config/a.yaml', ruleText('a', 2));
  await open.becomes('a=2');
  t.is(closed.loads.length, 1);
});

test('removing a link is not a change, and the link is loaded once recreated', async (t) => {
  const folder = createRulesFolder(t, { 'v1/limits/config/a.yaml': ruleText('a', 1) });
  folder.write('v2/limits/config/a.yaml', ruleText('a', 2));
  folder.relink('current', 'v1');
  const root = join(folder.path, 'current');
  const { loads, becomes } = await startFileSource(t, root, watchRoot, quick);
  const other = await startFileSource(t, root, { ...watchRoot, watchRoot: false }, quick);
  unlinkSync(root);
  await eventually('the other source polls as often', () => other.loads.at(-1)?.ok === false);
  t.is(loads.length, 1);
  folder.relink('current', 'v2');
  await becomes('a=2');
  t.is(loads.length, 2);
});

test('changes only inside of the folder are not loaded', async (t) => {
  const folder = createRulesFolder(t, { 'v1/limits/config/a.yaml': ruleText('a', 1) });
  folder.relink('current', 'v1');
  const root = join(folder.path, 'current');
  const swapped = await startFileSource(t, root, watchRoot, quick);
  const inPlace = await startFileSource(t, root, { ...watchRoot, watchRoot: false }, quick);
  folder.write('v1/limits/config/a.yaml', ruleText('a', 2));
  folder.write('v1/limits/config/b.yaml', ruleText('b', 2));
  await inPlace.becomes('a=2 b=2');
  t.is(swapped.loads.length, 1);
  folder.relink('current', 'v1');
  await swapped.becomes('a=2 b=2');
  t.is(swapped.loads.length, 2);
});

test('for a root that is not a link, the awaited event is logged, and once that its files were edited in place', async (t) => {
  const folder = createRulesFolder(t, { 'root/config/a.yaml': ruleText('a', 1) });
  const root = join(folder.path, 'root');
  const clock = createManualClock();
  const { log, limits } = await startFileSource(t, root, { watchRoot: true }, { clock });
  const awaited = `notice RUNTIME_ROOT ${root} is not a symlink: the rules are loaded again when it is replaced (RUNTIME_WATCH_ROOT=true), not when files in it change; to load them then, set RUNTIME_WATCH_ROOT=false`;
  t.deepEqual(log.lines, [awaited]);
  folder.write('root/config/a.yaml', ruleText('a', 200));
  let advancedMs = 0;
  await eventually('the problem is logged', () => {
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
  // A folder in its place is loaded, and reported once.
  folder.write('next/config/a.yaml', ruleText('a', 3));
  renameSync(root, join(folder.path, 'before'));
  renameSync(join(folder.path, 'next'), root);
  await eventually('the other folder', () => {
    clock.advance(10_000);
    return limits() === 'a=3';
  });
  t.is(log.lines.filter((line) => line.startsWith('warning')).length, 1);
});
