// All commands of the control plane, with their shared options. A new command is a file here and a line in
// `commands`.
import { Command } from 'commander';
import { commandLine } from '../../shared/command-line.ts';
import { readVersion } from '../../shared/version.ts';
import { addApprove } from './approve.ts';
import { addAudit } from './audit.ts';
import { addCheck } from './check.ts';
import type { AddCommand, CommandFrame } from './command-frame.ts';
import { addCompare } from './compare.ts';
import { addCompletion } from './completion.ts';
import { addCounters } from './counters.ts';
import { addDiff } from './diff.ts';
import { addExplain } from './explain.ts';
import { addHistory } from './history.ts';
import { addPush } from './push.ts';
import { addRollback } from './rollback.ts';
import { addRollout } from './rollout.ts';
import { addSchema } from './schema.ts';
import { addServe } from './serve.ts';
import { addStatus } from './status.ts';
import { addTest } from './test.ts';
import { addTop } from './top.ts';
import { addWatch } from './watch.ts';

/** In the order of the help. */
const commands: readonly AddCommand[] = [
  addServe,
  addCheck,
  addTest,
  addExplain,
  addDiff,
  addCompare,
  addStatus,
  addTop,
  addCounters,
  addPush,
  addRollback,
  addApprove,
  addRollout,
  addHistory,
  addAudit,
  addWatch,
  addSchema,
  addCompletion,
];

/** Throws CommanderError for the help, or a wrong command line. */
export function createProgram(frame: CommandFrame): Command {
  const { io } = frame;
  const program = new Command(commandLine('control-plane'))
    .description('Checks, explains and compares rate limit rules, and serves them to workers.')
    .exitOverride()
    .configureOutput({ writeOut: io.write, writeErr: io.writeError })
    .configureHelp({ showGlobalOptions: false })
    .showHelpAfterError('--help says what can be given')
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
  for (const add of commands) add(program, frame);
  return program;
}
