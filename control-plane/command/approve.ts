// `approve`: approves a revision that waits for an approval.
import type { RevisionJson } from '../server/admin/revision-json.ts';
import { type AdminOptions, addAdminOptions } from './admin/admin-options.ts';
import { askAdmin } from './admin/ask-admin.ts';
import { finishChange } from './admin/change-command.ts';
import { addWaitOptions, type WaitOptions, waitForChange } from './admin/wait-options.ts';
import { type AddCommand, exitCodes } from './command-frame.ts';
import { parseRevision, revisionHelp } from './revision-argument.ts';

interface ApproveOptions extends AdminOptions, WaitOptions {
  readonly reason: string;
  readonly json?: boolean;
}

export const addApprove: AddCommand = (command, frame) => {
  command
    .description(
      'A revision that would leave no domain, or remove more than half of the limits (at least 10), is held back until it is approved, and so is one that no share of the workers can have first. `status` names it, and why.',
    )
    .argument('<revision>', `the revision; ${revisionHelp}`, parseRevision)
    .requiredOption('--reason <text>', 'why, for the audit log');
  addWaitOptions(addAdminOptions(command), waitForChange, ['timeout', 'minWorkers'])
    .addHelpText(
      'after',
      `
An approval at one control plane is one at all that share the record.

Exit codes:
  0  it is approved; with --wait: all workers have it
  1  there is no such revision
  2  wrong usage, or the admin API does not answer
  3  with --wait: approved, but not yet in force everywhere, on too few workers, or not known
  4  with --wait: approved, but the newest revision is invalid or taken back
  5  the revision is not held back, or is no longer the newest`,
    )
    .action(async (revision: string, options: ApproveOptions) => {
      const body = { revision, reason: options.reason };
      const call = { method: 'POST', path: '/approvals', body } as const;
      const codes = { 404: exitCodes.no, 409: exitCodes.conflict };
      const answer = await askAdmin<RevisionJson>(frame, options, call, codes);
      if (answer === undefined) return;
      const { value: approved, client } = answer;
      if (!options.json) frame.io.write(`revision ${approved.id} is approved\n`);
      await finishChange(frame, client, options, approved, true);
    });
};
