// A completion script for zsh, to be sourced or put on fpath.
import type { CompletedCommand, CompletedOption } from './completed-command.ts';

/** `name` has only letters, digits, `-` and `_`. */
export function toZshScript(name: string, commands: readonly CompletedCommand[]): string {
  return `#compdef ${name}
_${name}() {
  local state line
  typeset -A opt_args
  local -a commands
  commands=(
${commands.map((each) => `    ${quote(`${each.name}:${each.summary}`)}`).join('\n')}
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

function toCase({ name, options, argumentChoices }: CompletedCommand): string {
  const argument =
    argumentChoices.length > 0 ? `1:argument:(${argumentChoices.join(' ')})` : '*:path:_files';
  const specs = [...options.map(toSpec), argument].map((spec) => ` \\\n          ${quote(spec)}`);
  return `        ${name}) _arguments${specs.join('')} ;;`;
}

function toSpec({ flag, summary, takesValue, choices }: CompletedOption): string {
  const text = summary.replaceAll(/[[\]:\\]/g, '\\$&');
  if (!takesValue) return `${flag}[${text}]`;
  return `*${flag}[${text}]:value:${choices.length > 0 ? `(${choices.join(' ')})` : '_files'}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
