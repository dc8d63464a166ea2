// Shared by commands that change the rules in force through the admin API: the change made by `push` and `rollback`,
// and the wait after any of them.
import { type Command, Option } from 'commander';
import { escapeText } from '../../../shared/rules/problem/escaped-text.ts';
import type { RevisionJson } from '../../server/admin/revision-json.ts';
import type { RuleChangeJson } from '../../server/admin/rule-change-json.ts';
import type { AdminCallResult, AdminClient } from '../../server/admin-client.ts';
import { formatChanges } from '../change-text.ts';
import { type CommandFrame, exitCodes } from '../command-frame.ts';
import { startProgress } from '../progress.ts';
import { parseRevision, revisionHelp } from '../revision-argument.ts';
import { type AdminOptions, addAdminOptions, openAdminClient } from './admin-options.ts';
import { formatRefusal } from './answer-text.ts';
import { askFleet, toExitCode, toFleetJson, writeFleetStatus } from './fleet-status.ts';
import { addWaitOptions, type WaitOptions, waitForChange } from './wait-options.ts';

export interface ChangeOptions extends AdminOptions, WaitOptions {
  readonly expectedRevision?: string;
  readonly message?: string;
  readonly allowRemoval?: boolean;
  readonly now?: boolean;
  readonly steps?: boolean;
  readonly supersede?: boolean;
  readonly again?: boolean;
  readonly json?: boolean;
}

export function addChangeOptions(command: Command): Command {
  addAdminOptions(command)
    .option(
      '--expected-revision <id>',
      `change nothing unless this is the newest revision; without it, whatever the newest is; ${revisionHelp}`,
      parseRevision,
    )
    .option('-m, --message <text>', 'why, for the history')
    .option('--allow-removal', 'even if it removes most limits, or the last domain')
    .addOption(
      new Option(
        '--now',
        'where revisions are rolled out in steps: to all workers at once; --message has to give the reason',
      ).conflicts('supersede'),
    )
    .addOption(
      new Option(
        '--steps',
        'in steps, even if it returns to earlier rules, which otherwise reach all workers at once',
      ).conflicts(['now', 'supersede']),
    )
    .option('--supersede', 'replace a rollout that is under way, instead of waiting for it')
    .addOption(
      new Option(
        '--again',
        'in steps, although the same rules were taken back before; --message has to give the reason',
      ).conflicts(['now', 'supersede']),
    );
  return addWaitOptions(command, waitForChange, ['timeout', 'minWorkers']).addHelpText(
    'after',
    `
Exit codes:
  0  done, or there was nothing to change
  1  the rules have errors, would remove most limits, or there is no such revision; nothing has changed
  2  wrong usage, or the admin API does not answer
  3  with --wait: done, but not yet in force everywhere, on too few workers, or not known
  4  with --wait: done, but the newest revision is invalid, taken back, or held back for an approval
  5  others have changed the rules since the expected revision; nothing has changed`,
  );
}

/** The changes that a push would make. */
interface Preview {
  readonly from: RevisionJson;
  readonly files: readonly { readonly path: string; readonly change: string }[];
  readonly changes: readonly RuleChangeJson[];
}

/** Shows what would change, then makes these files the newest revision, unless `dryRun` is set. */
export async function pushFiles(
  frame: CommandFrame,
  options: ChangeOptions & { readonly dryRun?: boolean },
  files: readonly { readonly path: string; readonly text: string }[],
): Promise<void> {
  const { io, fail } = frame;
  const opened = await openAdminClient(options, io.environment);
  if (!opened.ok) return fail(opened.message);
  const { expectedRevision, allowRemoval, message } = options;
  // The policy reads the end of the message.
  const body = { files, expectedRevision, allowRemoval, message };
  const stopProgress = startProgress(io, () => 'the control plane is comparing the rules');
  const result = await opened.client.call({ method: 'POST', path: '/revisions/diff', body });
  stopProgress();
  if (!result.ok || result.answer.status !== 200) {
    finishRefused(frame, result);
    return;
  }
  const preview = result.answer.value as Preview;
  if (!options.json) io.write(formatPreview(preview));
  if (options.dryRun) {
    if (options.json) io.write(`${JSON.stringify(preview, undefined, 2)}\n`);
    else if (preview.files.length === 0) io.write('nothing would be changed\n');
    return;
  }
  // Makes exactly the change that was shown, and fails if something else has changed meanwhile.
  const expected = { ...options, expectedRevision: expectedRevision ?? preview.from.id };
  await sendChange(frame, expected, '/revisions', { files });
}

function formatPreview({ files, changes }: Preview): string {
  if (files.length === 0) return '';
  const lines = files.map(({ path, change }) => `${escapeText(path)}: ${change}\n`);
  return `${lines.join('')}${formatChanges(changes)}`;
}

export async function sendChange(
  frame: CommandFrame,
  options: ChangeOptions,
  path: '/revisions' | '/rollbacks',
  body: object,
): Promise<void> {
  const { io, fail } = frame;
  const opened = await openAdminClient(options, io.environment);
  if (!opened.ok) return fail(opened.message);
  const { expectedRevision, message, allowRemoval } = options;
  const ways = ['now', 'again', 'steps', 'supersede'] as const;
  const rollout = ways.find((way) => options[way]);
  const sent = { ...body, expectedRevision, message, allowRemoval, rollout };
  const call = { method: 'POST' as const, path, body: sent };
  const stopProgress = startProgress(io, () => 'the control plane is making the revision');
  const result = await opened.client.call(call);
  stopProgress();
  if (!result.ok || result.answer.status > 201) {
    finishRefused(frame, result);
    return;
  }
  const { status, value } = result.answer;
  const revision = value as RevisionJson;
  const text = status === 201 ? `revision ${revision.id} was made` : 'nothing had to be changed';
  if (!options.json) io.write(`${text}\n`);
  // Older control planes do not include it.
  const { endedLifts = [] } = value as { readonly endedLifts?: readonly string[] };
  if (endedLifts.length > 0) {
    io.writeError(`warning: this change ended lifts: ${escapeText(endedLifts.join(', '))}\n`);
  }
  await finishChange(frame, opened.client, options, revision);
}

/** With `--json`, prints the answer; with `--wait`, includes whether its revision has come into force everywhere. */
export async function finishChange(
  { io, finish }: CommandFrame,
  client: AdminClient,
  { wait, minWorkers, timeout, json }: WaitOptions & { readonly json?: boolean },
  answer: { readonly id: string } | { readonly revision: string },
  isApproved = false,
): Promise<void> {
  const revision = 'id' in answer ? answer.id : answer.revision;
  const question = { revision, minWorkers, isApproved };
  const asked = wait ? await askFleet(client, question, timeout, io) : undefined;
  if (json) {
    const shown = { ...answer, ...(asked?.ok && { status: toFleetJson(asked.fleet) }) };
    io.write(`${JSON.stringify(shown, undefined, 2)}\n`);
  } else if (asked?.ok) writeFleetStatus(asked.fleet, io);
  if (asked?.ok === false) io.writeError(asked.message);
  if (asked !== undefined) finish(asked.ok ? toExitCode(asked.fleet) : exitCodes.error);
}

function finishRefused({ io, finish, fail }: CommandFrame, result: AdminCallResult): void {
  if (!result.ok) {
    fail(result.message);
    return;
  }
  const { status } = result.answer;
  io.writeError(formatRefusal(result.answer));
  if (status === 409 || status === 412) finish(exitCodes.conflict);
  else finish(status === 422 || status === 404 ? exitCodes.no : exitCodes.error);
}
