// Shows what the tests of a folder do not notice: makes small defects in its sources, one at a time, runs the
// tests nearest to each, and names those that survive. In a copy of the tree: nothing is changed in place.
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { listFiles } from '../support/listed-files.ts';
import { createRandom } from '../support/random.ts';
import { findMutants, type Mutant } from './mutants.ts';

const root = join(import.meta.dirname, '..', '..');
/** The least that a run may take; on a busy machine it is twice what all tests took without a mutant. */
let timeoutMs = 120_000;
const firstTimeoutMs = 600_000;
/** Imports between a test and a source that still make it one of its tests. */
const maxDistance = 3;
type Outcome = 'passes' | 'a test fails' | 'there is no end';

const slowFolders = /^test\/(?:console|docs|e2e|faults|fuzz|http2|bench)\//;

const usage = `Usage: npm run mutate -- FOLDER-OR-FILE ... [flags]

Makes small defects in the sources, one at a time, runs the tests nearest to each, and names those that survive. Exit
code 1 when more than one in twenty does.

  --sample N  how many; default 40
  --seed N    which; default 1
`;

function parse() {
  try {
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
    return isRun ? { count, seed, places: positionals } : undefined;
  } catch {
    return undefined;
  }
}

const flags = parse();
if (flags === undefined) {
  process.stderr.write(usage);
  process.exit(2);
}
const { count, seed, places } = flags;

const files = listFiles();
const sources = files.filter(
  (path) =>
    places.some((each) => path === each || path.startsWith(`${each.replace(/\/$/, '')}/`)) &&
    /(?<!\.test)\.ts$/.test(path),
);
const all = sources.flatMap((path) =>
  findMutants(readFileSync(join(root, path), 'utf8')).map((mutant) => ({ path, mutant })),
);
const imports = readImports();
const copy = copyTree();
process.on('exit', () => rmSync(copy, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

const sample = choose();
const tests = new Set(sample.flatMap(({ path }) => findTests(path).flat()));
const startedMs = performance.now();
const failing: string[] = [];
const unchanged = await run([...tests], firstTimeoutMs, failing);
if (unchanged !== 'passes') throw new Error(`as they are, ${unchanged}: ${failing.join('; ')}`);
timeoutMs = Math.max(timeoutMs, Math.ceil(2 * (performance.now() - startedMs)));
const survivors: string[] = [];
for (const [index, { path, mutant }] of sample.entries()) {
  const outcome = await runTests(path, mutant);
  const isNoticed = outcome !== 'passes';
  const name = `${path}:${mutant.line}\n  - ${mutant.before.trim()}\n  + ${mutant.after.trim()}`;
  if (!isNoticed) survivors.push(name);
  process.stdout.write(
    `${index + 1}/${sample.length} ${isNoticed ? `noticed: ${outcome}` : `SURVIVES ${name}`}\n`,
  );
}
process.stdout.write(
  `${sample.length} of ${all.length} mutants (seed ${seed}): ${survivors.length} survive\n`,
);
process.exitCode = survivors.length * 20 > sample.length ? 1 : 0;

function choose(): (typeof all)[number][] {
  const random = createRandom(seed);
  const left = [...all];
  const chosen: (typeof all)[number][] = [];
  while (chosen.length < count && left.length > 0) {
    chosen.push(...left.splice(random.below(left.length), 1));
  }
  return chosen;
}

async function runTests(path: string, mutant: Mutant): Promise<Outcome> {
  const place = join(copy, path);
  const before = readFileSync(place, 'utf8');
  const lines = before.split('\n');
  lines[mutant.line - 1] = mutant.after;
  writeFileSync(place, lines.join('\n'));
  try {
    for (const stage of findTests(path)) {
      const outcome = await run(stage, timeoutMs);
      if (outcome !== 'passes') return outcome;
    }
    return 'passes';
  } finally {
    writeFileSync(place, before);
  }
}

/** Those of the same name first, then those of the folder, then others that import it, and contracts. */
function findTests(path: string): string[][] {
  const stages: string[][] = [[], [], []];
  for (const [test, distance] of distancesFrom(path)) {
    if (!test.endsWith('.test.ts') || slowFolders.test(test)) continue;
    if (test === path.replace(/\.ts$/, '.test.ts')) stages[0]?.push(test);
    else if (dirname(test) === dirname(path)) stages[1]?.push(test);
    else if (distance === 1 || test.startsWith('test/contract/')) stages[2]?.push(test);
  }
  return stages.filter((some) => some.length > 0);
}

/** Of those that import it, also through others. */
function distancesFrom(path: string): Map<string, number> {
  const distances = new Map([[path, 0]]);
  for (const [each, distance] of distances) {
    if (distance === maxDistance) continue;
    for (const importer of imports.get(each) ?? []) {
      if (!distances.has(importer)) distances.set(importer, distance + 1);
    }
  }
  return distances;
}

/** By what is imported. */
function readImports(): Map<string, string[]> {
  const importers = new Map<string, string[]>();
  for (const path of files.filter((each) => each.endsWith('.ts'))) {
    const text = readFileSync(join(root, path), 'utf8');
    for (const [, name = ''] of text.matchAll(/ from '(\.[^']+)'/g)) {
      const target = normalize(join(dirname(path), name));
      importers.set(target, [...(importers.get(target) ?? []), path]);
    }
  }
  return importers;
}

function copyTree(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mutants-'));
  for (const path of files) cpSync(join(root, path), join(folder, path));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** `failing` gets the titles of tests that fail. A run without an end is one that has noticed, and told apart: on a busy machine it may be none. */
function run(some: readonly string[], timeout: number, failing?: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    const ava = join(copy, 'node_modules', '.bin', 'ava');
    const args = ['--fail-fast', '--tap', '--concurrency', '2', '--timeout', '60s', ...some];
    const child = spawn(ava, args, { cwd: copy, stdio: ['ignore', 'pipe', 'ignore'], timeout });
    createInterface(child.stdout).on('line', (line) => {
      const [, title] = /^not ok \d+ - (.*)/.exec(line) ?? [];
      if (title !== undefined) failing?.push(title);
    });
    child.on('error', () => resolve('a test fails'));
    child.on('close', (code) => {
      if (child.killed) resolve('there is no end');
      else resolve(code === 0 ? 'passes' : 'a test fails');
    });
  });
}
