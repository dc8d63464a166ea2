// Describes a failed test: the line of the test, and the last output of the programs that it had started.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { ProgramOfTest } from '../support/programs-of-test.ts';

const linesOfProgram = 15;
/** `at f (file:///a/b.ts:1:2)` and `at /a/b.ts:1:2`. */
const frame = /(?:file:\/\/)?(\/[^\s()]+?\.m?[jt]s)(?:\?own)?:(\d+):\d+\)?$/;

/**
 * @param error what the test ended with; undefined where an assertion failed without ending it
 * @param path the test file
 * @param root the project's folder; both are absolute
 */
export function describeFailure(
  error: unknown,
  path: string,
  root: string,
  programs: readonly ProgramOfTest[],
): string {
  const lines = [
    ...describePosition(error, path, root),
    ...programs.flatMap(({ command, outcome, lastLines }) => [
      `${command} (${outcome()}) wrote last:`,
      ...lastLines(linesOfProgram).map((line) => `| ${line}`),
    ]),
  ];
  return lines.join('\n');
}

/** The line of the test, and the line within the project at which the error occurred, if it differs. */
function describePosition(error: unknown, path: string, root: string): string[] {
  const frames = stackOf(error)
    .split('\n')
    .flatMap((line) => {
      const [, file = '', number = ''] = frame.exec(line) ?? [];
      return file.startsWith(root) && !file.includes('/node_modules/')
        ? [{ file, number: Number(number) }]
        : [];
    })
    .filter(({ file }) => !file.endsWith('/test/setup/each-test.ts'));
  const inTest = frames.find(({ file }) => file === path);
  const [first] = frames;
  const shown = [...new Set([inTest, first])].filter((each) => each !== undefined);
  return shown.map(
    ({ file, number }) => `at ${relative(root, file)}:${number}: ${lineOf(file, number)}`,
  );
}

/** ava keeps the stack of the assertion separately; a failed `t.notThrows` has the unexpected error. */
function stackOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { assertionStack, stack, cause } = error as Record<string, unknown>;
  return [cause === undefined ? '' : stackOf(cause), assertionStack ?? stack ?? ''].join('\n');
}

function lineOf(file: string, number: number): string {
  try {
    return readFileSync(file, 'utf8').split('\n')[number - 1]?.trim() ?? '';
  } catch {
    return '';
  }
}
