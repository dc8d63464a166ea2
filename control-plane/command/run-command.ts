// Runs one command, from its arguments to its exit code.

import { type Command, CommanderError } from 'commander';
import { errorText } from '../../shared/errors.ts';
import { nearestWord } from '../../shared/nearest-word.ts';
import { maskArguments } from '../../shared/settings/shown-value.ts';
import { stackText } from '../../shared/source-positions.ts';
import { type CommandFrame, type CommandIo, type ExitCode, exitCodes } from './command-frame.ts';
import { createProgram } from './program.ts';

/** `args` are the arguments after the program's name. Never rejects. */
export async function runCommand(args: readonly string[], given: CommandIo): Promise<ExitCode> {
  const writeError = (text: string) => given.writeError(maskArguments(text, args));
  const io = { ...given, writeError };
  let exitCode: ExitCode = exitCodes.ok;
  const frame: CommandFrame = {
    io,
    finish(code) {
      exitCode = code;
    },
    fail(message) {
      io.writeError(`error: ${message}\n`);
      exitCode = exitCodes.error;
    },
  };
  const program = await createProgram(frame, args);
  try {
    await program.parseAsync(rewriteSingleDash(args, program), { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has already printed the error; requested help has the code 0.
    if (error instanceof CommanderError)
      return error.exitCode === 0 ? exitCodes.ok : exitCodes.error;
    if (isOfSystem(error)) {
      io.writeError(`error: ${errorText(error)}\n`);
      return exitCodes.error;
    }
    io.writeError(`unexpected error, a defect of this program: ${stackText(error)}\n`);
    return exitCodes.error;
  }
}

/** An unusable file or address; the error's text contains the system call, the reason and the path. */
function isOfSystem(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

/** Converts flags with one dash, which the reference accepts (behaviour: check-of-the-reference), into the form that
 * commander accepts: `-config_dir x` and `-config_dir=x` get their second dash. Also rewrites near misses of the flags
 * of `program`'s commands, so that the parser suggests the right one. A switch loses `=true`, and is removed with
 * `=false`. Arguments after `--` are unchanged. */
function rewriteSingleDash(args: readonly string[], program: Command): string[] {
  const options = program.commands.flatMap((command) => command.options);
  const names = ['help', ...new Set(options.map((option) => option.long?.slice(2) ?? ''))];
  const switches = new Set(options.filter((each) => each.isBoolean()).map((each) => each.long));
  const end = args.indexOf('--');
  return args.flatMap((arg, index) => {
    const [, dashes, name = '', value] = /^(--?)([a-z][a-z_-]+)(?:=(.*))?$/s.exec(arg) ?? [];
    const isFlag = dashes !== undefined && (end === -1 || index < end);
    if (!isFlag || nearestWord(name, names) === undefined) return [arg];
    const flag = `--${name}`;
    if (switches.has(flag) && value === 'false') return [];
    return [
      value === undefined || (switches.has(flag) && value === 'true') ? flag : `${flag}=${value}`,
    ];
  });
}
