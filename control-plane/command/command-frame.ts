// The interface of commands. program.ts lists them; run-command.ts parses and runs them.
import type { Command } from 'commander';
import type { Clock } from '../../shared/clock.ts';

/** The environment of a command; tests replace it. */
export interface CommandIo {
  /** Standard output. */
  readonly write: (text: string) => void;
  /** Standard error. */
  readonly writeError: (text: string) => void;
  /** Whether standard output is a terminal, which gets colours. */
  readonly isTerminal: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

export interface CommandFrame {
  readonly io: CommandIo;
  /** Sets the exit code, which is 0 otherwise. */
  readonly finish: (exitCode: ExitCode) => void;
  /** Prints why there is no answer, and sets the exit code 2. */
  readonly fail: (message: string) => void;
}

/** Gives a command its options, its help (including exit codes) and its action. Expensive modules are loaded in the
 * action. */
export type AddCommand = (command: Command, frame: CommandFrame) => void;

/** The codes are the same for every command, whose help explains 1. 2 also means wrong arguments. The others are for
 * pipelines that react: by waiting, repairing, or reading again. */
export const exitCodes = {
  ok: 0,
  no: 1,
  error: 2,
  pending: 3,
  invalid: 4,
  conflict: 5,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The paragraph of a command's help about its exit codes. */
export function describeExitCodes(ok: string, no: string, error: string): string {
  return `\nExit codes:\n  0  ${ok}\n  1  ${no}\n  2  ${error}\n`;
}
