// `rollout`: shows the state of a revision's rollout, and acts on it.
import { Argument } from 'commander';
import { escapeText } from '../../shared/rules/problem/escaped-text.ts';
import type { RolloutAnswerJson } from '../server/admin/controllers/rollouts.ts';
import type { StatusJson } from '../server/admin/status-report.ts';
import type { AdminCall, AdminClient } from '../server/admin-client.ts';
import {
  type LastVerdictJson,
  type RolloutJson,
  toLeaderText,
  toReachText,
} from '../server/rollout/rollout-json.ts';
import { toShortId } from '../server/store/revision.ts';
import { type AdminOptions, addAdminOptions } from './admin/admin-options.ts';
import { askAdmin } from './admin/ask-admin.ts';
import { type AddCommand, type CommandFrame, exitCodes } from './command-frame.ts';
import { parseRevision, revisionHelp } from './revision-argument.ts';

interface RolloutOptions extends AdminOptions {
  readonly reason?: string;
  readonly revision?: string;
  readonly json?: boolean;
}

const actions = ['status', 'pause', 'resume', 'retry', 'promote', 'abort'];

export const addRollout: AddCommand = (command, frame) => {
  command
    .description(
      'With `serve --rollout`, a new revision reaches the workers in steps. This shows its state, or controls it.',
    )
    .addArgument(new Argument('<action>', 'what to do').choices(actions))
    .option('--reason <text>', 'why, for the audit log; needed for all but status')
    .option(
      '--revision <id>',
      `only if the rollout is of this revision; ${revisionHelp}`,
      parseRevision,
    );
  addAdminOptions(command)
    .addHelpText(
      'after',
      `
Actions:
  status   show the state of the rollout
  pause    leave the revision on the workers that have it, and take no further step
  resume   continue a paused rollout
  retry    continue a paused rollout, or try the newest revision again, which was taken back
  promote  give the revision to all workers now
  abort    take the revision back from the workers that have it

Exit codes:
  0  done
  1  status: no rollout is under way
  2  wrong usage, or the admin API does not answer
  5  no rollout is under way, or one of another revision, or it is in no state for the action`,
    )
    .action(async (action: string, options: RolloutOptions) => {
      const { reason, revision } = options;
      if (action === 'status') return ask(frame, options, { method: 'GET', path: '/rollouts' });
      if (reason === undefined) return frame.fail(`rollout ${action} needs --reason TEXT`);
      const body = { action, reason, revision };
      const call = { method: 'POST' as const, path: '/rollouts', body };
      return ask(frame, options, call);
    });
};

async function ask(frame: CommandFrame, options: RolloutOptions, call: AdminCall): Promise<void> {
  const { io, finish } = frame;
  const codes = { 409: exitCodes.conflict };
  const answer = await askAdmin<RolloutAnswerJson>(frame, options, call, codes);
  if (answer === undefined) return;
  const { rollout, outcome, last } = answer.value;
  if (options.json) io.write(`${JSON.stringify(rollout, undefined, 2)}\n`);
  else {
    if (outcome !== undefined) io.write(`${escapeText(outcome)}\n`);
    if (rollout !== null) {
      io.write(`${escapeText(toText(await findLeading(answer.client, rollout)))}\n`);
    } else if (outcome === undefined) io.write(`no rollout is under way${toLastText(last)}\n`);
  }
  if (call.method === 'GET' && rollout === null) finish(exitCodes.no);
}

/** Only the leading control plane knows why the rollout waits; the status includes its answer. */
async function findLeading(client: AdminClient, own: RolloutJson): Promise<RolloutJson> {
  if (own.leader === null || own.leader.isThis) return own;
  const result = await client.call({ method: 'GET', path: '/status' });
  if (!result.ok || result.answer.status !== 200) return own;
  const { rollout } = result.answer.value as StatusJson;
  return rollout?.revision === own.revision ? rollout : own;
}

function toText({ revision, step, steps, phase, text, workers, leader }: RolloutJson): string {
  const reach = toReachText(workers, leader);
  return `revision ${toShortId(revision)}: step ${step} of ${steps}, ${phase.replace('_', ' ')}, ${reach}${text === '' ? '' : `; ${text}`}${toLeaderText(leader)}`;
}

/** How the last rollout ended. */
function toLastText(last: LastVerdictJson | null | undefined): string {
  if (last == null) return '';
  const { revision, outcome, reason, by, at } = last;
  const who = by === null ? '' : ` by ${by}`;
  const became = outcome === 'in_force' ? 'came into force' : `was ${outcome.replace('_', ' ')}`;
  const why = reason === '' ? '' : `: ${reason}`;
  const what = `revision ${toShortId(revision)} ${became}${who} at ${at}${why}`;
  return escapeText(`; the last one on record: ${what}`);
}
