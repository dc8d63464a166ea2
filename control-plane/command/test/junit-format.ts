// Formats the outcome of rule tests as JUnit XML, which most CI systems show: a suite for each file. A file that cannot
// be run is one test case with errors.

import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { formatProblem } from '../../../shared/rules/problem/problem-text.ts';
import type { TestResult } from '../../authoring/rehearsal/rule-tests/run-tests.ts';
import type { TestedFile, TestReport } from './run-test-files.ts';

export function formatJunit({ files }: TestReport): string {
  const suites = files.map(toSuite);
  const total = suites.reduce(
    (sum, { tests, failures, errors }) => ({
      tests: sum.tests + tests,
      failures: sum.failures + failures,
      errors: sum.errors + errors,
    }),
    { tests: 0, failures: 0, errors: 0 },
  );
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="control-plane test"${toAttributes(total)}>`,
    ...suites.flatMap(({ lines }) => lines),
    '</testsuites>',
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function toSuite({ file, problems, results }: TestedFile) {
  const failures = results.filter((result) => result.failures.length > 0).length;
  const errors = problems.length > 0 ? 1 : 0;
  const tests = results.length + errors;
  const time = toSeconds(results.reduce((sum, { durationMs }) => sum + durationMs, 0));
  const attributes = toAttributes({ name: file, tests, failures, errors, time, file });
  const cases = results.map((result) => toCase(file, result));
  const broken = problems.map((problem) => toFinding('error', problem));
  return {
    ...{ tests, failures, errors },
    lines: [
      `  <testsuite${attributes}>`,
      ...(errors > 0
        ? [`    <testcase${toAttributes({ name: 'the file can be run', classname: file })}>`]
        : []),
      ...broken,
      ...(errors > 0 ? ['    </testcase>'] : []),
      ...cases.flat(),
      '  </testsuite>',
    ],
  };
}

function toCase(file: string, { name, failures, durationMs }: TestResult): readonly string[] {
  const attributes = toAttributes({ name, classname: file, time: toSeconds(durationMs) });
  if (failures.length === 0) return [`    <testcase${attributes}/>`];
  const findings = failures.map(({ problem }) => toFinding('failure', problem));
  return [`    <testcase${attributes}>`, ...findings, '    </testcase>'];
}

function toFinding(element: 'failure' | 'error', problem: Problem): string {
  const attributes = toAttributes({ type: problem.rule, message: problem.message });
  return `      <${element}${attributes}>${escapeXml(formatProblem(problem))}</${element}>`;
}

function toAttributes(attributes: Readonly<Record<string, string | number>>): string {
  return Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${escapeXml(String(value)).replaceAll('\n', '&#10;')}"`)
    .join('');
}

function toSeconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/** Characters that XML cannot represent become the replacement character. */
function escapeXml(text: string): string {
  return (
    text
      .toWellFormed()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is searched for
      .replaceAll(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '\ufffd')
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
  );
}
