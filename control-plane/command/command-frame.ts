// The interface of commands. program.ts lists them, run-command.ts parses and runs them.
import type { Command } from 'commander';
import type { Clock } from '../../shared/clock.ts';

/** The outside world as commands see it; tests replace it. */
export interface CommandIo {
  /** Standard output. */
  readonly write: (text: string) => void;
  /** Standard error. */
  readonly writeError: (text: string) => void;
  /** True when standard output is a terminal: use colours. */
  readonly isTerminal: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

export interface CommandFrame {
  readonly io: CommandIo;
  /** Sets the exit code; 0 when it is not called. */
  readonly finish: (exitCode: ExitCode) => void;
  /** Prints why there is no answer, and finishes with 2. */
  readonly fail: (message: string) => void;
}

/**
 * Adds one command to the program, with its options, its help (exit codes included) and its action. Costly
 * modules are loaded in the action.
 */
export type AddCommand = (program: Command, frame: CommandFrame) => void;

/**
 * The codes are the same for every command, whose help explains 1. 2 is also for wrong arguments. The others are
 * for pipelines that react: wait, repair, or read again.
 */
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
