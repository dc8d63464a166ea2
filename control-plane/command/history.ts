// `history`: the last revisions of a control plane's store.

import { escapeText } from '../../shared/rules/escaped-text.ts';
import type { RevisionJson } from '../admin/revision-json.ts';
import { toShortId } from '../store/revision.ts';
import { type AdminOptions, addAdminOptions, openAdminClient } from './admin/admin-options.ts';
import { formatRefusal } from './admin/answer-text.ts';
import { type AddCommand, exitCodes } from './command-frame.ts';

interface HistoryOptions extends AdminOptions {
  readonly limit: string;
  readonly json?: boolean;
}

interface ListedRevision extends RevisionJson {
  readonly inForce: boolean;
  readonly newest: boolean;
}

export const addHistory: AddCommand = (program, { io, finish, fail }) => {
  const command = program
    .command('history')
    .summary('list the last revisions')
    .description('Lists revisions of the store, the newest first, and says which one is in force.');
  addAdminOptions(command)
    .option('--limit <number>', 'how many, up to 1000', '20')
    .addHelpText(
      'after',
      '\nExit codes:\n  0  there was an answer\n  2  wrong usage, or the admin API gives no answer',
    )
    .action(async (options: HistoryOptions) => {
      const opened = await openAdminClient(options, io.environment);
      if (!opened.ok) return fail(opened.message);
      const path = `/revisions?limit=${encodeURIComponent(options.limit)}`;
      const result = await opened.client.call({ method: 'GET', path });
      if (!result.ok) return fail(result.message);
      if (result.answer.status !== 200) {
        io.writeError(formatRefusal(result.answer));
        finish(exitCodes.trouble);
        return;
      }
      const { revisions } = result.answer.value as { revisions: readonly ListedRevision[] };
      if (options.json) io.write(`${JSON.stringify({ revisions }, undefined, 2)}\n`);
      else io.write(revisions.map(formatRevision).join(''));
    });
};

function formatRevision({ id, at, author, message, inForce, newest }: ListedRevision): string {
  const marks = [inForce ? 'in force' : '', newest && !inForce ? 'not in force' : ''];
  const mark = marks
    .filter(Boolean)
    .map((text) => `  [${text}]`)
    .join('');
  const words = [author, message?.split('\n')[0]].filter(Boolean).join(': ');
  return `${toShortId(id)}  ${at}  ${escapeText(words)}${mark}\n`;
}
