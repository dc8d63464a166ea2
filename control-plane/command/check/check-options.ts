// The options of `check`, and which exclude each other.
import { type Command, Option } from 'commander';
import { didYouMean, nearestWord } from '../../../shared/nearest-word.ts';
import { advisoryRules } from '../../../shared/rules/problem/problem-rule.ts';
import { countingBackends } from '../../authoring/rehearsal/counting-backend.ts';
import { defaultMaxResponseBytes } from '../../server/snapshot/build.ts';
import { describeExitCodes, exitCodes } from '../command-frame.ts';
import {
  addRuleInputOptions,
  checkRuleInputOptions,
  type RuleInputOptions,
} from '../input/rule-input.ts';

const formats = ['human', 'json', 'sarif', 'github'] as const;
export type Format = (typeof formats)[number];

export interface CheckOptions extends RuleInputOptions {
  readonly format?: Format;
  readonly json?: boolean;
  readonly config_dir?: string;
  readonly merge_domain_configs?: boolean;
  readonly maxResponseBytes: number;
  readonly backend?: string;
  readonly stopIncrement?: string;
  readonly envoy?: readonly string[];
  readonly strict?: boolean;
  readonly allow?: ReadonlySet<string>;
  readonly replay?: readonly string[];
  readonly against?: string;
}

export function addCheckOptions(command: Command): void {
  addRuleInputOptions(command)
    .addOption(new Option('--format <format>', 'output format (default: human)').choices(formats))
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
      'compare the rules with this Envoy configuration; repeat it for several',
      (path: string, earlier: readonly string[] | undefined) => [...(earlier ?? []), path],
    )
    .addOption(
      new Option(
        '--backend <backend>',
        'BACKEND_TYPE of the workers: a memory cache refuses limits that it cannot count',
      ).choices(countingBackends),
    )
    .addOption(
      new Option(
        '--stop-increment <value>',
        'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT of the workers: with true, rules that keep others from being counted are named',
      )
        .choices(['false', 'true', 'enforced'])
        .env('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT'),
    )
    .addOption(
      new Option(
        '--allow <name>',
        'leave out this kind of warning or note; repeat it for several',
      ).argParser(addAllowed),
    )
    .option(
      '--strict',
      'warnings fail too; with --envoy, a descriptor that no rule matches is an error',
    )
    .option(
      '--replay <file>',
      'report which recorded decisions of a worker the rules would change; repeat the option for several files',
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
    );

  function addAllowed(name: string, earlier: ReadonlySet<string> | undefined): ReadonlySet<string> {
    if (advisoryRules.some((rule) => rule === name)) return new Set(earlier).add(name);
    const hint = didYouMean(nearestWord(name, advisoryRules), '; ') ?? '';
    const message = `error: --allow '${name}': there is no such warning or note${hint}`;
    return command.error(message, { exitCode: exitCodes.error });
  }

  function parseBytes(text: string): number {
    if (/^[1-9]\d{0,9}$/.test(text)) return Number(text);
    const message = `error: --max-response-bytes '${text}': expected a number of bytes, such as 4194304`;
    return command.error(message, { exitCode: exitCodes.error });
  }
}

/** The mistake in the combination of arguments and options; undefined without one. */
export function findMisuse(paths: readonly string[], options: CheckOptions): string | undefined {
  const { json, format, config_dir, merge_domain_configs, envoy, git, replay, against } = options;
  if (json && format !== undefined && format !== 'json') {
    return `--json and --format ${format} exclude each other`;
  }
  if (against !== undefined && replay === undefined) return '--against needs --replay FILE';
  if (replay !== undefined && (format === 'sarif' || format === 'github')) {
    return `--replay and --format ${format} exclude each other`;
  }
  if (config_dir === undefined) {
    return merge_domain_configs
      ? '-merge_domain_configs needs -config_dir'
      : checkRuleInputOptions(paths, options);
  }
  if (envoy !== undefined) return '-config_dir excludes --envoy';
  if (replay !== undefined) return '-config_dir excludes --replay';
  return paths.length > 0 || git !== undefined ? '-config_dir excludes PATH and --git' : undefined;
}
