// Sentences for dialogs about the workers that have a revision, and about those that an undo affects.
import type { StatusJson } from '../../admin/status-report.ts';
import { toCount, toShortId } from './format.ts';

/** Such as `Now of 3 workers 1 has d6959c7e87a0 on trial, 2 have b31e6e129dc0 in force.` */
export function toHavingText({ workers, inForce, rollout }: StatusJson): string {
  const { connected } = workers;
  if (connected === 0) return 'No worker is connected.';
  const parts = [
    rollout === null ? '' : toPart(workers.onTrial, `${toShortId(rollout.revision)} on trial`),
    inForce === null ? '' : toPart(workers.inForce, `${toShortId(inForce.id)} in force`),
    toPart(workers.pending, 'not answered yet'),
    workers.refused === 0
      ? ''
      : `${workers.refused} refused the rules sent to ${workers.refused === 1 ? 'it' : 'them'}`,
  ].filter((part) => part !== '');
  return `Now of ${toCount(connected, 'worker')} ${parts.join(', ')}.`;
}

function toPart(count: number, what: string): string {
  return count === 0 ? '' : `${count} ${count === 1 ? 'has' : 'have'} ${what}`;
}

/** Such as `All 3 get what b31e6e129dc0 has at once, without steps.` */
export function toUndoText({ workers, rollout }: StatusJson, wanted: string): string {
  const { connected } = workers;
  const all =
    connected === 1 ? 'It gets' : connected === 0 ? 'New workers get' : `All ${connected} get`;
  const ends = rollout === null ? '' : `, and the rollout of ${toShortId(rollout.revision)} ends`;
  return `${all} what ${toShortId(wanted)} has at once, without steps${ends}.`;
}
