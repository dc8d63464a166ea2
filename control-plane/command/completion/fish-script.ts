// A completion script for fish.
import type { CompletedCommand, CompletedOption } from './completed-command.ts';

/** `name` has only letters, digits, `-` and `_`. */
export function toFishScript(name: string, commands: readonly CompletedCommand[]): string {
  const lines = [
    `# fish completion for ${name}`,
    `complete -c ${name} -n __fish_use_subcommand -f`,
    `complete -c ${name} -n __fish_use_subcommand -l help -d 'show the help'`,
  ];
  for (const command of commands) {
    const chosen = `complete -c ${name} -n ${quote(`__fish_seen_subcommand_from ${command.name}`)}`;
    const summary = quote(command.summary);
    lines.push(`complete -c ${name} -n __fish_use_subcommand -a ${command.name} -d ${summary}`);
    lines.push(...command.options.map((option) => `${chosen} ${toOption(option)}`));
    if (command.argumentChoices.length > 0) {
      lines.push(`${chosen} -f -a ${quote(command.argumentChoices.join(' '))}`);
    }
  }
  return lines.map((line) => `${line}\n`).join('');
}

function toOption({ flag, summary, takesValue, choices }: CompletedOption): string {
  const value = choices.length > 0 ? ` -x -a ${quote(choices.join(' '))}` : takesValue ? ' -r' : '';
  return `-l ${flag.replace(/^--/, '')}${value} -d ${quote(summary)}`;
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
