// Finds what the tests of a folder do not notice: makes small defects in its sources, one at a time, runs the tests
// nearest to each, and lists the survivors. Works in a copy of the tree: nothing is changed in place.
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { listFiles } from '../support/listed-files.ts';
import { createRandom } from '../support/random.ts';
import { readFlags } from '../support/read-flags.ts';
import { createMutantTests, type Nearness } from './mutant-tests.ts';
import { findMutants, type Mutant } from './mutants.ts';

const root = join(import.meta.dirname, '..', '..');
/** The least time limit of a run; on a busy machine it is twice the time of all tests without a mutant. */
let timeoutMs = 120_000;
const firstTimeoutMs = 600_000;
/** Test files at once. */
const concurrency = 4;

interface Chosen {
  readonly path: string;
  readonly mutant: Mutant;
}

type Outcome = 'passes' | 'a test fails' | 'there is no end';

const usage = `Usage: npm run mutate -- FOLDER-OR-FILE ... [flags]

Makes small defects in the sources, one at a time, and names those that no test notices. Exit code 1 when more than
one in ten does. Asked are the tests that run the line, by coverage: those beside the source, those within three
imports and the contract suites; what survives them is shown to at most ten more, also of test/feature. Not asked are
tests of the console, documents, whole programs, faults, fuzz and HTTP/2, and what runs in a process of its own.

Left out is what is never a defect: what is no program, what changes types alone, a field that its constructor sets to
undefined (it is anyway), and whether the lesser or greater of two equal numbers is taken. Spans and sizes of 100 and
more (names that end in Ms, Seconds or Bytes) are halved and doubled, other numbers become one more and one less.

  --sample N  how many; default 40
  --seed N    which; default 1
`;

const flags = readFlags(usage, () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      sample: { type: 'string', default: '40' },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean' },
    },
  });
  const [count, seed] = [Number(values.sample), Number(values.seed)];
  const areGood = Number.isInteger(count) && count > 0 && Number.isInteger(seed);
  const isRun = areGood && positionals.length > 0 && values.help !== true;
  return isRun ? { count, seed, folders: positionals } : undefined;
});
const { count, seed, folders } = flags;

