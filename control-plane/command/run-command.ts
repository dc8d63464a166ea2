// Runs one command, from its arguments to its exit code.
import { CommanderError } from 'commander';
import { errorText } from '../../shared/errors.ts';
import { type CommandFrame, type CommandIo, type ExitCode, exitCodes } from './command-frame.ts';
import { createProgram } from './program.ts';
import { rewriteSingleDash } from './single-dash.ts';

/** `args` are those after the program's name. Never rejects. */
export async function runCommand(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  let exitCode: ExitCode = exitCodes.ok;
  const frame: CommandFrame = {
    io,
    finish(code) {
      exitCode = code;
    },
    fail(message) {
      io.writeError(`error: ${message}\n`);
      exitCode = exitCodes.trouble;
    },
  };
  const program = await createProgram(frame, args[0]);
  try {
    await program.parseAsync(rewriteSingleDash(args, program), { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has printed it already; requested help has the code 0.
    if (error instanceof CommanderError)
      return error.exitCode === 0 ? exitCodes.ok : exitCodes.trouble;
    const text = error instanceof Error ? error.stack : errorText(error);
    io.writeError(`unexpected error, a defect of this program: ${text}\n`);
    return exitCodes.trouble;
  }
}
