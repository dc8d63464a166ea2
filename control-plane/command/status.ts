// `status`: reports whether the newest revision is in force everywhere, by one line and an exit code.
import { type AdminOptions, addAdminOptions, openAdminClient } from './admin/admin-options.ts';
import { askFleet, toExitCode, toFleetJson, writeFleetStatus } from './admin/fleet-status.ts';
import { addWaitOptions, type WaitOptions } from './admin/wait-options.ts';
import { type AddCommand, exitCodes } from './command-frame.ts';
import { parseRevision, revisionHelp } from './revision-argument.ts';

interface StatusOptions extends AdminOptions, WaitOptions {
  readonly revision?: string;
  readonly json?: boolean;
}

export const addStatus: AddCommand = (command, { io, finish, fail }) => {
  command.description(
    'Asks a control plane for the newest revision and for what every connected worker has, and answers in one line. The answer covers its peers too.',
  );
  addAdminOptions(command).option(
    '--revision <id>',
    `ask for this revision: it, or one that was made from it, has to be the newest one; ${revisionHelp}`,
    parseRevision,
  );
  addWaitOptions(command, 'wait until the answer is yes, or cannot become yes', ['timeout'])
    .addHelpText(
      'after',
      `
Exit codes:
  0  the newest revision is valid, and in force on every connected worker
  2  wrong usage, no such revision, or the admin API does not answer
  3  not yet, not everywhere, on too few workers, or not known
  4  the newest revision is invalid, taken back, or held back for an approval; workers keep what they have

A warning changes no exit code: about workers whose settings make them count differently, or about a
record of rollouts and approvals that cannot be read or written.`,
    )
    .action(async (options: StatusOptions) => {
      const opened = await openAdminClient(options, io.environment);
      if (!opened.ok) return fail(opened.message);
      const { revision, minWorkers, wait, timeout, json } = options;
      const question = { revision, minWorkers };
      const asked = await askFleet(opened.client, question, wait ? timeout : undefined, io);
      if (!asked.ok) {
        io.writeError(asked.message);
        finish(exitCodes.error);
        return;
      }
      if (json) io.write(`${JSON.stringify(toFleetJson(asked.fleet), undefined, 2)}\n`);
      else writeFleetStatus(asked.fleet, io);
      finish(toExitCode(asked.fleet));
    });
};
