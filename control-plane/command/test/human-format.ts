// Formats the outcome of rule tests for a user at a terminal.
import { toCountText } from '../../../shared/count-text.ts';
import { escapeText } from '../../../shared/rules/problem/escaped-text.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { formatProblem } from '../../../shared/rules/problem/problem-text.ts';
import { type Colour, formatInColour, styled } from '../check/human-format.ts';
import type { TestedFile, TestReport } from './run-test-files.ts';
import { isGood, summarize } from './summary.ts';

/** Lines with their line breaks: first one for each file, then the failures, then coverage and the summary. */
export function formatHuman(report: TestReport, withColour: boolean): string {
  const show = (colour: Colour, text: string) => (withColour ? styled(colour, text) : text);
  const showProblem = withColour ? formatInColour : formatProblem;
  const ran = report.files.map((file) => `${escapeText(describeFile(file))}`);
  const wrong = report.files.flatMap(({ problems, results }) => [
    ...toBlock(problems.map(showProblem)),
    ...results.flatMap(({ name, failures }) =>
      failures.length === 0
        ? []
        : toBlock([
            show('red', `failed: ${escapeText(name)}`),
            ...failures.map(({ problem }: { readonly problem: Problem }) => showProblem(problem)),
          ]),
    ),
  ]);
  const lines = [
    ...ran,
    ...wrong,
    ...describeCoverage(report),
    '',
    show(isGood(report) ? 'green' : 'red', summarize(report)),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function toBlock(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ['', ...lines];
}

function describeFile({ file, problems, results, updated }: TestedFile): string {
  const failed = results.filter(({ failures }) => failures.length > 0).length;
  const tests = toCountText(results.length, 'test');
  const written = updated > 0 ? `, ${toCountText(updated, 'value')} updated` : '';
  if (problems.length > 0) return `${file}: not run${written}`;
  return failed === 0
    ? `${file}: ${tests} passed${written}`
    : `${file}: ${failed} of ${tests} failed${written}`;
}

function describeCoverage({ coverage }: TestReport): readonly string[] {
  if (coverage === undefined) return [];
  const missed = coverage.filter(({ isReached }) => !isReached);
  const reached = coverage.length - missed.length;
  const limits = toCountText(coverage.length, 'limit');
  return toBlock([
    `coverage: ${reached} of ${limits} reached${missed.length > 0 ? '; no test reaches' : ''}`,
    ...missed.map(({ name, place }) => escapeText(`  ${place}: ${name}`)),
  ]);
}
