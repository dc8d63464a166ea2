// Runs one command of the control plane in the process of the test: takes its arguments, returns its output and exit
// code.
import type { CommandIo } from '../../control-plane/command/command-frame.ts';
import { runCommand } from '../../control-plane/command/run-command.ts';
import { systemClock } from '../../shared/clock.ts';

export interface CommandRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export async function runInProcess(
  args: readonly string[],
  overrides: Partial<CommandIo> = {},
): Promise<CommandRun> {
  let [out, err] = ['', ''];
  const code = await runCommand(args, {
    write(text) {
      out += text;
    },
    writeError(text) {
      err += text;
    },
    isTerminal: false,
    environment: process.env,
    clock: systemClock,
    ...overrides,
  });
  return { code, out, err };
}
