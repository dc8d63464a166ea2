// What every command is given, and what it gives back. How commands are found and parsed is left to
// program.ts and run-command.ts.
import type { Command } from 'commander';
import type { Clock } from '../../shared/clock.ts';

/** The outside world as commands see it, so that tests can stand in for it. */
export interface CommandIo {
  /** Standard output. */
  readonly write: (text: string) => void;
  /** Standard error. */
  readonly writeError: (text: string) => void;
  /** True when a person reads standard output, who is then shown colours. */
  readonly isTerminal: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

export interface CommandFrame {
  readonly io: CommandIo;
  /** Says how the command ended; 0 when it is not called. */
  readonly finish: (exitCode: ExitCode) => void;
  /** Says why there is no answer, and finishes with 2. */
  readonly fail: (message: string) => void;
}

/**
 * Adds one command to the program, with its options, its help (exit codes included) and its action.
 * Whatever is costly to load is loaded in the action.
 */
export type AddCommand = (program: Command, frame: CommandFrame) => void;

/** Of every command; its help says what 1 stands for. 2 is also for what is wrongly given. The others
 * are for what a pipeline does something about: wait, repair, or read again. */
export const exitCodes = {
  ok: 0,
  no: 1,
  trouble: 2,
  pending: 3,
  invalid: 4,
  conflict: 5,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The paragraph of a command's help about its exit codes. */
export function describeExitCodes(ok: string, no: string, trouble: string): string {
  return `\nExit codes:\n  0  ${ok}\n  1  ${no}\n  2  ${trouble}\n`;
}
