// `completion`: prints a shell's completion script for this command line, generated from the commands themselves.
import { Argument } from 'commander';
import { commandLine } from '../../shared/command-line.ts';
import { type AddCommand, describeExitCodes, exitCodes } from './command-frame.ts';
import { toBashScript } from './completion/bash-script.ts';
import { toCompletedCommands } from './completion/completed-command.ts';
import { toFishScript } from './completion/fish-script.ts';
import { toZshScript } from './completion/zsh-script.ts';

const scripts = { bash: toBashScript, zsh: toZshScript, fish: toFishScript } as const;
type Shell = keyof typeof scripts;

/** The package's command, which runs all programs. */
const packageCommand = 'ratelane';
const programs = [
  { name: 'worker', summary: 'decide rate limits for Envoy' },
  { name: 'control-plane', summary: 'check rules, and serve them to workers' },
  { name: 'client', summary: 'ask a worker for one decision' },
  { name: 'router', summary: 'serve a folder of controllers over HTTP' },
];

export const addCompletion: AddCommand = (command, { io }) => {
  command
    .description('Prints a script that makes a shell complete commands, options and their values.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(scripts)))
    .option('--name <command>', 'the name under which you run the control plane', packageCommand)
    .option('--json', 'print one JSON object, with the script in it')
    .addHelpText(
      'after',
      `
Without --name it is for the package's command, with its programs. Shells complete names of commands, so
elsewhere give this program one, for example in ~/.bashrc:
  rl() { ${commandLine('control-plane')} "$@"; }
  source <(rl completion bash --name rl)
${describeExitCodes('printed', 'not used', 'wrong usage')}`,
    )
    .action((shell: Shell, { name, json }: { name: string; json?: boolean }) => {
      if (!/^[A-Za-z][\w-]*$/.test(name)) {
        const message = `error: --name '${name}': a name has letters, digits, '-' and '_'`;
        command.error(message, { exitCode: exitCodes.error });
      }
      const script = scripts[shell](
        name,
        toCompletedCommands(command.parent ?? command),
        name === packageCommand ? programs : [],
      );
      io.write(json ? `${JSON.stringify({ shell, script })}\n` : script);
    });
};
