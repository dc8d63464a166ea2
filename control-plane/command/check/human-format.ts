// Problems for a person at a terminal.
import { styleText } from 'node:util';
import { isError, isWarning, type Problem } from '../../../shared/rules/problem/problem.ts';
import { formatProblem } from '../../../shared/rules/problem/problem-text.ts';
import type { LoadedRules } from '../input/rule-input.ts';
import { summarize } from './summary.ts';

export interface HumanFormatOptions {
  readonly withColour: boolean;
  /** A last line that counts everything. */
  readonly withSummary: boolean;
}

/** Lines with their ends. */
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

/** Formats a problem as `formatProblem` does, in colour. */
export function formatInColour(problem: Problem): string {
  const { severity } = problem;
  const [heading = '', ...rest] = formatProblem(problem).split('\n');
  const word = heading.indexOf(`: ${severity}: `);
  const place = styleText('bold', heading.slice(0, word + 1), { validateStream: false });
  const message = heading.slice(word + 2 + severity.length);
  const style = colours[severity];
  return [
    `${place} ${styled(style, severity)}${message}`,
    ...rest.map((line) => (/^ +\^$/.test(line) ? styled(style, line) : line)),
  ].join('\n');
}

export function styled(style: Colour, text: string): string {
  return styleText(style, text, { validateStream: false });
}
