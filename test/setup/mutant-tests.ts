// Selects the tests that run a position in a source: by the imports that lead to it, and by the coverage of a run
// without a defect. Programs that a test starts as processes are not covered.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The most imports between a test and a source it is near to; a contract is near from any distance. */
const nearImports = 3;
/** The most tests that are not near: many of them start servers and take seconds. */
const maxFar = 10;
const slowFolders = /^test\/(?:console|docs|e2e|faults|fuzz|http2|bench)\//;

/** The relation of a test file to a source. */
export type Nearness = 'near' | 'far';

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

interface Script {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly Range[] }[];
}

/** `files` are paths below `root`, where the tests run. */
export function createMutantTests(root: string, files: readonly string[]) {
  const importers = readImporters(root, files);
  const rootUrl = `${pathToFileURL(root).href}/`;
  /** By source and test; a list for each thread of its process. */
  const covered = new Map<string, Map<string, Range[][]>>();
  /** Tests with coverage. A process that ended before writing it has none: its test counts as one that runs
   * everything. */
  const withCoverage = new Set<string>();
  const leftOut = new Set<string>();

  function isAsked(path: string, test: string, offset: number): boolean {
    if (leftOut.has(test)) return false;
    const lists = covered.get(path)?.get(test) ?? [];
    return !withCoverage.has(test) || lists.some((ranges) => isRun(ranges, offset));
  }

  function isNear(path: string, test: string, distance: number): boolean {
    if (test.startsWith('test/contract/') || dirname(test) === dirname(path)) return true;
    return distance <= nearImports && !test.startsWith('test/feature/');
  }

  function find(path: string, nearness: Nearness): string[] {
    return [...distancesFrom(path, importers)]
      .filter(([test]) => test.endsWith('.test.ts') && !slowFolders.test(test))
      .filter(([test, distance]) => isNear(path, test, distance) === (nearness === 'near'))
      .map(([test]) => test)
      .slice(0, nearness === 'near' ? undefined : maxFar);
  }

  function stages(path: string, offset: number, nearness: Nearness): string[][] {
    const tests = find(path, nearness).filter((test) => isAsked(path, test, offset));
    const own = tests.filter((test) => test === path.replace(/\.ts$/, '.test.ts'));
    const inFolder = tests.filter((test) => dirname(test) === dirname(path));
    const others = tests.filter((test) => dirname(test) !== dirname(path));
    const all =
      nearness === 'far' ? [tests] : [own, inFolder.filter((test) => !own.includes(test)), others];
    return all.filter((some) => some.length > 0);
  }

  function addCoverage(folder: string): void {
    const byProcess = new Map<string, Script[]>();
    for (const name of readdirSync(folder)) {
      const [, pid = ''] = name.split('-');
      const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8'));
      byProcess.set(pid, [...(byProcess.get(pid) ?? []), ...result]);
    }
    for (const scripts of byProcess.values()) {
      const ours = scripts
        .filter(({ url }) => url.startsWith(rootUrl) && !url.includes('/node_modules/'))
        .map(({ url, functions }) => ({ path: url.slice(rootUrl.length), functions }));
      const test = ours.find(({ path }) => path.endsWith('.test.ts'))?.path;
      if (test === undefined) continue;
      withCoverage.add(test);
      for (const { path, functions } of ours) {
        const byTest = covered.get(path) ?? new Map<string, Range[][]>();
        const lists = byTest.get(test) ?? [];
        lists.push(functions.flatMap(({ ranges }) => ranges));
        covered.set(path, byTest.set(test, lists));
      }
    }
  }

  return {
    /** Test files that may run one of the sources. */
    candidates: (sources: readonly string[], nearness: Nearness) => [
      ...new Set(sources.flatMap((path) => find(path, nearness))),
    ],
    /** Those that did run the position, in the order of use. */
    stages,
    /** Reads what V8 wrote to the folder NODE_V8_COVERAGE during a run of the tests. */
    addCoverage,
    /** Excludes these tests. */
    leaveOut(some: readonly string[]) {
      for (const each of some) leftOut.add(each);
    },
  };
}

/** The smallest range around the position decides. */
function isRun(ranges: readonly Range[], offset: number): boolean {
  let found: Range | undefined;
  for (const each of ranges) {
    if (each.startOffset > offset || each.endOffset <= offset) continue;
    if (found === undefined || sizeOf(each) < sizeOf(found)) found = each;
  }
  return found !== undefined && found.count > 0;
}

function sizeOf({ startOffset, endOffset }: Range): number {
  return endOffset - startOffset;
}

/** The number of imports between the source and each file that uses it, the nearest first. */
function distancesFrom(
  path: string,
  importers: ReadonlyMap<string, readonly string[]>,
): Map<string, number> {
  const distances = new Map([[path, 0]]);
  for (const [each, distance] of distances) {
    for (const importer of importers.get(each) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  }
  return distances;
}

/** By the imported file. */
function readImporters(root: string, files: readonly string[]): Map<string, string[]> {
  const importers = new Map<string, string[]>();
  for (const path of files.filter((each) => each.endsWith('.ts'))) {
    const text = readFileSync(join(root, path), 'utf8');
    for (const [, name = ''] of text.matchAll(/(?: from |import\(|import )'(\.[^']+)'/g)) {
      const target = normalize(join(dirname(path), name));
      importers.set(target, [...(importers.get(target) ?? []), path]);
    }
  }
  return importers;
}
