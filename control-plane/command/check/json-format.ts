// Machine-readable problems. The shape is stable: fields may be added, but not changed or removed.

import { isError, isWarning, type Problem } from '../../../shared/rules/problem/problem.ts';
import type { LoadedRules } from '../input/rule-input.ts';

/** One JSON object; `domains` and `limits` are null when there are errors. `more` has further members. */
export function formatJson(
  { fileCount, commit, ruleSet, problems }: LoadedRules,
  more: Readonly<Record<string, unknown>> = {},
): string {
  const errors = problems.filter(isError).length;
  const warnings = problems.filter(isWarning).length;
  const json = {
    ok: ruleSet !== undefined,
    files: fileCount,
    commit: commit ?? null,
    domains: ruleSet?.domains.size ?? null,
    limits: ruleSet?.limitCount ?? null,
    errors,
    warnings,
    notes: problems.length - errors - warnings,
    problems: problems.map(toProblemJson),
    ...more,
  };
  return `${JSON.stringify(json, undefined, 2)}\n`;
}

export function toProblemJson(problem: Problem) {
  return {
    severity: problem.severity,
    rule: problem.rule,
    file: problem.file,
    line: problem.line ?? null,
    column: problem.column ?? null,
    path: problem.path,
    message: problem.message,
    hint: problem.hint ?? null,
    sourceLine: problem.sourceLine ?? null,
  };
}
