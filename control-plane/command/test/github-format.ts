// Formats failures and problems as workflow commands of GitHub Actions, which shows them beside the lines of a change.
import { escapeData, toAnnotation } from '../check/github-format.ts';
import type { TestReport } from './run-test-files.ts';
import { summarize } from './summary.ts';

/** One line for each problem and failure, and for each limit that no test reaches; then the summary. */
export function formatGithub(report: TestReport): string {
  const problems = report.files.flatMap(({ problems, results }) => [
    ...problems,
    ...results.flatMap(({ name, failures }) =>
      failures.map(({ problem }) => ({ ...problem, message: `${name}: ${problem.message}` })),
    ),
  ]);
  const missed = (report.coverage ?? []).filter(({ isReached }) => !isReached);
  const lines = [
    ...problems.map(toAnnotation),
    ...missed.map(
      ({ name, place }) => `::notice::${escapeData(`${place}: no test reaches ${name}`)}`,
    ),
    escapeData(summarize(report)),
  ];
  return lines.map((line) => `${line}\n`).join('');
}
