// Runs tests, repeats all failures at the end, and finishes with exactly `N passed, N failed`.
//   node test/setup/run-tests.ts                      `npm test`: lint, types, unit tests, contracts, features
//   node test/setup/run-tests.ts --rest | --all       the rest of the tests; everything
//   node test/setup/run-tests.ts FILE|FOLDER|GLOB...  only the tests below these
// Lint and types count as one test each, and so does the audit of the packages; an audit without an answer does not
// count, and is reported in the last lines. Where CI=true, a test that is skipped, todo or marked failing is a failure.
import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { buildPrograms } from '../../compose/package/bundle.ts';
import { findTool } from '../support/installed-tool.ts';
import { findMarkedTests } from './marked-tests.ts';
import { auditPackages } from './package-audit.ts';
import { cpuOfEndedChildren, endProcessesBelow } from './process-tree.ts';
import { createTapReader, type TapReader } from './tap-reader.ts';
import { type Lane, planTests, type Stage, type TestFile } from './test-plan.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Set as in the package's scripts: programs that tests start begin a second sooner. */
const compileCache = join(root, 'node_modules', '.cache', 'compile');
/** Its sources are for browsers, which have other types. */
const consoleFolder = 'control-plane/server/console/page';
const isCi = process.env['CI'] === 'true';
const progressEveryMs = process.stdout.isTTY ? 5_000 : 20_000;
/** Longer than the time limit of a test, so that a test first reports what it waited for. */
const silenceLimit = '200s';
/** For programs that were asked to end. */
const endMs = 1_000;

class Run {
  readonly startedMs = Date.now();
  /** Lint, types, and whatever ava does not count itself. */
  passed = 0;
  readonly failures: { readonly title: string; readonly details: readonly string[] }[] = [];
  /** One for each run of ava, which also count while it runs. */
  readonly readers: TapReader[] = [];
  readonly children = new Set<ChildProcess>();
  /** Printed last, where they are read. */
  readonly notes: string[] = [];
  isEnding = false;

  fail(title: string, details: readonly string[] = []): void {
    this.failures.push({ title, details });
    printFailure(title, details);
  }

  /** A failure where CI=true, otherwise a line. */
  skip(what: string): void {
    if (isCi) this.fail(what);
    else this.notes.push(`NOT RUN: ${what}`);
  }
}

const run = new Run();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => void endEarly(signal));

const args = process.argv.slice(2);
const patterns = args.filter((arg) => !arg.startsWith('--'));
const isAll = args.includes('--all');
const isRest = args.includes('--rest');
const stages = planTests(root, patterns, isAll ? ['quick', 'rest'] : [isRest ? 'rest' : 'quick']);
const rooms = stages.flatMap(({ lanes }) => lanes.flatMap((lane) => lane.rooms));

reportMarked(rooms.flat().map(({ path }) => path));
if (rooms.length === 0) run.fail(`no test file matches ${patterns.join(' ')}`);
if (rooms.flat().some(({ needs }) => needs.commands.length > 0))
  await install('servers', ['--few']);
const tools = stages.some((stage) => stage.needsTools) ? install('tools', []) : undefined;
const checks = patterns.length === 0 ? runChecks() : undefined;
const programs = rooms.flat().some(({ path }) => path.startsWith('test/'))
  ? { TEST_PROGRAMS: await buildPrograms(join(root, 'node_modules', '.cache', 'programs')) }
  : {};
for (const stage of stages) {
  if (stage.needsTools) await tools;
  await runStage(stage);
}
await tools;
await checks;
finish();

async function runChecks(): Promise<void> {
  if (!isRest) {
    // A second checker would repeat half of the work, at the cost of the unit tests that run at the same time.
    const checking = ['--pretty', 'false', '--checkers', '1'];
    const types = [...checking, '--incremental', '--tsBuildInfoFile'];
    const state = (name: string) => [...types, `node_modules/.cache/${name}`];
    await runCheck('lint', 'biome', ['check', '--max-diagnostics=100']);
    await runCheck('types', 'tsc', state('types'));
    await runCheck('types of the console', 'tsc', [
      '-p',
      consoleFolder,
      ...state('types-of-console'),
    ]);
  }
  if (isRest || isAll) await runAudit();
}

/** A command that counts as one test; its output is shown when it fails. */
async function runCheck(name: string, command: string, flags: readonly string[]): Promise<void> {
  const startedMs = Date.now();
  const output: string[] = [];
  const path = join(root, 'node_modules', '.bin', command);
  const code = await execute(path, flags, {}, (line) => output.push(line));
  if (run.isEnding) return;
  if (code === 0) {
    run.passed += 1;
    print(`${name}: ok (${secondsSince(startedMs)} s)`);
  } else {
    run.fail(`${name} (${command} ${flags.join(' ')})`, output);
  }
}

/** Checks for known vulnerabilities in the programs' packages. Whether a registry has a list of them is beyond our
 * control: one without must not fail every run. */
async function runAudit(): Promise<void> {
  const audit = await auditPackages(root);
  if (audit.kind === 'vulnerable') {
    run.fail('audit (npm audit --omit=dev)', audit.found);
  } else if (audit.kind === 'unanswered') {
    run.notes.push(`NOT CHECKED: known vulnerabilities of the packages: ${audit.reason}`);
  } else {
    run.passed += 1;
    for (const line of audit.noted) print(`note: ${line}`);
  }
}

