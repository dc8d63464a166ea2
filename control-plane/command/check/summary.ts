// What was looked at, and what was found, in one line.
import type { LoadedRules } from '../input/rule-input.ts';

export function summarize(rules: LoadedRules): string {
  const { fileCount, ruleSet, problems } = rules;
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const warnings = problems.length - errors;
  const seen = [
    count(fileCount, 'file'),
    ...(ruleSet ? [count(ruleSet.domainCount, 'domain'), count(ruleSet.limitCount, 'limit')] : []),
  ];
  const found = [
    ...(errors > 0 ? [count(errors, 'error')] : []),
    ...(warnings > 0 ? [count(warnings, 'warning')] : []),
  ];
  return `${seen.join(', ')}: ${found.length > 0 ? found.join(', ') : 'no problems'}`;
}

export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
