// All commands of the control plane, with their shared options. A new command is a file here and an entry of
// `commands`.
import { Command } from 'commander';
import { commandLine } from '../../shared/command-line.ts';
import { readVersion } from '../../shared/version.ts';
import type { AddCommand, CommandFrame } from './command-frame.ts';

interface Row {
  readonly summary: string;
  readonly load: () => Promise<AddCommand>;
}

/** The commands by name and arguments, in the order of the help. */
const commands: Readonly<Record<string, Row>> = {
  serve: {
    summary: 'serve rules to workers, from a directory or a Git repository',
    load: async () => (await import('./serve.ts')).addServe,
  },
  'check [path...]': {
    summary: 'find problems in rules',
    load: async () => (await import('./check.ts')).addCheck,
  },
  'test <path...>': {
    summary: 'run tests of rules',
    load: async () => (await import('./test.ts')).addTest,
  },
  'explain [path...]': {
    summary: 'which rule a request matches, and why not the others',
    load: async () => (await import('./explain.ts')).addExplain,
  },
  'diff <before> <after>': {
    summary: 'what changes for requests between two sets of rules',
    load: async () => (await import('./diff.ts')).addDiff,
  },
  compare: {
    summary: 'ask two services the same requests',
    load: async () => (await import('./compare.ts')).addCompare,
  },
  status: {
    summary: 'is the newest revision in force on every connected worker?',
    load: async () => (await import('./status.ts')).addStatus,
  },
  top: {
    summary: 'show the values that are limited most',
    load: async () => (await import('./top.ts')).addTop,
  },
  'counters <action>': {
    summary: 'show or reset the counters of a request, or lift their limits for a time',
    load: async () => (await import('./counters.ts')).addCounters,
  },
  'push <directory>': {
    summary: 'make the files of a directory the newest revision',
    load: async () => (await import('./push.ts')).addPush,
  },
  'rollback <revision>': {
    summary: 'go back to an earlier revision',
    load: async () => (await import('./rollback.ts')).addRollback,
  },
  'approve <revision>': {
    summary: 'approve a revision that is held back',
    load: async () => (await import('./approve.ts')).addApprove,
  },
  'rollout <action>': {
    summary: 'show or control the rollout of a revision',
    load: async () => (await import('./rollout.ts')).addRollout,
  },
  history: {
    summary: 'list the last revisions, or those that changed a rule',
    load: async () => (await import('./history.ts')).addHistory,
  },
  audit: {
    summary: 'list what users and the programs did',
    load: async () => (await import('./audit.ts')).addAudit,
  },
  watch: {
    summary: 'show what a worker would get over xDS',
    load: async () => (await import('./watch.ts')).addWatch,
  },
  'schema [kind]': {
    summary: 'print the JSON Schema of a kind of documents, for editors',
    load: async () => (await import('./schema.ts')).addSchema,
  },
  'completion <shell>': {
    summary: 'print a script for completion in a shell',
    load: async () => (await import('./completion.ts')).addCompletion,
  },
};

/** Throws CommanderError for the help, or a wrong command line. Loads only what `args` need: the command that they
 * name, or none for the list of commands; all commands without `args`. */
export async function createProgram(
  frame: CommandFrame,
  args?: readonly string[],
): Promise<Command> {
  const { io } = frame;
  const program = new Command(commandLine('control-plane'))
    .description('Checks, explains and compares rate limit rules, and serves them to workers.')
    .exitOverride()
    .configureOutput({ writeOut: io.write, writeErr: io.writeError })
    .configureHelp({ showGlobalOptions: false })
    .showHelpAfterError('--help lists the arguments')
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
  const rows = Object.entries(commands).map(([usage, row]) => ({
    ...row,
    usage,
    name: usage.replace(/ .*/, ''),
  }));
  if (args !== undefined && listing.test(args.join(' '))) {
    for (const { usage, summary } of rows) program.command(usage).summary(summary).option('--json');
    return program;
  }
  const alone = rows.filter(({ name }) => name === args?.[0] && name !== 'completion');
  for (const { name, summary, load } of alone.length > 0 ? alone : rows) {
    (await load())(program.command(name).summary(summary), frame);
  }
  return program;
}

/** Arguments that print the list of commands, or the version. */
const listing = /^(?:|-h|--help|help|--version)$/;