/** The script itself reports what it could not install, and what to do. */
async function install(what: string, flags: readonly string[]): Promise<void> {
  const startedMs = Date.now();
  const script = join(root, 'test', 'setup', 'install-servers.mjs');
  const code = await execute(process.execPath, [script, ...flags], {}, print);
  if (code !== 0 && !run.isEnding) run.fail(`set-up of ${what} (see above)`);
  if (Date.now() - startedMs > 1_000) print(`set-up of ${what}: ${secondsSince(startedMs)} s`);
}

async function runStage({ lanes }: Stage): Promise<void> {
  const cpuBefore = cpuOfEndedChildren();
  const startedMs = Date.now();
  await Promise.all(lanes.map(runLane));
  const names = lanes.map(({ name }) => name).join(', ');
  const cpu = Math.round(cpuOfEndedChildren() - cpuBefore);
  print(`${names}: ${secondsSince(startedMs)} s, ${cpu} CPU seconds`);
}

async function runLane({ name, rooms, processes, testsAtOnce }: Lane): Promise<void> {
  const runnable = rooms.map((room) => room.filter(isRunnable)).filter((room) => room.length > 0);
  if (runnable.length === 0) return;
  const startedMs = Date.now();
  const reader = createTapReader(({ title, details }) => run.fail(title, details));
  run.readers.push(reader);
  const summary = () =>
    `${name}: ${reader.passed} passed, ${reader.failed} failed, ${secondsSince(startedMs)} s`;
  print(`${name}: ${runnable.flat().length} files in ${runnable.length} processes`);
  const timer = setInterval(() => print(summary()), progressEveryMs);
  const paths = runnable.map((room) => room.map(({ path }) => join(root, path)));
  const leaders = runnable.map(([first]) => first?.path ?? '');
  const code = await execute(
    process.execPath,
    [
      join(root, 'node_modules', 'ava', 'entrypoints', 'cli.js'),
      '--tap',
      ...['--concurrency', String(processes)],
      ...['--timeout', silenceLimit],
      ...leaders,
    ],
    {
      RATELANE_TEST_ROOMS: JSON.stringify(
        Object.fromEntries(paths.filter((room) => room.length > 1).map((room) => [room[0], room])),
      ),
      RATELANE_TESTS_AT_ONCE: String(testsAtOnce),
      ...programs,
    },
    reader.readLine,
  );
  clearInterval(timer);
  reader.end();
  if (run.isEnding) return;
  print(summary());
  for (const title of reader.skipped) run.skip(title);
  if (!reader.complete) {
    run.fail(`${name}: ava ended early with code ${code}; tests may be missing above`);
  } else if (code !== 0 && reader.failed === 0) {
    run.fail(`${name}: ava ended with code ${code}`);
  }
}

function isRunnable({ path, needs }: TestFile): boolean {
  const missing = needs.commands.filter((names) => !names.split('|').some(findTool));
  if (missing.length === 0) return true;
  run.skip(`${path}: there is no ${missing.join(', no ').replaceAll('|', ' or ')}`);
  return false;
}

function reportMarked(paths: readonly string[]): void {
  for (const marked of findMarkedTests(root, paths)) {
    if (isCi) run.fail(`marked: ${marked}`);
    else print(`note: ${marked}`);
  }
}

/** Resolves with its exit code when all output was read. */
function execute(
  path: string,
  flags: readonly string[],
  env: Readonly<Record<string, string>>,
  onLine: (line: string) => void,
): Promise<number | string> {
  return new Promise((resolve) => {
    const child = spawn(path, flags, {
      cwd: root,
      // ava detects colours itself; forced ones would get into the TAP text.
      env: { ...process.env, FORCE_COLOR: '0', NODE_COMPILE_CACHE: compileCache, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    run.children.add(child);
    const isAva = flags.includes('--tap');
    createInterface({ input: child.stdout }).on('line', onLine);
    // Output of tests, and ava's own crashes: shown when it happens, separate from the results.
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (isAva) print(`  ! ${line}`);
      else onLine(line);
    });
    child.on('error', (error) => {
      onLine(error.message);
      resolve(error.message);
    });
    child.on('close', (code, signal) => {
      run.children.delete(child);
      resolve(code ?? String(signal));
    });
  });
}

/** Ends everything that was started, whatever its group. */
async function endEarly(signal: string): Promise<void> {
  if (run.isEnding) return;
  run.isEnding = true;
  run.fail(`the run was ended by ${signal}`);
  await endProcessesBelow(endMs);
  finish();
}

function finish(): never {
  const failed = run.failures.length;
  if (failed > 1) {
    print(`\nAll failures:`);
    for (const { title, details } of run.failures) printFailure(title, details);
    print('');
  }
  for (const line of run.notes) print(line);
  const passed = run.readers.reduce((sum, reader) => sum + reader.passed, run.passed);
  print(`in ${secondsSince(run.startedMs)} s, ${Math.round(cpuOfEndedChildren())} CPU seconds`);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  process.exit(failed === 0 ? 0 : 1);
}

function printFailure(title: string, details: readonly string[]): void {
  print(`\nFAILED ${title}`);
  for (const line of details) print(`  ${line}`);
}

function secondsSince(startedMs: number): string {
  return ((Date.now() - startedMs) / 1000).toFixed(1);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
