// `check`: reads rules and reports everything that is wrong with them.
import { Option } from 'commander';
import { didYouMean, nearestWord } from '../../shared/nearest-word.ts';
import { applyAllowances } from '../../shared/rules/allowance.ts';
import { isError, isWarning, type Problem } from '../../shared/rules/problem.ts';
import { advisoryRules } from '../../shared/rules/problem-rule.ts';
import type { RulesFile } from '../../shared/rules-file.ts';
import { findEnvoyProblems } from '../envoy/envoy-problems.ts';
import { defaultMaxResponseBytes } from '../snapshot/build.ts';
import { formatGithub } from './check/github-format.ts';
import { formatHuman } from './check/human-format.ts';
import { formatJson } from './check/json-format.ts';
import { findPolicyProblems } from './check/policy-problems.ts';
import { formatSarif } from './check/sarif-format.ts';
import { findServedProblems } from './check/served-problems.ts';
import { type AddCommand, describeExitCodes, type ExitCode, exitCodes } from './command-frame.ts';
import { readConfigDirectory } from './input/config-directory.ts';
import { readPathInput } from './input/path-input.ts';
import {
  addRuleInputOptions,
  checkRuleInputOptions,
  comparePlaces,
  type LoadedRules,
  loadRules,
  type RuleInputOptions,
  readRuleInput,
} from './input/rule-input.ts';

const formats = ['human', 'json', 'sarif', 'github'] as const;
type Format = (typeof formats)[number];

interface CheckOptions extends RuleInputOptions {
  readonly format?: Format;
  readonly json?: boolean;
  readonly config_dir?: string;
  readonly merge_domain_configs?: boolean;
  readonly maxResponseBytes: number;
  readonly backend?: string;
  readonly envoy?: readonly string[];
  readonly strict?: boolean;
  readonly allow?: ReadonlySet<string>;
  readonly replay?: readonly string[];
  readonly against?: string;
}

