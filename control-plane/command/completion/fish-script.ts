// A completion script for fish.
import type { CompletedCommand, CompletedOption, CompletedProgram } from './completed-command.ts';

/** `name` has only letters, digits, `-` and `_`. Without programs it runs the control plane itself. */
export function toFishScript(
  name: string,
  commands: readonly CompletedCommand[],
  programs: readonly CompletedProgram[],
): string {
  const names = commands.map((command) => command.name).join(' ');
  const isCommandNext =
    programs.length === 0
      ? '__fish_use_subcommand'
      : quote(
          `__fish_seen_subcommand_from control-plane; and not __fish_seen_subcommand_from ${names}`,
        );
  const lines = [
    `# fish completion for ${name}`,
    `complete -c ${name} -n __fish_use_subcommand -f`,
    `complete -c ${name} -n __fish_use_subcommand -l help -d 'show the help'`,
  ];
  for (const program of programs) {
    const summary = quote(program.summary);
    lines.push(`complete -c ${name} -n __fish_use_subcommand -a ${program.name} -d ${summary}`);
  }
  if (programs.length > 0) lines.push(`complete -c ${name} -n ${isCommandNext} -f`);
  for (const command of commands) {
    const chosen = `complete -c ${name} -n ${quote(`__fish_seen_subcommand_from ${command.name}`)}`;
    const summary = quote(command.summary);
    lines.push(`complete -c ${name} -n ${isCommandNext} -a ${command.name} -d ${summary}`);
    lines.push(...command.options.map((option) => `${chosen} ${toOption(option)}`));
    if (command.argumentChoices.length > 0) {
      lines.push(`${chosen} -f -a ${quote(command.argumentChoices.join(' '))}`);
    }
  }
  return lines.map((line) => `${line}\n`).join('');
}

function toOption({ flag, summary, hasValue, choices }: CompletedOption): string {
  const value = choices.length > 0 ? ` -x -a ${quote(choices.join(' '))}` : hasValue ? ' -r' : '';
  return `-l ${flag.replace(/^--/, '')}${value} -d ${quote(summary)}`;
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
