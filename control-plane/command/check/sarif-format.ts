// Problems in the Static Analysis Results Interchange Format, version 2.1.0, for code scanning.
import { isAbsolute, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { meaningOf } from '../../../shared/rules/problem/problem-rule.ts';
import type { LoadedRules } from '../input/rule-input.ts';

export function formatSarif({ problems, commit }: LoadedRules): string {
  const ids = [...new Set(problems.map(({ rule }) => rule))];
  const sarif = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'Ratelane',
            rules: ids.map((id) => ({
              id,
              shortDescription: { text: `${meaningOf(id)}.` },
            })),
          },
        },
        columnKind: 'utf16CodeUnits',
        ...(commit !== undefined && { properties: { commit } }),
        results: problems.map((problem) => toResult(problem, ids)),
      },
    ],
  };
  return `${JSON.stringify(sarif, undefined, 2)}\n`;
}

function toResult(problem: Problem, ids: readonly string[]) {
  const { severity, rule, message, hint, path } = problem;
  return {
    ruleId: rule,
    ruleIndex: ids.indexOf(rule),
    level: severity,
    message: { text: [message, ...(hint === undefined ? [] : [hint])].map(toSentence).join(' ') },
    locations: [
      {
        physicalLocation: toPhysicalLocation(problem),
        ...(path !== '' && { logicalLocations: [{ fullyQualifiedName: path }] }),
      },
    ],
  };
}

function toPhysicalLocation({ file, line, column, sourceLine }: Problem) {
  return {
    artifactLocation: { uri: toUri(file) },
    ...(line !== undefined && {
      region: {
        startLine: line,
        startColumn: column ?? 1,
        ...(sourceLine !== undefined && { snippet: { text: sourceLine } }),
      },
    }),
  };
}

function toSentence(text: string): string {
  return /[.?!]$/.test(text) ? text : `${text}.`;
}

/** Relative paths stay relative to the working directory or the repository's root. */
function toUri(file: string): string {
  if (isAbsolute(file)) return pathToFileURL(file).href;
  return file.split(sep).map(encodeURIComponent).join('/');
}
