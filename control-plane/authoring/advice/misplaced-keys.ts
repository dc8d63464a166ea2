// Keys at a place where they have no effect. A worker passes over them, as the reference does; whoever checks rules has to know
// that a limit is enforced, or is not, against what the file says.
import type { Problem } from '../../../shared/rules/problem/problem.ts';

/** The same problems, with these as errors. */
export function refuseMisplacedKeys(problems: readonly Problem[]): Problem[] {
  return problems.map((problem) =>
    problem.rule === 'misplaced-key' ? { ...problem, severity: 'error' } : problem,
  );
}
