// What operators ask of a rollout: to pause, resume, retry, promote or abort it, to approve or to undo a revision. Each
// request gets an answer, at once or once the record has been written. Pure.

import { isError } from '../../../shared/rules/problem/problem.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { openRolloutOf, whyTakenBack, withVerdict } from '../record/record.ts';
import { type ChangeRecord, leads } from '../record/record-state.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import { toShortId } from '../store/revision.ts';
import { type RolloutAction, withAction } from './changes.ts';
import {
  type ApproveEvent,
  type Asked,
  abort,
  answer,
  type Facts,
  type FleetEvent,
  type Turn,
  takeBack,
  toShownId,
  write,
} from './fleet-state.ts';
import { isGiven } from './pools.ts';

const noRollout = 'no rollout is under way';

export function act(
  turn: Turn,
  event: Extract<FleetEvent, { readonly kind: 'act' }>,
  facts: Facts,
): Turn {
  const other = whyOther(event, facts);
  if (other !== undefined) return answer(turn, event.asked, other);
  return event.action === 'promote'
    ? promote(turn, event, facts)
    : applyAction(turn, event.action, event, facts);
}

function whyOther(
  { action, meant = {} }: Extract<FleetEvent, { kind: 'act' }>,
  { record, snapshots }: Facts,
): string | undefined {
  const { rollout, revision } = meant;
  const open = openRolloutOf(record.known.record);
  const shown = open && toShownId(open);
  const about = open?.revision ?? (action === 'retry' ? snapshots.newest?.revision.id : undefined);
  const isRollout = rollout === undefined || rollout === shown;
  if (isRollout && (revision === undefined || about?.startsWith(revision) === true))
    return undefined;
  const toName = (of = '', id: string | undefined) =>
    [of && ` of revision ${toExcerpt(toShortId(of))}`, rollout && id && ` (${toExcerpt(id)})`].join(
      '',
    );
  const now = about === undefined ? 'none is' : `that${toName(about, shown)} is`;
  return `the rollout${toName(revision, rollout)} is not under way, ${now}`;
}

function applyAction(
  turn: Turn,
  action: RolloutAction,
  { asked, reason, by }: Asked,
  facts: Facts,
): Turn {
  const { running } = turn.state.following;
  const { known, error } = facts.record;
  const open = openRolloutOf(known.record);
  const refuse = (problem: string) => answer(turn, asked, problem);
  if (open === undefined && action === 'retry') {
    return retry(turn, { asked, reason, by }, facts);
  }
  if (open === undefined) return refuse((running && error) ?? noRollout);
  if ((action === 'resume' || action === 'retry') && open.outcome !== 'paused')
    return refuse('the rollout is not paused');
  if (action === 'pause' && open.outcome === 'paused') {
    return refuse('the rollout is paused already');
  }
  const problem = 'the rollout has changed meanwhile: check its state and try again';
  if (action === 'abort' && running?.trial.revision.id === open.revision) {
    const anyway = '; the workers of this control plane return to the previous rules anyway';
    return takeBack(turn, running, { reason, by }, facts, {
      asked,
      problem,
      anyway,
      ends: open.id,
    });
  }
  const change: ChangeRecord = (record) =>
    openRolloutOf(record)?.id === open.id
      ? withAction(record, action, { reason, by, atMs: facts.wallMs })
      : undefined;
  return write(turn, { change, asked: { asked, problem, anyway: '' } }, facts);
}

function promote(turn: Turn, given: Asked, facts: Facts): Turn {
  const { record } = facts.record.known;
  const open = openRolloutOf(record);
  const before = open && whyTakenBack(record, open.content);
  if (before === undefined) return applyAction(turn, 'promote', given, facts);
  const problem = `its rules were taken back before (${before}): they reach the workers by all steps`;
  return answer(turn, given.asked, problem);
}

/** Restarts the newest revision, which was taken back, at its first step. */
function retry(turn: Turn, { asked, reason, by }: Asked, facts: Facts): Turn {
  const { newest } = facts.snapshots;
  const isTakenBack = newest?.problems.some(({ rule }) => rule === 'taken-back') === true;
  if (newest?.content === undefined || !isTakenBack) {
    const problem = 'no rollout is under way, and the newest revision was not taken back';
    return answer(turn, asked, problem);
  }
  const { content, revision } = newest;
  return writeApproval(turn, { revision: revision.id, content, asked, reason, by }, facts);
}

function writeApproval(
  turn: Turn,
  { asked, ...approval }: Asked & { readonly revision: string; readonly content: string },
  facts: Facts,
): Turn {
  const verdict = { ...approval, outcome: 'approved', atMs: facts.wallMs } as const;
  const change: ChangeRecord = (record) => withVerdict(record, verdict);
  const problem = 'the approval could not be recorded: try again';
  return write(turn, { change, asked: { asked, problem, anyway: '' } }, facts);
}

export function approve(turn: Turn, event: ApproveEvent, facts: Facts): Turn {
  const { asked, revision, reason, by } = event;
  const { following, decision } = turn.state;
  if (following.running?.trial.revision.id === revision && decision.phase === 'indivisible') {
    const request = { asked, by, reason: `approved by ${by}: ${reason}` };
    return applyAction(turn, 'promote', request, facts);
  }
  // Only the leader knows whether a share can be made: if so, the revision still takes all steps.
  const open = openRolloutOf(facts.record.known.record);
  const isNew = open?.revision === revision && !isGiven(open) && !leads(facts.record);
  const { content, problem } = isNew
    ? { content: open.content }
    : findApproved(event, facts.snapshots);
  if (content === undefined) return answer(turn, asked, problem);
  return writeApproval(turn, { revision, content, asked, reason, by }, facts);
}

/** Finds the content of the newest revision, which is held back, or of a step to it; or why it is not approved. */
function findApproved(
  { revision, contentOfStep }: Pick<ApproveEvent, 'revision' | 'contentOfStep'>,
  { newest }: SnapshotState,
): { readonly content?: string | undefined; readonly problem?: string } {
  const id = toShortId(revision);
  // The policy refuses what the revision of the step has changed, and all later revisions with it.
  const isRefused = newest?.problems.some((each) => isError(each) && each.rule === 'policy');
  const isOver = newest?.problems.some(({ rule }) => rule === 'taken-back');
  if (contentOfStep !== undefined && isRefused && !isOver) return { content: contentOfStep };
  if (newest?.revision.id !== revision) {
    const known = toShortId(newest?.revision.id ?? 'not known');
    return { problem: `revision ${id} is not the newest one, which is ${known}` };
  }
  if (newest.isHeldBack) return { content: newest.content };
  return { problem: `revision ${id} is not held back` };
}

export function undo(
  turn: Turn,
  cause: { readonly reason: string; readonly by: string },
  facts: Facts,
): Turn {
  const { running } = turn.state.following;
  const open = openRolloutOf(facts.record.known.record);
  const withdrawn = running === undefined ? turn : takeBack(turn, running, cause, facts);
  const isOther = open !== undefined && open.revision !== running?.trial.revision.id;
  return isOther ? abort(withdrawn, open, cause, facts) : withdrawn;
}
