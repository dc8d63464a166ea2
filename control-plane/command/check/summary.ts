// Sums a check up in one line: the number of files, and of problems.
import { toCountText } from '../../../shared/count-text.ts';
import { isError, isWarning } from '../../../shared/rules/problem/problem.ts';
import type { LoadedRules } from '../input/rule-input.ts';

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
