// The machine-readable outcome of rule tests. The shape is stable: fields may be added, but not changed or removed.
import { toProblemJson } from '../check/json-format.ts';
import type { TestReport } from './run-test-files.ts';
import { countTests, isGood } from './summary.ts';

/** One JSON object. `coverage` is null if it was not requested. */
export function formatJson(report: TestReport): string {
  const { files, coverage } = report;
  const json = {
    ok: isGood(report),
    ...countTests(files),
    files: files.map(({ file, problems, results, updated }) => ({
      file,
      problems: problems.map(toProblemJson),
      updated,
      tests: results.map(({ name, line, failures, durationMs }) => ({
        name,
        line: line ?? null,
        ok: failures.length === 0,
        durationMs,
        failures: failures.map(({ problem, actual }) => ({
          ...toProblemJson(problem),
          actual: actual ?? null,
        })),
      })),
    })),
    coverage: coverage ?? null,
  };
  return `${JSON.stringify(json, undefined, 2)}\n`;
}
