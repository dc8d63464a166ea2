// The texts of rules as commands are given them, whatever they were read from.
import type { Problem } from '../../../shared/rules/problem.ts';
import type { RulesFile } from '../../../shared/rules-file.ts';

/** The texts, and what was noticed while they were read. */
export interface RuleInput {
  readonly files: readonly RulesFile[];
  readonly problems: readonly Problem[];
  /** Which of the files is that of node groups, at the root of a store; undefined without one. */
  readonly nodeGroupsPath: string | undefined;
  /** The commit that was read; undefined outside of Git. */
  readonly commit: string | undefined;
}

/** `message`: why there is nothing to look at, without a final full stop. */
export type RuleInputResult =
  | { readonly ok: true; readonly input: RuleInput }
  | { readonly ok: false; readonly message: string };
