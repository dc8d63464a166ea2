// The rules that a command processes: from its options to documents with all their problems. path-input.ts and
// git-input.ts read the rules; server-input.ts fetches them from a control plane.
import type { Command } from 'commander';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { compareFiles } from '../../../shared/rules/file-order.ts';
import { isError, type Problem } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import type { RulesFile } from '../../../shared/rules-file.ts';
import { adviseOnRules } from '../../authoring/advice/rule-advice.ts';
import { type CheckedRules, checkRules } from '../../authoring/checked-rules.ts';
import type { CommandIo } from '../command-frame.ts';
import { readGitInput } from './git-input.ts';
import { readPathInput } from './path-input.ts';
import type { RuleInput, RuleInputResult } from './rule-texts.ts';

export interface RuleInputOptions {
  readonly git?: string;
  readonly rev?: string;
  readonly gitPath?: string;
  readonly mergeDomains?: boolean;
}

/** Adds the options shared by all commands on rules. */
export function addRuleInputOptions(command: Command): Command {
  return addGitOptions(command)
    .option('--rev <revision>', 'with --git: the branch, tag or commit to read (default: HEAD)')
    .option('--merge-domains', 'allow several files for one domain, as MERGE_DOMAIN_CONFIG does');
}

export function addGitOptions(command: Command): Command {
  return command
    .option('--git <url>', 'read from this Git repository; a path of a local one is fine')
    .option('--git-path <folder>', 'with --git: only files below this folder');
}

/** The mistake in the options that name rules; undefined without one. */
export function checkRuleInputOptions(
  paths: readonly string[],
  options: RuleInputOptions,
): string | undefined {
  const { git, rev, gitPath } = options;
  if (git === undefined) {
    if (rev !== undefined) return '--rev needs --git';
    if (gitPath !== undefined) return '--git-path needs --git';
    return paths.length === 0 ? 'no rules are named: give a PATH, or --git URL' : undefined;
  }
  return paths.length > 0
    ? 'PATH and --git exclude each other: --git-path names a part'
    : undefined;
}

export function readRuleInput(
  paths: readonly string[],
  options: RuleInputOptions,
  io: CommandIo,
): Promise<RuleInputResult> {
  const { git, rev = 'HEAD', gitPath = '' } = options;
  return git === undefined
    ? readPathInput(paths)
    : readGitInput({ url: git, revision: rev, folder: gitPath }, io);
}

export interface LoadedRules {
  readonly fileCount: number;
  readonly documents: readonly RuleDocument[];
  /** Undefined when there are errors. */
  readonly ruleSet: CheckedRules | undefined;
  /** Sorted by position. Does not include mistakes in the file of node groups. */
  readonly problems: readonly Problem[];
  readonly nodeGroups: RulesFile | undefined;
  readonly policy: RulesFile | undefined;
  readonly commit: string | undefined;
}

/** `nowMs`: the wall time that decides which rules have ended. */
export function loadRules(
  input: RuleInput,
  mergeDomains: boolean,
  fixedWindowsOnly = false,
  nowMs = Date.now(),
): LoadedRules {
  const nodeGroups = input.files.find(({ path }) => path === input.nodeGroupsPath);
  const policy = input.files.find(({ path }) => path === input.policyPath);
  const files = input.files.filter((file) => file !== nodeGroups && file !== policy);
  const parsed = files.map(({ path, text }) => parseRuleDocument(text, path));
  const documents = parsed.flatMap(({ document }) => document ?? []);
  const found = [...input.problems, ...parsed.flatMap((each) => each.problems)];
  const loaded = { fileCount: files.length, documents, nodeGroups, policy, commit: input.commit };
  if (documents.length === 0 && found.some(isError)) {
    return { ...loaded, ruleSet: undefined, problems: found.sort(comparePositions) };
  }
  const checked = checkRules(documents, { mergeDomains, fixedWindowsOnly }, nowMs);
  const problems = [
    ...found,
    ...(checked.ok ? checked.warnings : checked.problems),
    ...adviseOnRules(documents, nowMs),
  ];
  const ruleSet = checked.ok && !problems.some(isError) ? checked.rules : undefined;
  return { ...loaded, ruleSet, problems: problems.sort(comparePositions) };
}

/** Compares the files and positions of problems. */
export function comparePositions(a: Problem, b: Problem): number {
  if (a.file !== b.file) return compareFiles(a.file, b.file);
  // Problems of a whole file are last.
  const line = (a.line ?? Number.MAX_SAFE_INTEGER) - (b.line ?? Number.MAX_SAFE_INTEGER);
  return line !== 0 ? line : (a.column ?? 0) - (b.column ?? 0);
}
