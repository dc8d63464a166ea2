// The texts of rules for commands, from any source.
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import type { RulesFile } from '../../../shared/rules-file.ts';

/** The texts, and the problems in reading them. */
export interface RuleInput {
  readonly files: readonly RulesFile[];
  readonly problems: readonly Problem[];
  /** The file of node groups, at the root of a store; undefined without one. */
  readonly nodeGroupsPath: string | undefined;
  /** The file of the policy, at the root of a store; undefined without one. */
  readonly policyPath: string | undefined;
  /** The commit that was read; undefined outside of Git. */
  readonly commit: string | undefined;
}

/** `message`: why there are no rules to read, without a final full stop. */
export type RuleInputResult =
  | { readonly ok: true; readonly input: RuleInput }
  | { readonly ok: false; readonly message: string };
