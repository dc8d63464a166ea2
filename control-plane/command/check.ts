// `check`: reads rules and reports all their problems.

import { toCountText } from '../../shared/count-text.ts';
import { runAtOnce } from '../../shared/in-slices.ts';
import { findStoppingRules } from '../../shared/rules/lookup/stopping-rules.ts';
import { applyAllowances } from '../../shared/rules/problem/allowance.ts';
import { isError, isWarning, type Problem } from '../../shared/rules/problem/problem.ts';
import type { ProblemRule } from '../../shared/rules/problem/problem-rule.ts';
import type { RulesFile } from '../../shared/rules-file.ts';
import { refuseMisplacedKeys } from '../authoring/advice/rule-advice.ts';
import { findUnsafeKeys } from '../authoring/advice/unsafe-keys.ts';
import { findEnvoyProblems } from '../authoring/envoy/envoy-problems.ts';
import {
  acceptsShortKeysOnly,
  countsAllAlgorithms,
} from '../authoring/rehearsal/counting-backend.ts';
import {
  addCheckOptions,
  type CheckOptions,
  type Format,
  findMisuse,
} from './check/check-options.ts';
import { formatAsReference, readConfigDirectory } from './check/config-directory.ts';
import { formatGithub } from './check/github-format.ts';
import { formatHuman } from './check/human-format.ts';
import { formatJson } from './check/json-format.ts';
import { formatSarif } from './check/sarif-format.ts';
import { findPolicyProblems, findServedProblems } from './check/served-problems.ts';
import {
  type AddCommand,
  type CommandFrame,
  type CommandIo,
  type ExitCode,
  exitCodes,
} from './command-frame.ts';
import { readPathInput } from './input/path-input.ts';
import {
  comparePositions,
  type LoadedRules,
  loadRules,
  readRuleInput,
} from './input/rule-input.ts';

export const addCheck: AddCommand = (command, frame) => {
  command
    .description(
      'Reads rules as a worker does and reports every problem with its position. Named files are read whatever their names, below directories *.yaml and *.yml.',
    )
    .argument('[path...]', 'files and directories');
  addCheckOptions(command);
  command.action((paths: string[], options: CheckOptions) => {
    const misuse = findMisuse(paths, options);
    if (misuse !== undefined) command.error(`error: ${misuse}`, { exitCode: exitCodes.error });
    return options.config_dir === undefined
      ? checkRules(paths, options, frame)
      : checkDirectory(options.config_dir, options, frame);
  });
};

async function checkRules(
  paths: readonly string[],
  options: CheckOptions,
  frame: CommandFrame,
): Promise<void> {
  const { io, finish, fail } = frame;
  const { mergeDomains = false, maxResponseBytes, envoy = [], strict = false } = options;
  const { backend, replay, stopIncrement } = options;
  const read = await readRuleInput(paths, options, io);
  if (!read.ok) return fail(read.message);
  const envoyRead = await readPathInput(envoy);
  if (!envoyRead.ok) return fail(`--envoy ${envoyRead.message}`);
  const fixedWindowsOnly = backend !== undefined && !countsAllAlgorithms(backend);
  const loaded = loadRules(read.input, mergeDomains, fixedWindowsOnly);
  const served = findServedProblems(loaded, { mergeDomains, maxResponseBytes });
  const { files, problems } = envoyRead.input;
  // With errors, it is unknown what the rules match.
  const asked =
    envoy.length > 0 && loaded.ruleSet !== undefined
      ? findEnvoyProblems(loaded.documents, files, { isStrict: strict })
      : [];
  const byStore = [
    ...(stopIncrement === 'true'
      ? runAtOnce(findStoppingRules(loaded.documents, Number.POSITIVE_INFINITY))
      : []),
    ...(backend !== undefined && acceptsShortKeysOnly(backend)
      ? findUnsafeKeys(loaded.documents)
      : []),
  ];
  const added = [...byStore, ...served, ...findPolicyProblems(loaded), ...problems, ...asked];
  const rules = withFindings(loaded, added, [...read.input.files, ...files], options);
  if (replay !== undefined && rules.ruleSet !== undefined) {
    return checkReplay(replay, rules, options, frame);
  }
  io.write(format(rules, options, io));
  finish(toExitCode(rules, options));
}

