// `rollback`: creates a new revision with the files of an earlier one.
import { addChangeOptions, type ChangeOptions, sendChange } from './admin/change-command.ts';
import type { AddCommand } from './command-frame.ts';
import { parseRevision, revisionHelp } from './revision-argument.ts';

export const addRollback: AddCommand = (command, frame) => {
  command
    .description(
      'Makes a new revision that has the files of an earlier one. `history` lists revisions. All workers get it at once, even if revisions are rolled out in steps, unless --steps is given; a rollout that is under way ends with it.',
    )
    .argument('<revision>', `the revision to go back to; ${revisionHelp}`, parseRevision);
  addChangeOptions(command).action(async (revision: string, options: ChangeOptions) => {
    await sendChange(frame, options, '/rollbacks', { revision });
  });
};
