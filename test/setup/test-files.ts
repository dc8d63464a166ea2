// Which test files there are, which of them a person asked for, and which may run at once.
import { globSync, readFileSync } from 'node:fs';
import { matchesGlob } from 'node:path';

/** Tests that start servers and processes, and mostly wait for them: more of them run at once than there
 * are processors. */
const serverFolders = [
  'control-plane/store/',
  'test/conformance/',
  'test/console/',
  'test/contract/',
  'test/docs/',
  'test/e2e/',
  'test/faults/',
  'test/feature/',
  'test/fuzz/',
  'test/http2/',
];

/** Tests that break something for seconds and watch who waits how long: mostly idle, with bounds that
 * leave room for a busy machine, so that some of them run at once. */
const outages = [
  'test/faults/control-plane.test.ts',
  'test/faults/git.test.ts',
  'test/faults/memcached.test.ts',
  'test/faults/redis.test.ts',
  'test/feature/store/failure-latency.test.ts',
  'test/feature/output/tracing-stalled.test.ts',
];

/** Tests that measure how long others wait or how much memory is held under an attack: what runs beside
 * them would be measured too. */
const measuring = ['test/fuzz/bounds.test.ts', 'test/http2/attacks.test.ts'];

export interface TestFiles {
  readonly sideBySide: readonly string[];
  readonly withServers: readonly string[];
  readonly outages: readonly string[];
  readonly alone: readonly string[];
}

/**
 * @param root the project's folder
 * @param patterns files, folders or globs below it; empty means every test file
 */
export function findTestFiles(root: string, patterns: readonly string[]): TestFiles {
  const wanted = patterns.map((pattern) => pattern.replace(/^\.\//, '').replace(/\/$/, ''));
  const files = globSync('{shared,worker,control-plane,test}/**/*.test.ts', { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => wanted.length === 0 || wanted.some((pattern) => isBelow(file, pattern)))
    .sort();
  return {
    sideBySide: files.filter((file) => laneOf(file) === 'sideBySide'),
    withServers: files.filter((file) => laneOf(file) === 'withServers'),
    outages: files.filter((file) => laneOf(file) === 'outages'),
    alone: files.filter((file) => laneOf(file) === 'alone'),
  };
}

/** Marks in the source that TAP does not show: `failing` tests look passed, and `only` hides others. */
export function findMarkedTests(root: string, files: readonly string[]): string[] {
  return files.flatMap((file) =>
    readFileSync(`${root}/${file}`, 'utf8')
      .split('\n')
      .flatMap((line, index) => {
        const mark = /^\s*test(?:\.\w+)*\.(failing|only)\(/.exec(line)?.[1];
        return mark === undefined ? [] : [`${file}:${index + 1} (${mark})`];
      }),
  );
}

function isBelow(file: string, pattern: string): boolean {
  return file === pattern || file.startsWith(`${pattern}/`) || matchesGlob(file, pattern);
}

function laneOf(file: string): keyof TestFiles {
  const isIn = (places: readonly string[]) => places.some((place) => file.startsWith(place));
  if (isIn(measuring)) return 'alone';
  if (isIn(outages)) return 'outages';
  return isIn(serverFolders) ? 'withServers' : 'sideBySide';
}
