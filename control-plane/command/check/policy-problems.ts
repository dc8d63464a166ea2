// What is wrong with the policy beside rules, and the limits that it does not allow. What a change may be is
// known where the rules before it are: a control plane judges that.
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