/** Also checks which of the recorded decisions would differ under the rules. */
async function checkReplay(
  replay: readonly string[],
  rules: LoadedRules,
  options: CheckOptions,
  { io, finish, fail }: CommandFrame,
): Promise<void> {
  const { mergeDomains = false, strict = false, against } = options;
  const { replayDecisions } = await import('./check/replay.ts');
  const { documents } = rules;
  const replayed = await replayDecisions({ files: replay, against, documents, mergeDomains }, io);
  if (!replayed.ok) return fail(replayed.message);
  const { formatReplay, toReplayJson } = await import('./check/replay-format.ts');
  const { report } = replayed;
  if (options.json || options.format === 'json') {
    io.write(formatJson(rules, { replay: toReplayJson(report) }));
  } else {
    io.write(`${format(rules, options, io)}\n${formatReplay(report)}`);
  }
  const limits = report.summary.requests.newlyLimited > 0;
  finish(strict && limits ? exitCodes.no : toExitCode(rules, options));
}

/** Checks as the reference's config check does. */
async function checkDirectory(
  directory: string,
  options: CheckOptions,
  { io, finish }: CommandFrame,
): Promise<void> {
  const merge = options.merge_domain_configs ?? options.mergeDomains ?? false;
  const { input, lines } = await readConfigDirectory(directory);
  // The reference ignores misplaced keys.
  const rules = withFindings(loadRules(input, merge), [], input.files, options, (all) => all);
  const isFormatGiven = options.json || options.format !== undefined;
  io.write(
    isFormatGiven ? format(rules, options, io) : formatAsReference(rules, lines, io.isTerminal),
  );
  finish(toExitCode(rules, options));
}

function format(rules: LoadedRules, { json, format }: CheckOptions, io: CommandIo): string {
  return formatters[format ?? (json ? 'json' : 'human')](rules, io);
}

const formatters: Readonly<Record<Format, (rules: LoadedRules, io: CommandIo) => string>> = {
  human: (rules, { isTerminal, environment }) =>
    formatHuman(rules, {
      withColour: isTerminal && !environment['NO_COLOR'],
      withSummary: true,
    }),
  json: (rules) => formatJson(rules),
  sarif: formatSarif,
  github: formatGithub,
};

function toExitCode({ ruleSet, problems }: LoadedRules, { strict }: CheckOptions): ExitCode {
  return ruleSet === undefined || (strict && problems.some(isWarning))
    ? exitCodes.no
    : exitCodes.ok;
}

/** Adds problems to the rules, and removes the warnings and notes that comments or --allow permit. */
function withFindings(
  rules: LoadedRules,
  added: readonly Problem[],
  files: readonly RulesFile[],
  { allow = new Set() }: CheckOptions,
  refuse: (problems: readonly Problem[]) => readonly Problem[] = refuseMisplacedKeys,
): LoadedRules {
  const { problems, idle } = applyAllowances([...rules.problems, ...added], files);
  const isWanted = (problem: Problem) => isError(problem) || !allow.has(problem.rule);
  const wanted = reportOnce('worker-only-field', problems.filter(isWanted).sort(comparePositions));
  const refusal = refuse(wanted);
  const ruleSet = refusal.some(isError) ? undefined : rules.ruleSet;
  // With errors, not all checks have run.
  const rest = rules.ruleSet === undefined || added.some(isError) ? [] : idle.filter(isWanted);
  return { ...rules, ruleSet, problems: [...refusal, ...rest].sort(comparePositions) };
}

/** Problems that concern all workers are reported once per run: the first of each kind, and the number of other files
 * with it. */
function reportOnce(kind: ProblemRule, problems: readonly Problem[]): readonly Problem[] {
  const [first, ...others] = problems.filter(({ rule }) => rule === kind);
  const files = new Set(others.map(({ file }) => file));
  files.delete(first?.file ?? '');
  if (first === undefined || others.length === 0) return problems;
  const message = `${first.message}; the same holds for ${toCountText(files.size, 'more file')}`;
  const rest = problems.filter(({ rule }) => rule !== kind);
  return [...rest, { ...first, message: files.size === 0 ? first.message : message }];
}
