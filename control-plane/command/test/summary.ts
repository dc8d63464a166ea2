// The results of the tests, in numbers and in one line.
import { toCountText } from '../../../shared/count-text.ts';
import type { TestedFile, TestReport } from './run-test-files.ts';

export interface TestCounts {
  readonly tests: number;
  readonly failed: number;
  /** Files that could not be run. */
  readonly broken: number;
  readonly updated: number;
}

export function countTests(files: readonly TestedFile[]): TestCounts {
  const results = files.flatMap((file) => file.results);
  return {
    tests: results.length,
    failed: results.filter(({ failures }) => failures.length > 0).length,
    broken: files.filter(({ problems }) => problems.length > 0).length,
    updated: files.reduce((sum, { updated }) => sum + updated, 0),
  };
}

export function isGood({ files }: TestReport): boolean {
  const { failed, broken } = countTests(files);
  return failed + broken === 0;
}

export function summarize({ files }: TestReport): string {
  const { tests, failed, broken, updated } = countTests(files);
  const found = [
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(broken > 0 ? [`${toCountText(broken, 'file')} could not be run`] : []),
    ...(updated > 0 ? [`${toCountText(updated, 'value')} updated`] : []),
  ];
  const seen = `${toCountText(files.length, 'file')}, ${toCountText(tests, 'test')}`;
  return `${seen}: ${found.length > 0 ? found.join(', ') : 'all passed'}`;
}
