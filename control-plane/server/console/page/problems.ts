// The problems of rules, each with its line.
import { html } from 'htm/preact';
import type { ProblemJson } from '../../admin/problem-json.ts';
import { toSentence, toShown } from './format.ts';
import { Source } from './names.ts';
import { Badge } from './parts.ts';

const mostProblems = 20;
const tones = { error: 'bad', warning: 'wait', note: 'plain' } as const;

interface ProblemsProps {
  readonly problems: readonly ProblemJson[];
  /** The revision of the files; undefined if it is not in the store yet. */
  readonly revision: string | undefined;
}

export function Problems({ problems, revision }: ProblemsProps) {
  return html`<ul class="problems">${problems.slice(0, mostProblems).map(
    ({ severity, rule, file, line, column, message, hint, sourceLine }) => html`<li>
        <${Badge} tone=${tones[severity]}>${severity}<//>${' '}
        <code><${Source} file=${file} line=${line} column=${column} revision=${revision} hasFolder /></code>
        <div>${toSentence(message)}${severity !== 'error' && html` <code>${rule}</code>`}</div>
        ${sourceLine !== null && html`<pre tabindex="0">${toShown(sourceLine)}${column !== null && `\n${' '.repeat(Math.min(column - 1, 200))}^`}</pre>`}
        ${hint !== null && html`<div class="hint">${toSentence(hint)}</div>`}
      </li>`,
  )}</ul>
    ${problems.length > mostProblems && html`<p class="quiet">and ${problems.length - mostProblems} more</p>`}`;
}
