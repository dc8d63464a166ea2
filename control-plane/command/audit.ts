// `audit`: lists actions of users and of the programs.
import { parseDuration } from '../../shared/duration.ts';
import { escapeText } from '../../shared/rules/problem/escaped-text.ts';
import type { ActivityEntryJson, ActivityJson } from '../server/admin/controllers/activity.ts';
import { type AdminOptions, addAdminOptions } from './admin/admin-options.ts';
import { askAdmin } from './admin/ask-admin.ts';
import type { AddCommand } from './command-frame.ts';

interface AuditOptions extends AdminOptions {
  readonly who?: string;
  readonly object?: string;
  readonly since?: string;
  readonly limit: string;
  readonly json?: boolean;
}

export const addAudit: AddCommand = (command, frame) => {
  const { io, fail } = frame;
  command.description(
    'Lists pushes, rollbacks, approvals, resets, lifts, pauses, what was taken back and who leads a rollout, the newest first, with who did it and why.',
  );
  addAdminOptions(command)
    .option('--who <name>', 'only by this user: part of a name')
    .option(
      '--object <text>',
      'only entries about this: part of a domain, a descriptor or a reason, or the beginning of a revision',
    )
    .option('--since <duration>', 'only in the last period, such as 1h')
    .option('--limit <number>', 'how many, up to 1000', '50')
    .addHelpText(
      'after',
      '\nExit codes:\n  0  the admin API answered\n  2  wrong usage, or the admin API does not answer',
    )
    .action(async ({ who, object, since, limit, ...options }: AuditOptions) => {
      const span = since === undefined ? undefined : parseDuration(since);
      if (span?.ok === false) return fail(`--since ${escapeText(since ?? '')}: ${span.reason}`);
      const query = new URLSearchParams({
        limit,
        ...(who !== undefined && { who }),
        ...(object !== undefined && { object }),
        ...(span !== undefined && { since: new Date(io.clock.wallMs() - span.ms).toISOString() }),
      });
      const call = { method: 'GET', path: `/activity?${query}` } as const;
      const answer = await askAdmin<Partial<ActivityJson> & Pick<ActivityJson, 'deeds'>>(
        frame,
        options,
        call,
      );
      if (answer === undefined) return;
      // An older control plane does not include `missing`.
      const { deeds, missing = [] } = answer.value;
      if (options.json) io.write(`${JSON.stringify({ deeds, missing }, undefined, 2)}\n`);
      else if (deeds.length === 0) io.write('no activity is recorded\n');
      else io.write(deeds.map(formatEntry).join(''));
      for (const { url, error } of missing) {
        io.writeError(
          `${escapeText(`warning: the actions at ${url} are not listed: it does not answer (${error})`)}\n`,
        );
      }
    });
};

/** Such as `2026-11-24T10:00:00.000Z  ann: roll back to 0123456789ab: too many  [done]`. */
function formatEntry({ at, who, what, outcome }: ActivityEntryJson): string {
  return `${at}  ${escapeText(`${who ?? 'unknown user'}: ${what}`)}  [${escapeText(outcome)}]\n`;
}
