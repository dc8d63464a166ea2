// Formats problems for a log or a terminal.
import type { LogDetail } from '../../log.ts';
import { escapeText } from './escaped-text.ts';
import { isError, type Problem } from './problem.ts';

/** Columns shown of a source line; a longer line is cut around the position. */
const maxShown = 100;
const indent = '    ';

/**
 * `path:line:column: error: message`, with the name of a warning or note in brackets; then the source line with a caret
 * under the position; then the hint. Several lines without a final line break; control characters are escaped.
 */
export function formatProblem(problem: Problem): string {
  return toText(problem, toHeading(problem, `${problem.severity}: `));
}

/** `formatProblem` without the severity, where the context shows it. */
function formatUngraded(problem: Problem): string {
  return toText(problem, toHeading(problem));
}

function toText({ column, hint, sourceLine }: Problem, heading: string): string {
  const lines = [heading];
  if (sourceLine !== undefined && sourceLine.trim() !== '') {
    const { text, caret } = toWindow(sourceLine, (column ?? 1) - 1);
    lines.push(indent + text, `${indent}${' '.repeat(caret)}^`);
  }
  if (hint !== undefined) lines.push(`${indent}hint: ${escapeText(hint)}`);
  return lines.join('\n');
}

/** The first line: `path:line:column: message`, with `before` before the message. */
export function toHeading(problem: Problem, before = ''): string {
  const { file, line, column, path, message, rule } = problem;
  const position = line === undefined ? '' : `:${line}:${column ?? 1}`;
  // Without lines, the path in the document is the only position.
  const where = line === undefined && path !== '' ? `${path}: ` : '';
  // The name by which a comment can allow it.
  const name = isError(problem) || rule === 'other' ? '' : ` [${rule}]`;
  return escapeText(`${file}${position}: ${before}${where}${message}${name}`);
}

/** All problems, each as `formatProblem` formats it. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map(formatProblem).join('\n');
}

/** The part of a line around `index`, and the number of columns before the caret. */
function toWindow(line: string, index: number): { text: string; caret: number } {
  let start = 0;
  if (line.length > maxShown) {
    start = Math.max(0, Math.min(index - maxShown / 2, line.length - maxShown));
    if (isLowSurrogate(line, start)) start++;
  }
  let end = Math.min(line.length, start + maxShown);
  if (isLowSurrogate(line, end)) end--;
  const before = (start > 0 ? '...' : '') + escapeText(line.slice(start, index));
  const after = escapeText(line.slice(Math.max(index, start), end));
  return {
    text: before + after + (end < line.length ? '...' : ''),
    caret: [...before].length,
  };
}

function isLowSurrogate(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  return code >= 0xdc00 && code <= 0xdfff;
}

/** The most problems of a document or load that are logged; pages and reports list all of them. */
const maxLines = 50;

/**
 * `write` logs at the severity of the problems, which must be the same for all. Each line begins with `start`;
 * `consequence` ends the last line, and is the only line where there are no problems.
 */
export function logProblems(
  write: (message: string, detail?: LogDetail) => void,
  problems: readonly Problem[],
  start: string,
  consequence?: string,
): void {
  const unlike = new Map(problems.map((problem) => [formatProblem(problem), problem]));
  const lines = [...unlike.values()].slice(0, maxLines).map((problem) => toLine(problem, start));
  const more = unlike.size - lines.length;
  if (more > 0) lines.push({ message: `${start}: ${more} more` });
  if (consequence !== undefined) {
    const { message = start, detail } = lines.pop() ?? {};
    const shown = detail && { ...detail, shown: `${detail.shown}\n${consequence}` };
    lines.push({ message: `${message}; ${consequence}`, ...(shown && { detail: shown }) });
  }
  for (const { message, detail } of lines) write(message, detail);
}

interface Line {
  readonly message: string;
  readonly detail?: LogDetail;
}

function toLine(problem: Problem, start: string): Line {
  const { rule, file, line, column, path, hint } = problem;
  const fields = {
    ...{ file, line, column, hint },
    path: path === '' ? undefined : path,
    rule: rule === 'other' ? undefined : rule,
  };
  const shown = `${start}: ${formatUngraded(problem)}`;
  return { message: `${start}: ${toHeading(problem)}`, detail: { fields, shown } };
}
