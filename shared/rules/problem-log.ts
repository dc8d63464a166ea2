// Problems as lines of the log: one for each, with its parts as fields, and the last one says what
// follows from them all.
import type { LogDetail } from '../log.ts';
import type { Problem } from './problem.ts';
import { formatProblem, formatUngraded, toHeading } from './problem-text.ts';

/** More lines about one document or load help nobody; other places have as many as were found. */
const maxLines = 50;

/**
 * `write` is the method of the log for the severity of the problems, which has to be the same. Each line
 * begins with `start`; `consequence` ends the last one, and is a line by itself when there is no problem.
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
    file,
    ...(line !== undefined && { line }),
    ...(column !== undefined && { column }),
    ...(path !== '' && { path }),
    ...(rule !== 'other' && { rule }),
    ...(hint !== undefined && { hint }),
  };
  const shown = `${start}: ${formatUngraded(problem)}`;
  return { message: `${start}: ${toHeading(problem)}`, detail: { fields, shown } };
}
