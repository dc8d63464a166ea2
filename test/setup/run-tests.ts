// Runs lint, types and every test, and ends with exactly `N passed, N failed`.
//   npm test [-- <file, folder or glob> ...]
// With arguments only the tests below them run. Lint, types and the audit of the packages count as one
// test each; an audit that nobody answered counts as nothing, and the last lines say so. Where CI=true,
// a test that is skipped, todo or marked failing is a failure.
import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { auditPackages } from './package-audit.ts';
import { createTapReader, type TapReader } from './tap-reader.ts';
import { findMarkedTests, findTestFiles } from './test-files.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** As the package's scripts have it: programs that tests start begin a second sooner. */
const compileCache = fileURLToPath(new URL('../../node_modules/.cache/compile', import.meta.url));
/** Its sources are for browsers, which have other types. */
const consoleFolder = 'control-plane/console/page';
const isCi = process.env['CI'] === 'true';
const progressEveryMs = 5_000;
/** Lint, types, and what ava does not count by itself. */
const own = { passed: 0, failed: 0 };
/** One for each run of ava, counting also while it runs. */
const readers: TapReader[] = [];
const running = new Set<ChildProcess>();
/** Told last, where it is read. */
const notChecked: string[] = [];

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const child of running) child.kill('SIGTERM');
    fail(`the run was ended by ${signal}`);
    finish();
  });
}

const patterns = process.argv.slice(2);
const files = findTestFiles(root, patterns);
if (patterns.length === 0) {
  await Promise.all([
    runCheck('lint', 'biome', ['check', '--max-diagnostics=100']),
    runCheck('types', 'tsc', typesFlags('types')),
    runCheck('types of the console', 'tsc', [
      '-p',
      consoleFolder,
      ...typesFlags('types-of-console'),
    ]),
    runAudit(),
  ]);
}
for (const marked of findMarkedTests(root, [
  ...files.sideBySide,
  ...files.withServers,
  ...files.outages,
  ...files.alone,
])) {
  if (isCi) {
    fail(`marked: ${marked}`);
  } else {
    print(`note: ${marked}`);
  }
}
if (Object.values(files).every((lane) => lane.length === 0)) {
  fail(`no test file matches ${patterns.join(' ')}`);
}
await Promise.all([
  runTests('tests side by side', files.sideBySide, 2),
  runTests('tests of outages', files.outages, 3),
]);
await runTests('tests with servers', files.withServers, 5);
await runTests('tests alone', files.alone, 1);
finish();

/** Files that are as they were in the last run are not checked again; as `npm run types` has it. */
function typesFlags(state: string): string[] {
  return [
    '--pretty',
    'false',
    '--incremental',
    '--tsBuildInfoFile',
    `node_modules/.cache/${state}`,
  ];
}

/** A command that counts as one test; its output is shown when it fails. */
async function runCheck(name: string, command: string, args: readonly string[]): Promise<void> {
  const startedMs = Date.now();
  const output: string[] = [];
  const code = await run(command, args, (line) => output.push(line));
  const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
  if (code === 0) {
    own.passed += 1;
    print(`${name}: ok (${seconds} s)`);
  } else {
    fail(`${name} (${command} ${args.join(' ')})`, output);
  }
}

/** Known vulnerabilities of what the programs run with. Whether somebody answers is not ours to decide:
 * a registry without a list of them must not fail every run. */
async function runAudit(): Promise<void> {
  const audit = await auditPackages(root);
  if (audit.kind === 'vulnerable') {
    fail('audit (npm audit --omit=dev)', audit.found);
  } else if (audit.kind === 'unanswered') {
    notChecked.push(`NOT CHECKED: known vulnerabilities of the packages: ${audit.reason}`);
  } else {
    own.passed += 1;
    print('audit: ok');
    for (const line of audit.noted) print(`note: ${line}`);
  }
}

async function runTests(
  name: string,
  testFiles: readonly string[],
  concurrency: number,
): Promise<void> {
  if (testFiles.length === 0) {
    return;
  }
  const startedMs = Date.now();
  const reader = createTapReader(({ title, details }) => printFailure(title, details));
  readers.push(reader);
  const summary = (): string => {
    const seconds = Math.round((Date.now() - startedMs) / 1000);
    return `${name}: ${reader.passed} passed, ${reader.failed} failed, ${seconds} s`;
  };
  print(`${name}: ${testFiles.length} files`);
  const timer = setInterval(() => print(summary()), progressEveryMs);
  const flags = ['--concurrency', String(concurrency), '--timeout', '200s'];
  const code = await run('ava', ['--tap', ...flags, ...testFiles], reader.readLine);
  clearInterval(timer);
  reader.end();
  print(summary());
  for (const title of reader.skipped) {
    if (isCi) {
      fail(`not run: ${title}`);
    } else {
      print(`note: not run: ${title}`);
    }
  }
  if (!reader.complete) {
    fail(`${name}: ava ended early with code ${code}; tests may be missing above`);
  } else if (code !== 0 && reader.failed === 0) {
    fail(`${name}: ava ended with code ${code}`);
  }
}

/** Runs one of the installed commands; resolves with its exit code when all output was read. */
function run(
  command: string,
  args: readonly string[],
  onLine: (line: string) => void,
): Promise<number | string> {
  return new Promise((resolve) => {
    const child = spawn(join(root, 'node_modules', '.bin', command), args, {
      cwd: root,
      // ava finds colours out by itself; forced ones would get into the TAP text.
      env: { ...process.env, FORCE_COLOR: '0', NODE_COMPILE_CACHE: compileCache },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(child);
    createInterface({ input: child.stdout }).on('line', onLine);
    // What tests write, and ava's own crashes: shown where it happens, apart from the results.
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (command === 'ava') {
        print(`  ! ${line}`);
      } else {
        onLine(line);
      }
    });
    child.on('error', (error) => {
      onLine(error.message);
      resolve(error.message);
    });
    child.on('close', (code, signal) => {
      running.delete(child);
      resolve(code ?? String(signal));
    });
  });
}

function fail(title: string, details: readonly string[] = []): void {
  own.failed += 1;
  printFailure(title, details);
}

function printFailure(title: string, details: readonly string[]): void {
  print(`\nFAILED ${title}`);
  for (const line of details) {
    print(`  ${line}`);
  }
}

function finish(): never {
  for (const line of notChecked) print(line);
  const passed = readers.reduce((sum, reader) => sum + reader.passed, own.passed);
  const failed = readers.reduce((sum, reader) => sum + reader.failed, own.failed);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  process.exit(failed === 0 ? 0 : 1);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
