// `history`: the last revisions of a control plane's store.

import { escapeText } from '../../shared/rules/problem/escaped-text.ts';
import type { RevisionJson } from '../admin/revision-json.ts';
import type { RevisionOutcomeJson } from '../admin/revision-outcome.ts';
import { toShortId } from '../store/revision.ts';
import { type AdminOptions, addAdminOptions } from './admin/admin-options.ts';
import { askAdmin } from './admin/ask-admin.ts';
import type { AddCommand } from './command-frame.ts';

interface HistoryOptions extends AdminOptions {
  readonly limit: string;
  readonly json?: boolean;
}

interface ListedRevision extends RevisionJson {
  readonly inForce: boolean;
  readonly newest: boolean;
  /** Older control planes do not tell. */
  readonly outcome?: RevisionOutcomeJson | null;
}

export const addHistory: AddCommand = (program, frame) => {
  const { io } = frame;
  const command = program
    .command('history')
    .summary('list the last revisions')
    .description(
      'Lists revisions of the store, the newest first, and what became of each: since when and until when it was in force, or by whom and why it was taken back or held back.',
    );
  addAdminOptions(command)
    .option('--limit <number>', 'how many, up to 1000', '20')
    .addHelpText(
      'after',
      '\nExit codes:\n  0  there was an answer\n  2  wrong usage, or the admin API gives no answer',
    )
    .action(async (options: HistoryOptions) => {
      const path = `/revisions?limit=${encodeURIComponent(options.limit)}`;
      const answer = await askAdmin<{ readonly revisions: readonly ListedRevision[] }>(
        frame,
        options,
        { method: 'GET', path },
      );
      if (answer === undefined) return;
      const { revisions } = answer.value;
      if (options.json) io.write(`${JSON.stringify({ revisions }, undefined, 2)}\n`);
      else io.write(revisions.map(formatRevision).join(''));
    });
};

/** One line, and one for the reason where there is one. */
function formatRevision(revision: ListedRevision): string {
  const { id, at, author, message } = revision;
  const words = [author, message?.split('\n')[0]].filter(Boolean).join(': ');
  const reason = revision.outcome?.reason ?? null;
  const why = reason === null ? '' : `              ${escapeText(reason)}\n`;
  return `${toShortId(id)}  ${at}  ${escapeText(words)}  [${toOutcomeText(revision)}]\n${why}`;
}

/** Such as `was in force from 2026-11-24T10:00:00.000Z to 2026-11-24T12:00:00.000Z`, `taken back by ada at ...`. */
function toOutcomeText({ inForce, newest, outcome }: ListedRevision): string {
  if (outcome == null) {
    if (inForce) return 'in force';
    return newest ? 'not in force' : 'not known';
  }
  const { kind, since, until, by } = outcome;
  const words = kind.replaceAll('_', ' ');
  const who = by === null ? '' : ` by ${escapeText(by)}`;
  if (since === null) return words;
  if (kind === 'in_force' || kind === 'on_trial') return `${words} since ${since}`;
  if (kind === 'was_in_force')
    return `${words} from ${since}${until === null ? '' : ` to ${until}`}`;
  return `${words}${who} at ${since}`;
}
