// A running rollout: its progress, and actions on it.
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { StatusJson } from '../../admin/status-report.ts';
import type { RolloutJson, RolloutPlanJson } from '../../rollout/rollout-json.ts';
import { ask } from './api.ts';
import { Changes } from './changes.ts';
import { Confirm } from './confirm.ts';
import { toAgo, toClock, toSentence, toShown, toSpan } from './format.ts';
import { RevisionName } from './names.ts';
import { Badge } from './parts.ts';
import { toHavingText, toUndoText } from './reach.ts';
import { type Resource, useResource } from './resource.ts';
import { RolloutSides } from './rollout-sides.ts';
import { useRefusal } from './session.ts';

type Action = 'pause' | 'resume' | 'promote' | 'approve' | 'abort';

const actions: Readonly<
  Record<Action, { readonly button: string; readonly title: string; readonly what: string }>
> = {
  pause: {
    button: 'Pause…',
    title: 'Pause the rollout?',
    what: 'No further workers get the revision until it is resumed.',
  },
  resume: {
    button: 'Resume…',
    title: 'Resume the rollout?',
    what: 'It continues where it was paused.',
  },
  promote: {
    button: 'Give to all now…',
    title: 'Send the revision to all workers now?',
    what: 'The remaining steps are left out: the workers are no longer compared.',
  },
  approve: {
    button: 'Approve…',
    title: 'Send the revision to all workers now?',
    what: 'No share of the workers can have it first: all of them get it at once, and are not compared.',
  },
  abort: {
    button: 'Undo…',
    title: 'Take the revision back?',
    what: 'All workers go back to the revision in force.',
  },
};

interface RolloutProps {
  readonly rollout: RolloutJson;
  readonly status: Resource<StatusJson>;
}

/** The rollout does not continue by itself. */
function waitsForOperator({ phase }: RolloutJson): boolean {
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

/** The progress, the figures of both sides, the changes, and the actions. */
export function RolloutPanel({ rollout, status }: RolloutProps) {
  const { id, revision, step, steps, phase, text, since, leader } = rollout;
  /** Stored with the displayed state: another rollout may be running by the time of the confirmation. */
  const [chosen, choose] = useState<
    { action: Action; revision: string; rollout: string | undefined } | undefined
  >(undefined);
  const action = chosen?.action;
  const known = useResource<{ readonly plan: RolloutPlanJson | null }>('rollouts', 'revisions');
  const refusal = useRefusal();
  const plan = known.value?.plan ?? undefined;
  const { value } = status;
  const possible: Action[] =
    phase === 'indivisible'
      ? ['approve', 'abort']
      : ['abort', phase === 'paused' ? 'resume' : 'pause', 'promote'];
  return html`<section class="panel rollout" aria-label="Rollout">
    <h2>Rollout of <${RevisionName} id=${revision} /> <${Badge} tone=${waitsForOperator(rollout) ? 'bad' : 'wait'}>${phases[phase]}<//></h2>
    <p><strong>${rollout.reach}</strong>. ${text === '' ? 'Under way' : toSentence(text)}.</p>
    <ol class="steps" aria-label=${`Step ${step} of ${steps}`}>${Array.from(
      { length: steps },
      (_, index) => html`<li class=${index + 1 < step ? 'past' : index + 1 === step ? 'now' : ''}
        aria-current=${index + 1 === step ? 'step' : undefined}>${toStepText(index, steps, plan)}</li>`,
    )}</ol>
    <div class="buttons left">${possible.map(
      (
        each,
      ) => html`<button type="button" class=${each === 'abort' ? 'dangerous' : ''} disabled=${refusal !== undefined} title=${refusal ?? ''}
        onClick=${() => choose({ action: each, revision, rollout: id ?? undefined })}>${phase === 'indivisible' && each === 'abort' ? 'Reject…' : actions[each].button}</button>`,
    )}</div>
    <${RolloutSides} revision=${revision} status=${status} plan=${plan} />
    ${value?.inForce && html`<h3>What changes</h3><${Changes} from=${value.inForce.id} to=${revision} />`}
    <p class="quiet">Begun ${toAgo(since)}.${leader !== null && ` Led by ${toShown(leader.name)} since ${toClock(Date.parse(leader.since))}${leader.after === null ? '' : `, after ${toShown(leader.after)} has stopped`}.`}</p>
    ${
      action &&
      value &&
      html`<${Confirm} title=${actions[action].title} action=${actions[action].button.replace('…', '')} isDangerous=${action !== 'pause' && action !== 'resume'}
        act=${(reason: string) =>
          action === 'approve'
            ? ask('approvals', { method: 'POST', body: { revision: chosen?.revision, reason } })
            : ask('rollouts', {
                method: 'POST',
                body: { action, reason, revision: chosen?.revision, rollout: chosen?.rollout },
              })}
        onClose=${(done: boolean) => {
          choose(undefined);
          if (done) status.reload();
        }}><p>${toHavingText(value)}</p>
          <p>${action === 'abort' && value.inForce !== null ? toUndoText(value, value.inForce.id) : actions[action].what}</p><//>`
    }
  </section>`;
}

/** Such as `10 %, 60 s`; only the number if node groups have their own steps. */
function toStepText(index: number, steps: number, plan: RolloutPlanJson | undefined): string {
  if (index + 1 === steps) return 'all';
  const step = plan?.steps.length === steps - 1 ? plan.steps[index] : undefined;
  return step === undefined ? `${index + 1}` : `${step.percent} %, ${toSpan(step.holdSeconds)}`;
}
