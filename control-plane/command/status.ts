// `status`: is the newest revision in force everywhere? One line and an exit code.
import { escapeText } from '../../shared/rules/problem/escaped-text.ts';
import {
  type AccessOptions,
  addAdminOptionsForSeveral,
  openAdminClients,
} from './admin/admin-options.ts';
import {
  askFleet,
  type FleetStatus,
  toExitCode,
  toFleetJson,
  writeFleetStatus,
} from './admin/fleet-status.ts';
import { addWaitOptions, type WaitOptions } from './admin/wait-options.ts';
import { type AddCommand, type CommandIo, exitCodes } from './command-frame.ts';
import { parseRevision, revisionHelp } from './revision-argument.ts';
import { parseDebugUrl, readUnmatchedPage, type UnmatchedPage } from './status/unmatched-page.ts';

interface StatusOptions extends AccessOptions, WaitOptions {
  readonly adminUrl?: readonly string[];
  readonly revision?: string;
  readonly json?: boolean;
  readonly workerDebug?: readonly URL[];
}

export const addStatus: AddCommand = (program, { io, finish, fail }) => {
  const command = program
    .command('status')
    .summary('is the newest revision in force on every connected worker?')
    .description(
      'Asks a control plane for the newest revision and for what every connected worker has, and answers in one line.',
    );
  addAdminOptionsForSeveral(command).option(
    '--revision <id>',
    `ask for this revision: it, or one that was made from it, has to be the newest one; ${revisionHelp}`,
    parseRevision,
  );
  addWaitOptions(command, 'wait until the answer is yes, or will not become it', ['timeout'])
    .option(
      '--worker-debug <address>',
      'show the traffic that this worker finds no rule for, from its debug port; repeat it for several',
      (text: string, earlier: readonly URL[] | undefined) => [
        ...(earlier ?? []),
        parseWorker(text),
      ],
    )
    .addHelpText(
      'after',
      `
Exit codes:
  0  the newest revision is valid, and in force on every connected worker
  2  wrong usage, no such revision, or no admin API gives an answer
  3  not yet, not everywhere, on too few workers, or not known
  4  the newest revision is invalid, taken back, or held back for an approval; workers keep what they have

A warning changes no exit code: about workers whose settings make them count differently, or about a
record of rollouts and approvals that cannot be read or written. Nor does what --worker-debug shows.`,
    )
    .action(async (options: StatusOptions) => {
      const opened = await openAdminClients(options.adminUrl, options, io.environment);
      if (!opened.ok) return fail(opened.message);
      const { revision, minWorkers, wait, timeout } = options;
      const question = { revision, minWorkers };
      const result = await askFleet(opened.clients, question, wait ? timeout : undefined, io);
      if (!result.ok) {
        io.writeError(result.message);
        finish(exitCodes.trouble);
        return;
      }
      const unmatched = await Promise.all((options.workerDebug ?? []).map(readUnmatchedPage));
      if (options.json) io.write(toJson(result.status, unmatched));
      else {
        writeFleetStatus(result.status, io);
        writeUnmatched(unmatched, io);
      }
      finish(toExitCode(result.status));
    });

  function parseWorker(text: string): URL {
    const url = parseDebugUrl(text);
    if (url !== undefined) return url;
    const message = `error: --worker-debug '${text}': expected the address of a debug port, such as 127.0.0.1:6070`;
    return command.error(message, { exitCode: exitCodes.trouble });
  }
};

function writeUnmatched(unmatched: readonly UnmatchedPage[], io: CommandIo): void {
  for (const { worker, lines, error } of unmatched) {
    if (lines === undefined)
      io.writeError(`warning: worker ${worker}: ${escapeText(`${error}`)}\n`);
    else io.write(`worker ${worker}:\n${lines.map((line) => `  ${escapeText(line)}\n`).join('')}`);
  }
}

function toJson(status: FleetStatus, unmatched: readonly UnmatchedPage[]): string {
  const pages = unmatched.map(({ worker, lines = null, error = null }) => ({
    worker,
    lines,
    error,
  }));
  const shown = { ...toFleetJson(status), ...(unmatched.length > 0 && { unmatched: pages }) };
  return `${JSON.stringify(shown, undefined, 2)}\n`;
}
