// Formats problems as workflow commands of GitHub Actions, which shows them beside the lines of a change.
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import type { LoadedRules } from '../input/rule-input.ts';
import { summarize } from './human-format.ts';

/** One line for each problem, then the summary. */
export function formatGithub(rules: LoadedRules): string {
  const lines = [...rules.problems.map(toAnnotation), escapeData(summarize(rules))];
  return lines.map((line) => `${line}\n`).join('');
}

export function toAnnotation(problem: Problem): string {
  const { severity, rule, file, line, column, path, message, hint } = problem;
  const properties = [
    ['file', file],
    ['line', line],
    ['col', line === undefined ? undefined : column],
    ['title', rule],
  ] as const;
  const shown = properties.flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${escapeProperty(String(value))}`],
  );
  const where = line === undefined && path !== '' ? `${path}: ` : '';
  const text = `${where}${message}${hint === undefined ? '' : `\nhint: ${hint}`}`;
  return `::${severity === 'note' ? 'notice' : severity} ${shown.join(',')}::${escapeData(text)}`;
}

export function escapeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
