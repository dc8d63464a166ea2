// A completion script for zsh, to be sourced or put on fpath.
import type { CompletedCommand, CompletedOption, CompletedProgram } from './completed-command.ts';

/** `name` has only letters, digits, `-` and `_`. Without programs it runs the control plane itself. */
export function toZshScript(
  name: string,
  commands: readonly CompletedCommand[],
  programs: readonly CompletedProgram[],
): string {
  return `#compdef ${name}
_${name}() {
  local state line
  typeset -A opt_args
  local -a commands programs
${toProgramChoice(programs)}  commands=(
${toDescriptions(commands)}
  )
  _arguments -C '--help[show the help]' '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe -t commands command commands ;;
    argument)
      case $words[1] in
${commands.map(toCase).join('\n')}
      esac ;;
  esac
}
if [[ $funcstack[1] == _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi
`;
}

/** Only the control plane has commands. */
function toProgramChoice(programs: readonly CompletedProgram[]): string {
  if (programs.length === 0) return '';
  return `  programs=(
${toDescriptions(programs)}
  )
  if (( CURRENT == 2 )); then _describe -t programs program programs; return; fi
  if [[ $words[2] != control-plane ]]; then _files; return; fi
  shift words
  (( CURRENT-- ))
`;
}

function toDescriptions(described: readonly CompletedProgram[]): string {
  return described.map(({ name, summary }) => `    ${quote(`${name}:${summary}`)}`).join('\n');
}

function toCase({ name, options, argumentChoices }: CompletedCommand): string {
  const argument =
    argumentChoices.length > 0 ? `1:argument:(${argumentChoices.join(' ')})` : '*:path:_files';
  const specs = [...options.map(toSpec), argument].map((spec) => ` \\\n          ${quote(spec)}`);
  return `        ${name}) _arguments${specs.join('')} ;;`;
}

function toSpec({ flag, summary, hasValue, choices }: CompletedOption): string {
  const text = summary.replaceAll(/[[\]:\\]/g, '\\$&');
  if (!hasValue) return `${flag}[${text}]`;
  return `*${flag}[${text}]:value:${choices.length > 0 ? `(${choices.join(' ')})` : '_files'}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