const files = listFiles();
const sources = files.filter(
  (path) =>
    folders.some((each) => path === each || path.startsWith(`${each.replace(/\/$/, '')}/`)) &&
    /(?<!\.test)\.ts$/.test(path),
);
const all = sources.flatMap((path) =>
  findMutants(readFileSync(join(root, path), 'utf8')).map((mutant) => ({ path, mutant })),
);
if (all.length === 0) {
  process.stderr.write(`there is nothing to change in ${folders.join(', ')}\n`);
  process.exit(2);
}
const copy = copyTree();
process.on('exit', () => rmSync(copy, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

const tests = createMutantTests(copy, files);
const sample = choose();
const left = await findSurvivors(sample, 'near');
const survivors = left.length === 0 ? [] : await findSurvivors(left, 'far');
for (const chosen of survivors) process.stdout.write(`SURVIVES ${nameOf(chosen)}\n`);
process.stdout.write(
  `${sample.length} of ${all.length} mutants (seed ${seed}): ${survivors.length} survive\n`,
);
process.exitCode = survivors.length * 10 > sample.length ? 1 : 0;

function choose(): Chosen[] {
  const random = createRandom(seed);
  const others = [...all];
  const chosen: Chosen[] = [];
  while (chosen.length < count && others.length > 0)
    chosen.push(...others.splice(random.below(others.length), 1));
  return chosen;
}

function nameOf({ path, mutant }: Chosen): string {
  const isKnown = tests.stages(path, mutant.offset, 'near').length > 0;
  const note = isKnown ? '' : ' (no test near it runs the line)';
  return `${path}:${mutant.line}${note}\n  - ${mutant.before.trim()}\n  + ${mutant.after.trim()}`;
}

/** The candidates in `some` that no test of this nearness notices. */
async function findSurvivors(some: readonly Chosen[], nearness: Nearness): Promise<Chosen[]> {
  await runUnchanged(tests.candidates([...new Set(some.map(({ path }) => path))], nearness));
  const surviving: Chosen[] = [];
  for (const [index, chosen] of some.entries()) {
    const outcome = await runTests(chosen, nearness);
    if (outcome === 'passes') surviving.push(chosen);
    const shown = outcome === 'passes' ? `survives ${nameOf(chosen)}` : `noticed: ${outcome}`;
    process.stdout.write(`${nearness} ${index + 1}/${some.length} ${shown}\n`);
  }
  return surviving;
}

/** Measures which tests run which lines, and how long they take. Excludes files with tests that fail anyway. Throws if
 * the failure is not a test of a file: then every mutant would seem to be noticed. */
async function runUnchanged(candidates: readonly string[]): Promise<void> {
  if (candidates.length === 0) return;
  const coverage = mkdtempSync(join(copy, 'coverage-'));
  const startedMs = performance.now();
  const failing: string[] = [];
  const outcome = await run(candidates, firstTimeoutMs, { failing, coverage });
  if (outcome === 'there is no end') throw new Error('as they are, there is no end of the tests');
  const unknown = failing.find((title) => !candidates.some((path) => isOf(path, title)));
  if (unknown !== undefined) throw new Error(`as they are, the tests cannot be run: ${unknown}`);
  timeoutMs = Math.max(timeoutMs, Math.ceil(2 * (performance.now() - startedMs)));
  for (const title of failing) process.stdout.write(`left out, as it fails anyway: ${title}\n`);
  tests.addCoverage(coverage);
  tests.leaveOut(candidates.filter((path) => failing.some((title) => isOf(path, title))));
  rmSync(coverage, { recursive: true });
}

/** Ava prefixes a test's title with its folders and file. */
function isOf(path: string, title: string): boolean {
  return title.startsWith(path.replace(/\.test\.ts$/, '').replaceAll('/', ' › '));
}

async function runTests({ path, mutant }: Chosen, nearness: Nearness): Promise<Outcome> {
  const target = join(copy, path);
  const before = readFileSync(target, 'utf8');
  const lines = before.split('\n');
  lines[mutant.line - 1] = mutant.after;
  writeFileSync(target, lines.join('\n'));
  try {
    for (const stage of tests.stages(path, mutant.offset, nearness)) {
      const outcome = await run(stage, timeoutMs);
      if (outcome !== 'passes') return outcome;
    }
    return 'passes';
  } finally {
    writeFileSync(target, before);
  }
}

function copyTree(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mutants-'));
  for (const path of files) cpSync(join(root, path), join(folder, path));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

interface Wanted {
  /** Receives the titles of failing tests. */
  readonly failing: string[];
  /** A folder for the coverage. */
  readonly coverage: string;
}

/** A run that exceeds the time limit counts as noticed, but is distinguished: on a busy machine it may not be. Rejects
 * if ava ends without the plan line that concludes its results: then it has not run. */
function run(some: readonly string[], timeout: number, wanted?: Wanted): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    let hasRun = false;
    const ava = join(copy, 'node_modules', '.bin', 'ava');
    const args = ['--tap', '--concurrency', String(concurrency), '--timeout', '60s', ...some];
    const child = spawn(ava, wanted === undefined ? ['--fail-fast', ...args] : args, {
      cwd: copy,
      // Programs are started from the sources, which contain the defect.
      env: {
        ...process.env,
        TEST_PROGRAMS: undefined,
        ...(wanted && { NODE_V8_COVERAGE: wanted.coverage }),
      },
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout,
    });
    createInterface(child.stdout).on('line', (line) => {
      const [, title] = /^not ok \d+ - (.*)/.exec(line) ?? [];
      if (title !== undefined) wanted?.failing.push(title);
      // Also for a file that never finishes loading, which no result names.
      hasRun ||= line.startsWith('1..');
    });
    child.on('error', reject);
    child.on('close', (code) => {
      if (child.killed) resolve('there is no end');
      else if (code === 0) resolve('passes');
      else if (hasRun) resolve('a test fails');
      else reject(new Error(`ava ended with code ${code} before its tests had run`));
    });
  });
}
