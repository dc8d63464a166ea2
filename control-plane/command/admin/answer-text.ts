// Formats error answers of the admin API as text.
import { escapeText } from '../../../shared/rules/problem/escaped-text.ts';
import { formatProblems } from '../../../shared/rules/problem/problem-text.ts';
import { fromProblemJson, type ProblemJson } from '../../server/admin/problem-json.ts';
import type { JsonAnswer } from '../../server/json-call.ts';

/** Several lines, with their line breaks. */
export function formatRefusal({ status, value }: JsonAnswer): string {
  const { detail, title, errors } = (value ?? {}) as {
    detail?: unknown;
    title?: unknown;
    errors?: readonly { name?: unknown; reason?: unknown }[];
  };
  const text = [detail, title].find((each) => typeof each === 'string') ?? 'no reason was given';
  const hint = status === 401 ? '; set --token-file to a file with a token' : '';
  const fields = Array.isArray(errors)
    ? errors.map(({ name, reason }) => `  ${escapeText(`${name}: ${reason}`)}\n`).join('')
    : '';
  return `${formatRules(value)}error: ${escapeText(text)}${hint} (HTTP ${status})\n${fields}`;
}

/** The problems of rules in an answer, each with its position; '' if there are none. */
function formatRules(value: unknown): string {
  const { problems } = (value ?? {}) as { problems?: readonly ProblemJson[] };
  if (!Array.isArray(problems) || problems.length === 0) return '';
  return `${formatProblems(problems.map(fromProblemJson))}\n`;
}
