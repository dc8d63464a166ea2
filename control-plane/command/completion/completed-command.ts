// Describes the commands for the completion scripts of all shells.
import type { Command } from 'commander';

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletedOption[];
  /** The values of the argument; empty when it is a path. */
  readonly argumentChoices: readonly string[];
}

/** A program of the package's command; `commands` are those of the control plane. */
export interface CompletedProgram {
  readonly name: string;
  readonly summary: string;
}

export interface CompletedOption {
  /** Includes the dashes. */
  readonly flag: string;
  readonly summary: string;
  readonly hasValue: boolean;
  /** The possible values; empty when any is allowed. */
  readonly choices: readonly string[];
}

export function toCompletedCommands(program: Command): CompletedCommand[] {
  const help = { flag: '--help', summary: 'show the help', hasValue: false, choices: [] };
  return program.commands.map((command) => ({
    name: command.name(),
    summary: command.summary(),
    options: [
      ...command.options
        .filter((option) => !option.hidden && option.long)
        .map((option) => ({
          flag: option.long ?? '',
          summary: option.description,
          hasValue: option.required || option.optional,
          choices: option.argChoices ?? [],
        })),
      help,
    ],
    argumentChoices: command.registeredArguments[0]?.argChoices ?? [],
  }));
}
