// Problems of the policy beside rules, and the limits that it does not allow. Whether a change is allowed can be
// told only where the rules before it are known: a control plane judges that.
import { isError, type Problem } from '../../../shared/rules/problem/problem.ts';
import { parsePolicy } from '../../policy/policy-file.ts';
import { findViolations } from '../../policy/violations.ts';
import type { LoadedRules } from '../input/rule-input.ts';

export function findPolicyProblems({ policy: file, documents, ruleSet }: LoadedRules): Problem[] {
  if (file === undefined) return [];
  const { policy, problems } = parsePolicy(file.text, file.path);
  // With errors it is unknown what the rules are.
  if (ruleSet === undefined || problems.some(isError)) return [...problems];
  return [...problems, ...findViolations(policy, documents).map(({ problem }) => problem)];
}
