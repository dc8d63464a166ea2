// Problems that would prevent valid rules from being served to workers: a response that is too large (behaviour:
// response-size), mistakes in the file of node groups, and violations of the policy beside the rules.

import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { isError, type Problem } from '../../../shared/rules/problem/problem.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { parsePolicy } from '../../authoring/policy/policy-file.ts';
import { findViolations } from '../../authoring/policy/violations.ts';
import { buildSnapshots } from '../../server/snapshot/build.ts';
import { nodeGroupsFile } from '../../server/snapshot/node-groups.ts';
import type { LoadedRules } from '../input/rule-input.ts';

export interface ServedOptions {
  readonly mergeDomains: boolean;
  readonly maxResponseBytes: number;
}

/** Only problems that `rules` does not have already. */
export function findServedProblems(rules: LoadedRules, options: ServedOptions): Problem[] {
  const { documents, nodeGroups, ruleSet } = rules;
  if (ruleSet === undefined && nodeGroups === undefined) return [];
  const files = documents.map(({ file }) => ({ path: file, text: '' }));
  const known = new Map(documents.map((document) => [document.file, document]));
  const groups = nodeGroups === undefined ? [] : [{ path: nodeGroupsFile, text: nodeGroups.text }];
  const { rateLimitConfig } = loadProtos();
  const outcome = buildSnapshots({ files: [...files, ...groups], problems: [] }, options, {
    encode: (message) => rateLimitConfig.serialize(message),
    parse: (text, path) => {
      const document = known.get(path);
      return document ? { document, problems: [] } : parseRuleDocument(text, path);
    },
  });
  const problems = outcome.ok ? outcome.warnings : outcome.problems;
  return problems.flatMap((problem) => {
    if (nodeGroups !== undefined && problem.file === nodeGroupsFile) {
      // Without all rules, the domains are unknown.
      const isSure = isError(problem) || ruleSet !== undefined;
      return isSure ? [{ ...problem, file: nodeGroups.path }] : [];
    }
    return isError(problem) && problem.message.startsWith('the rules for node group')
      ? [problem]
      : [];
  });
}

/** Problems of the policy, and the limits that it does not allow. Only a control plane can judge whether a change is
 * allowed, since that depends on the previous rules. */
export function findPolicyProblems({ policy: file, documents, ruleSet }: LoadedRules): Problem[] {
  if (file === undefined) return [];
  const { policy, problems } = parsePolicy(file.text, file.path);
  // With errors, the rules are unknown.
  if (ruleSet === undefined || problems.some(isError)) return [...problems];
  return [...problems, ...findViolations(policy, documents).map(({ problem }) => problem)];
}
