// A revision on its way to the workers: where it stands, and what people may do with it.
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { RolloutJson } from '../../admin/rollout-json.ts';
import type { StatusJson } from '../../admin/status-report.ts';
import { ask } from './api.ts';
import { Confirm } from './confirm.ts';
import { toAgo, toClock, toSentence, toShortId, toShown } from './format.ts';
import { Badge } from './parts.ts';
import { toHavingText, toUndoText } from './reach.ts';
import { hrefOf } from './route.ts';
import { useRefusal } from './session.ts';

type Action = 'pause' | 'resume' | 'promote' | 'approve' | 'abort';

const actions: Readonly<
  Record<Action, { readonly button: string; readonly title: string; readonly what: string }>
> = {
  pause: {
    button: 'Pause…',
    title: 'Pause the rollout?',
    what: 'No further workers get the revision until somebody resumes it.',
  },
  resume: {
    button: 'Resume…',
    title: 'Resume the rollout?',
    what: 'It goes on where it was paused.',
  },
  promote: {
    button: 'Give to all now…',
    title: 'Give the revision to all workers now?',
    what: 'The remaining steps are left out: nobody compares the workers any more.',
  },
  approve: {
    button: 'Approve…',
    title: 'Give the revision to all workers now?',
    what: 'No share of the workers can have it first: all of them get it at once, and nobody compares them.',
  },
  abort: {
    button: 'Take back…',
    title: 'Take the revision back?',
    what: 'All workers go back to the revision in force.',
  },
};

interface RolloutProps {
  readonly rollout: RolloutJson;
  readonly status: StatusJson;
  reload(): void;
}

/** Nothing goes on by itself. */
export function waitsForSomebody({ phase }: RolloutJson): boolean {
  return phase === 'paused' || phase === 'indivisible';
}

const phases: Readonly<Record<RolloutJson['phase'], string>> = {
  gathering: 'gathering',
  spreading: 'spreading',
  holding: 'holding',
  silent: 'silent',
  paused: 'paused',
  indivisible: 'waits for an approval',
  taking_back: 'is taken back',
};

/** Where it stands, and what may be done with it. */
export function RolloutPanel({ rollout, status, reload }: RolloutProps) {
  const { revision, step, steps, phase, text, workers, since, leader } = rollout;
  const [action, setAction] = useState<Action | undefined>(undefined);
  const refusal = useRefusal();
  const all = workers.chosen + workers.others;
  const possible: Action[] =
    phase === 'indivisible'
      ? ['approve', 'abort']
      : [phase === 'paused' ? 'resume' : 'pause', 'promote', 'abort'];
  return html`<section class="panel" aria-label="Rollout">
    <h2>Rollout of <code>${toShortId(revision)}</code> <${Badge} tone=${waitsForSomebody(rollout) ? 'bad' : 'wait'}>${phases[phase]}<//></h2>
    <p>${text === '' ? 'Under way' : toSentence(text)}. Begun ${toAgo(since)}.${leader !== null && ` Led by ${toShown(leader.name)}${leader.since === undefined ? '' : ` since ${toClock(Date.parse(leader.since))}`}${leader.after === null ? '' : `, after ${toShown(leader.after)} has stopped`}.`}</p>
    <ol class="steps" aria-label=${`Step ${step} of ${steps}`}>${Array.from(
      { length: steps },
      (_, index) => html`<li class=${index + 1 < step ? 'past' : index + 1 === step ? 'now' : ''}
        aria-current=${index + 1 === step ? 'step' : undefined}>${index + 1 === steps ? 'all' : index + 1}</li>`,
    )}</ol>
    <div class="progress"><progress max=${Math.max(1, all)} value=${workers.having} aria-label=${`${workers.having} of ${all} workers have it`}></progress>
      <span>${rollout.reach}</span></div>
    <div class="buttons left">${possible.map(
      (
        each,
      ) => html`<button type="button" class=${each === 'abort' ? 'dangerous' : ''} disabled=${refusal !== undefined} title=${refusal ?? ''}
        onClick=${() => setAction(each)}>${phase === 'indivisible' && each === 'abort' ? 'Reject…' : actions[each].button}</button>`,
    )}</div>
    ${
      action &&
      html`<${Confirm} title=${actions[action].title} action=${actions[action].button.replace('…', '')} isDangerous=${action !== 'pause' && action !== 'resume'}
        act=${(reason: string) =>
          action === 'approve'
            ? ask('approvals', { method: 'POST', body: { revision, reason } })
            : ask('rollouts', { method: 'POST', body: { action, reason } })}
        onClose=${(done: boolean) => {
          setAction(undefined);
          if (done) reload();
        }}><p>${toHavingText(status)}</p>
          <p>${action === 'abort' && status.inForce !== null ? toUndoText(status, status.inForce.id) : actions[action].what}</p><//>`
    }
    <p class="quiet"><a href=${hrefOf('fleet')}>Look at the workers</a></p>
  </section>`;
}