export const addCheck: AddCommand = (program, { io, finish, fail }) => {
  const command = program
    .command('check')
    .summary('find what is wrong with rules')
    .description(
      'Reads rules as a worker does and reports every problem with its place. Named files are read whatever their names, below directories *.yaml and *.yml.',
    )
    .argument('[path...]', 'files and directories');
  addRuleInputOptions(command)
    .addOption(new Option('--format <format>', 'how to print (default: human)').choices(formats))
    .option('--json', 'the same as --format json')
    .addOption(
      new Option(
        '--max-response-bytes <number>',
        'refuse rules that would make a larger response to workers',
      )
        .default(defaultMaxResponseBytes)
        .argParser(parseBytes),
    )
    .option(
      '--envoy <path>',
      'hold the rules against this Envoy configuration; repeat it for several',
      (path: string, earlier: readonly string[] | undefined) => [...(earlier ?? []), path],
    )
    .addOption(
      new Option(
        '--backend <backend>',
        'BACKEND_TYPE of the workers: memcache refuses what it cannot count',
      ).choices(['redis', 'memcache', 'memory']),
    )
    .addOption(
      new Option(
        '--allow <name>',
        'do not tell this kind of warning or note; repeat it for several',
      ).argParser(addAllowed),
    )
    .option(
      '--strict',
      'warnings fail too; with --envoy, a descriptor that no rule matches is an error',
    )
    .option(
      '--replay <file>',
      'tell what the rules would change for decisions that a worker recorded; repeat it for several files',
      (path: string, earlier: readonly string[] | undefined) => [...(earlier ?? []), path],
    )
    .option(
      '--against <path>',
      'with --replay: compare with these rules, not with the recorded answers',
    )
    .option('--config_dir <dir>', "check one directory as the reference's config check does")
    .option('--merge_domain_configs', 'with --config_dir: the same as --merge-domains')
    .addHelpText(
      'after',
      `
The name of a warning or note stands in brackets after it. A comment '# ratelane: allow NAME' in a rules file allows it: at the
end of a line, before a key, or before the first key for the whole file.
sarif is SARIF 2.1.0, for code scanning; github is annotations of a GitHub workflow.
-config_dir and -merge_domain_configs may have one dash.
With --envoy, warnings also report actions whose descriptors match no rule, rules that no action can
reach, and domains that only one side has. What comes over LDS, RDS, VHDS or ECDS is reported as unchecked.
With --replay, the decisions that a worker recorded (RECORD_DECISIONS) are made again under the rules, at the times
when they were: who would newly be limited or freed. With --strict a value that is newly limited fails.
${describeExitCodes('no errors; there may be warnings and notes', 'errors, or with --strict warnings', 'wrong usage, or an input that cannot be read')}`,
    )
    .action(async (paths: string[], options: CheckOptions) => {
      const refuse = (message: string) =>
        command.error(`error: ${message}`, { exitCode: exitCodes.trouble });
      if (options.json && options.format !== undefined && options.format !== 'json') {
        refuse(`--json and --format ${options.format} exclude each other`);
      }
      const { config_dir: directory, replay, against } = options;
      if (against !== undefined && replay === undefined) refuse('--against needs --replay FILE');
      if (replay !== undefined && ['sarif', 'github'].includes(options.format ?? '')) {
        refuse(`--replay and --format ${options.format} exclude each other`);
      }
      if (directory !== undefined) {
        if (options.envoy !== undefined) refuse('-config_dir excludes --envoy');
        if (replay !== undefined) refuse('-config_dir excludes --replay');
        if (paths.length > 0 || options.git !== undefined) {
          refuse('-config_dir excludes PATH and --git');
        }
        const merge = options.merge_domain_configs ?? options.mergeDomains ?? false;
        const read = await readConfigDirectory(directory);
        const rules = withAllowed(loadRules(read.input, merge), read.input.files, options);
        const isWanted = options.json || options.format !== undefined;
        const hasErrors = rules.ruleSet === undefined;
        if (isWanted) print(rules, options);
        else {
          read.lines.forEach((line) => void io.write(`${line}\n`));
          io.write(formatHuman(rules, { withColour: io.isTerminal, withSummary: hasErrors }));
          if (!hasErrors) io.write('all rate limit configs ok\n');
        }
        finish(toExitCode(rules, options));
        return;
      }
      if (options.merge_domain_configs) refuse('-merge_domain_configs needs -config_dir');
      const misuse = checkRuleInputOptions(paths, options);
      if (misuse !== undefined) refuse(misuse);
      const read = await readRuleInput(paths, options, io);
      if (!read.ok) return fail(read.message);
      const { mergeDomains = false, maxResponseBytes, envoy = [], strict = false } = options;
      const envoyRead = await readPathInput(envoy);
      if (!envoyRead.ok) return fail(`--envoy ${envoyRead.message}`);
      const loaded = loadRules(read.input, mergeDomains, options.backend === 'memcache');
      const served = findServedProblems(loaded, { mergeDomains, maxResponseBytes });
      const { files, problems } = envoyRead.input;
      // With errors it is unknown what the rules match.
      const asked =
        envoy.length > 0 && loaded.ruleSet !== undefined
          ? findEnvoyProblems(loaded.documents, files, { isStrict: strict })
          : [];
      const rules = withAllowed(
        withProblems(loaded, [...served, ...findPolicyProblems(loaded), ...problems, ...asked]),
        [...read.input.files, ...files],
        options,
      );
      if (replay === undefined || rules.ruleSet === undefined) {
        print(rules, options);
        finish(toExitCode(rules, options));
        return;
      }
      const { replayDecisions } = await import('./check/replay.ts');
      const { documents } = rules;
      const replayed = await replayDecisions(
        { files: replay, against, documents, mergeDomains },
        io,
      );
      if (!replayed.ok) return fail(replayed.message);
      const { formatReplay, toReplayJson } = await import('./check/replay-format.ts');
      const { report } = replayed;
      if (options.json || options.format === 'json') {
        io.write(formatJson(rules, { replay: toReplayJson(report) }));
      } else {
        print(rules, options);
        io.write(`\n${formatReplay(report)}`);
      }
      const limits = report.summary.requests.newlyLimited > 0;
      finish(strict && limits ? exitCodes.no : toExitCode(rules, options));
    });

  function addAllowed(name: string, earlier: ReadonlySet<string> | undefined): ReadonlySet<string> {
    if (advisoryRules.some((rule) => rule === name)) return new Set(earlier).add(name);
    const hint = didYouMean(nearestWord(name, advisoryRules), '; ') ?? '';
    const message = `error: --allow '${name}': there is no such warning or note${hint}`;
    return command.error(message, { exitCode: exitCodes.trouble });
  }

  function parseBytes(text: string): number {
    if (/^[1-9]\d{0,9}$/.test(text)) return Number(text);
    const message = `error: --max-response-bytes '${text}': expected a number of bytes, such as 4194304`;
    return command.error(message, { exitCode: exitCodes.trouble });
  }

  function print(rules: LoadedRules, { json, format = json ? 'json' : 'human' }: CheckOptions) {
    io.write(formatters[format](rules));
  }

  const formatters: Readonly<Record<Format, (rules: LoadedRules) => string>> = {
    human: (rules) => formatHuman(rules, { withColour: hasColour(), withSummary: true }),
    json: (rules) => formatJson(rules),
    sarif: formatSarif,
    github: formatGithub,
  };

  function hasColour(): boolean {
    return io.isTerminal && !io.environment['NO_COLOR'];
  }
};

function toExitCode({ ruleSet, problems }: LoadedRules, { strict }: CheckOptions): ExitCode {
  return ruleSet === undefined || (strict && problems.some(isWarning))
    ? exitCodes.no
    : exitCodes.ok;
}

/** Without the warnings and notes that comments or --allow allow. */
function withAllowed(
  rules: LoadedRules,
  files: readonly RulesFile[],
  { allow = new Set() }: CheckOptions,
): LoadedRules {
  const { problems, idle } = applyAllowances(rules.problems, files);
  // With errors not all checks have run.
  const told = rules.ruleSet === undefined ? problems : [...problems, ...idle];
  const wanted = told.filter((problem) => isError(problem) || !allow.has(problem.rule));
  return { ...rules, problems: wanted.sort(comparePlaces) };
}

function withProblems(rules: LoadedRules, added: readonly Problem[]): LoadedRules {
  const hasErrors = added.some(isError);
  return {
    ...rules,
    ruleSet: hasErrors ? undefined : rules.ruleSet,
    problems: [...rules.problems, ...added].sort(comparePlaces),
  };
}
