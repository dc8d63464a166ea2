// Formats problems for a user at a terminal.
import { styleText } from 'node:util';
import { toCountText } from '../../../shared/count-text.ts';
import { isError, isWarning, type Problem } from '../../../shared/rules/problem/problem.ts';
import { formatProblem } from '../../../shared/rules/problem/problem-text.ts';
import type { LoadedRules } from '../input/rule-input.ts';

export interface HumanFormatOptions {
  readonly withColour: boolean;
  /** Whether to add a last line with the totals. */
  readonly withSummary: boolean;
}

/** Lines with their line breaks. */
export function formatHuman(rules: LoadedRules, options: HumanFormatOptions): string {
  const { withColour, withSummary } = options;
  const { problems } = rules;
  const texts = problems.map(withColour ? formatInColour : formatProblem);
  if (withSummary) {
    const summary = summarize(rules);
    if (texts.length > 0) texts.push('');
    texts.push(withColour ? styled(summaryColour(problems), summary) : summary);
  }
  return texts.map((text) => `${text}\n`).join('');
}

export type Colour = 'red' | 'yellow' | 'cyan' | 'green';

const colours = { error: 'red', warning: 'yellow', note: 'cyan' } as const;

function summaryColour(problems: readonly Problem[]): Colour {
  if (problems.some(isError)) return 'red';
  return problems.some(isWarning) ? 'yellow' : 'green';
}

/** Like `formatProblem`, but in colour. */
export function formatInColour(problem: Problem): string {
  const { severity } = problem;
  const [heading = '', ...rest] = formatProblem(problem).split('\n');
  const word = heading.indexOf(`: ${severity}: `);
  const position = styleText('bold', heading.slice(0, word + 1), { validateStream: false });
  const message = heading.slice(word + 2 + severity.length);
  const style = colours[severity];
  return [
    `${position} ${styled(style, severity)}${message}`,
    ...rest.map((line) => (/^ +\^$/.test(line) ? styled(style, line) : line)),
  ].join('\n');
}

export function styled(style: Colour, text: string): string {
  return styleText(style, text, { validateStream: false });
}

/** One line: the number of files, and of problems. */
export function summarize(rules: LoadedRules): string {
  const { fileCount, ruleSet, problems } = rules;
  const errors = problems.filter(isError).length;
  const warnings = problems.filter(isWarning).length;
  const notes = problems.length - errors - warnings;
  const seen = [
    toCountText(fileCount, 'file'),
    ...(ruleSet
      ? [toCountText(ruleSet.domains.size, 'domain'), toCountText(ruleSet.limitCount, 'limit')]
      : []),
  ];
  const found = [
    ...(errors > 0 ? [toCountText(errors, 'error')] : []),
    ...(warnings > 0 ? [toCountText(warnings, 'warning')] : []),
    ...(notes > 0 ? [toCountText(notes, 'note')] : []),
  ];
  return `${seen.join(', ')}: ${found.length > 0 ? found.join(', ') : 'no problems'}`;
}
