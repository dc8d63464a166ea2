// Which test files there are, which of them a person asked for, and which may run at once.
import { globSync, readFileSync } from 'node:fs';
import { matchesGlob } from 'node:path';

/** Tests that start servers and processes, and mostly wait for them: more of them run at once than there
 * are processors. */
const serverFolders = [
  'control-plane/store/',
  'test/conformance/',
  'test/contract/',
  'test/docs/',
  'test/e2e/',
  'test/faults/',
  'test/feature/',
  'test/fuzz/',
  'test/http2/',
];

/** Tests that measure how long others wait or how much memory is held while something goes wrong: what
 * runs beside them would be measured too. */
const measuring = [
  'test/e2e/outage.test.ts',
  'test/faults/',
  'test/feature/store-failure-latency.test.ts',
  'test/feature/tracing-stalled.test.ts',
  'test/fuzz/bounds.test.ts',
  'test/http2/attacks.test.ts',
];

export interface TestFiles {
  readonly sideBySide: readonly string[];
  readonly withServers: readonly string[];
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
    sideBySide: files.filter((file) => !startsServers(file) && !runsAlone(file)),
    withServers: files.filter((file) => startsServers(file) && !runsAlone(file)),
    alone: files.filter(runsAlone),
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

function startsServers(file: string): boolean {
  return serverFolders.some((folder) => file.startsWith(folder));
}

function runsAlone(file: string): boolean {
  return measuring.some((place) => file.startsWith(place));
}
