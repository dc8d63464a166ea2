// A completion script for bash, from version 3.2.
import type { CompletedCommand, CompletedProgram } from './completed-command.ts';

/** `name` has only letters, digits, `-` and `_`. Without programs, it runs the control plane itself. */
export function toBashScript(
  name: string,
  commands: readonly CompletedCommand[],
  programs: readonly CompletedProgram[],
): string {
  const names = commands.map((command) => command.name);
  return `# bash completion for ${name}
_${name}_completion() {
  local word="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}"
  local command='' words='' index
  COMPREPLY=()
${toProgramChoice(programs)}  for ((index = ${programs.length > 0 ? 2 : 1}; index < COMP_CWORD; index++)); do
    case "\${COMP_WORDS[index]}" in
      ${names.join('|')}) command="\${COMP_WORDS[index]}"; break ;;
    esac
  done
  case "$command $previous" in
${commands.flatMap(toValueCases).join('\n')}
    *)
      case "$command" in
        '') words='${[...names, '--help'].join(' ')}' ;;
${commands.flatMap(toWordCases).join('\n')}
      esac ;;
  esac
  # Without a word that fits, bash completes paths.
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o bashdefault -o default -F _${name}_completion ${name}
`;
}

/** Only the control plane has commands. */
function toProgramChoice(programs: readonly CompletedProgram[]): string {
  if (programs.length === 0) return '';
  const names = programs.map((program) => program.name).join(' ');
  return `  if ((COMP_CWORD == 1)); then words='${names} --help --version'
  elif [[ "\${COMP_WORDS[1]}" != control-plane ]]; then words='--help'; fi
  if [[ -n "$words" ]]; then COMPREPLY=($(compgen -W "$words" -- "$word")); return; fi
`;
}

function toValueCases({ name, options }: CompletedCommand): string[] {
  return options
    .filter(({ hasValue }) => hasValue)
    .map(({ flag, choices }) => `    '${name} ${flag}') words='${choices.join(' ')}' ;;`);
}

/** Completes options once a dash is typed; before that, values of the argument. */
function toWordCases({ name, options, argumentChoices }: CompletedCommand): string[] {
  const flags = options.map(({ flag }) => flag).join(' ');
  const plain = argumentChoices.join(' ');
  return [
    `        ${name}) if [[ "$word" == -* ]]; then words='${flags}'; else words='${plain}'; fi ;;`,
  ];
}
