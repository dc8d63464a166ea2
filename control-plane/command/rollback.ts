// `rollback`: a new revision with the files of an earlier one.
import { escapeText } from '../../shared/rules/escaped-text.ts';
import { addChangeOptions, type ChangeOptions, sendChange } from './admin/change-command.ts';
import { type AddCommand, exitCodes } from './command-frame.ts';

export const addRollback: AddCommand = (program, frame) => {
  const command = program
    .command('rollback')
    .summary('go back to an earlier revision')
    .description(
      'Makes a new revision that has the files of an earlier one. `history` lists revisions; the beginning of an id is enough.',
    )
    .argument('<revision>', 'the revision to go back to');
  addChangeOptions(command).action(async (revision: string, options: ChangeOptions) => {
    if (!/^[0-9a-f]+$/.test(revision)) {
      const message = `error: '${escapeText(revision)}' is no revision: \`history\` lists them`;
      command.error(message, { exitCode: exitCodes.trouble });
    }
    await sendChange(frame, options, '/rollbacks', { revision });
  });
};
