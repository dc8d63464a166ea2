// The options of commands that wait until a revision is in force.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../../../shared/duration.ts';
import { exitCodes } from '../command-frame.ts';

export interface WaitOptions {
  readonly wait?: boolean;
  /** The time in milliseconds. */
  readonly timeout: number;
  readonly minWorkers: number;
}

/** The help of `--wait` for commands that make a change. */
export const waitForChange =
  'then wait until the revision is in force, as `status --wait --revision` does';

/** `wait` is the help of `--wait`; the options in `onlyWithIt` have no effect without it, and are refused. */
export function addWaitOptions(
  command: Command,
  wait: string,
  onlyWithIt: readonly ('timeout' | 'minWorkers')[],
): Command {
  return command
    .hook('preAction', () => {
      if (command.opts<WaitOptions>().wait) return;
      const idle = onlyWithIt.find((name) => command.getOptionValueSource(name) === 'cli');
      if (idle === undefined) return;
      const { long } = command.options.find((option) => option.attributeName() === idle) ?? {};
      command.error(`error: ${long} has no effect without --wait`, { exitCode: exitCodes.error });
    })
    .option(
      '--min-workers <count>',
      'how many connected workers must have it; 0 for none',
      parseCount,
      1,
    )
    .option('--wait', wait)
    .addOption(
      new Option('--timeout <duration>', 'with --wait: for how long')
        .default(60_000, '60s')
        .argParser(parseTimeout),
    );
}

function parseCount(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a whole number.');
}

function parseTimeout(text: string): number {
  const timeout = parseDuration(text);
  if (timeout.ok && timeout.ms >= 0) return timeout.ms;
  const reason = timeout.ok ? 'it is negative' : timeout.reason;
  throw new InvalidArgumentError(`${reason}; write a duration such as 60s`);
}
