// All commands of the control plane, with their shared options. A new command is a file here and a line in
// `commands`.
import { Command } from 'commander';
import { commandLine } from '../../shared/command-line.ts';
import { readVersion } from '../../shared/version.ts';
import type { AddCommand, CommandFrame } from './command-frame.ts';

/** The commands by name, in the order of the help. */
const commands: Readonly<Record<string, () => Promise<AddCommand>>> = {
  serve: async () => (await import('./serve.ts')).addServe,
  check: async () => (await import('./check.ts')).addCheck,
  test: async () => (await import('./test.ts')).addTest,
  explain: async () => (await import('./explain.ts')).addExplain,
  diff: async () => (await import('./diff.ts')).addDiff,
  compare: async () => (await import('./compare.ts')).addCompare,
  status: async () => (await import('./status.ts')).addStatus,
  top: async () => (await import('./top.ts')).addTop,
  counters: async () => (await import('./counters.ts')).addCounters,
  push: async () => (await import('./push.ts')).addPush,
  rollback: async () => (await import('./rollback.ts')).addRollback,
  approve: async () => (await import('./approve.ts')).addApprove,
  rollout: async () => (await import('./rollout.ts')).addRollout,
  history: async () => (await import('./history.ts')).addHistory,
  audit: async () => (await import('./audit.ts')).addAudit,
  watch: async () => (await import('./watch.ts')).addWatch,
  schema: async () => (await import('./schema.ts')).addSchema,
  completion: async () => (await import('./completion.ts')).addCompletion,
};

/** Throws CommanderError for the help, or a wrong command line. If `asked` is the name of a command, the program has
 * only that one, and does not wait for the others to load. */
export async function createProgram(frame: CommandFrame, asked?: string): Promise<Command> {
  const { io } = frame;
  const program = new Command(commandLine('control-plane'))
    .description('Checks, explains and compares rate limit rules, and serves them to workers.')
    .exitOverride()
    .configureOutput({ writeOut: io.write, writeErr: io.writeError })
    .configureHelp({ showGlobalOptions: false })
    .showHelpAfterError('--help lists what can be given')
    .version(readVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .addHelpText(
      'after',
      `
Every command but serve takes --json. Exit codes: 0 is good, 1 is a finding, 2 is wrong usage or an input
that cannot be read; the help of each command has the details.

Examples:
  ${commandLine('control-plane')} check rules/
  ${commandLine('control-plane')} explain rules/ --domain shop --descriptor user=ada,path=/cart
  ${commandLine('control-plane')} diff --git . --git-path rules git:HEAD rules/`,
    );
  const isAlone = asked !== undefined && Object.hasOwn(commands, asked) && asked !== 'completion';
  for (const [name, load] of Object.entries(commands)) {
    if (!isAlone || name === asked) (await load())(program, frame);
  }
  return program;
}
