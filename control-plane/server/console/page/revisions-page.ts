// The page of revisions: each with its changes, its author, its problems, and a button to roll back.
import { html } from 'htm/preact';
import { useContext, useState } from 'preact/hooks';
import type { ListedRevisionJson } from '../../admin/controllers/revisions.ts';
import type { StatusJson } from '../../admin/status-report.ts';
import { ask } from './api.ts';
import { Changes } from './changes.ts';
import { Confirm } from './confirm.ts';
import { toAgo, toClock, toSentence, toShortId, toShown, toTime } from './format.ts';
import { RevisionName } from './names.ts';
import { MemoryNotice } from './notices.ts';
import type { PageProps } from './page-props.ts';
import { Badge, Empty, Listed, Page, ReadingState } from './parts.ts';
import { Problems } from './problems.ts';
import { type Resource, useResource } from './resource.ts';
import { RollBack } from './roll-back.ts';
import { RolloutPanel } from './rollout-panel.ts';
import { replaceRoute } from './route.ts';
import { SessionContext, useRefusal } from './session.ts';
import { type Column, Table } from './table.ts';

const columns: readonly Column<ListedRevisionJson>[] = [
  { name: 'Revision', value: ({ id }) => id },
  { name: 'When', value: ({ at }) => at },
  { name: 'Who', value: ({ author }) => author },
  { name: 'Why', value: ({ message }) => message?.split('\n')[0] ?? null },
  { name: '' },
];

export function RevisionsPage({ params, status }: PageProps) {
  const history = useResource<{ readonly revisions: readonly ListedRevisionJson[] }>(
    'revisions?limit=50',
    'revisions',
  );
  const [target, setTarget] = useState<ListedRevisionJson | undefined>(undefined);
  const revisions = history.value?.revisions ?? [];
  const open = params.get('open') ?? '';
  const refusal = useRefusal();
  const { rollout } = useContext(SessionContext);

  function toRows(revision: ListedRevisionJson) {
    const { id, at, author, message, outcome } = revision;
    // The revision that was in force when this one was created.
    const before = revisions
      .slice(revisions.indexOf(revision) + 1)
      .find((each) => !isUnserved(each));
    const isOpen = open === toShortId(id);
    return [
      html`<tr key=${`${id} ${at}`}>
        <td><${RevisionName} id=${id} />${outcome !== null && html`<div><${Badge} tone=${outcomeTones[outcome.kind]}>${outcome.kind.replaceAll('_', ' ')}<//></div>`}</td>
        <td class="when" title=${toTime(at)}>${toAgo(at)}</td>
        <td>${author === null ? '–' : toShown(author)}</td>
        <td class="message">${message === null ? '–' : toShown(message.split('\n')[0] ?? '')}${outcome !== null && html`<div class="quiet">${toOutcomeText(outcome)}</div>`}</td>
        <td class="actions">
          ${
            before !== undefined &&
            html`<button type="button" aria-expanded=${isOpen}
            aria-label=${`What changed in ${toShortId(id)}`}
            onClick=${() => replaceRoute('revisions', isOpen ? {} : { open: toShortId(id) })}>What changed</button>`
          }
          ${
            // Without the status, the revision in force is unknown, so no rollback is offered.
            status.value &&
            id !== status.value.newest?.id &&
            !isUnserved(revision) &&
            html`<button type="button" disabled=${refusal !== undefined} title=${refusal ?? ''}
            aria-label=${`Roll back to ${toShortId(id)}`} onClick=${() => setTarget(revision)}>Roll back…</button>`
          }
        </td>
      </tr>`,
      isOpen &&
        before !== undefined &&
        html`<tr key=${`${id} ${at} diff`} class="inner"><td colspan="5"><${Changes} from=${before.id} to=${id} /></td></tr>`,
    ];
  }

  return html`<${Page} title="Revisions" about="What changed, who changed it, and how to roll back.">
    ${status.value && html`<${MemoryNotice} status=${status.value} /><${NewestState} status=${status} />`}
    <${ReadingState} of=${history} />
    <${Listed} of=${history} count=${revisions.length}
      nothing=${html`<${Empty} title="There is no revision yet."><p>The first one appears as soon as the store has a file.</p><//>`}>
      <${Table} caption="Revisions, the newest first" columns=${columns} items=${revisions} toRow=${toRows} />
    <//>
    ${!rollout && html`<p class="quiet">A revision reaches all workers at once. <code>serve --rollout canary=10%,hold=60s</code> gives it to a share of them first.</p>`}
    ${
      target &&
      status.value &&
      html`<${RollBack} to=${target} status=${status.value} onClose=${(done: boolean) => {
        setTarget(undefined);
        if (!done) return;
        history.reload();
        status.reload();
      }} />`
    }
  <//>`;
}

type Outcome = NonNullable<ListedRevisionJson['outcome']>;

const outcomeTones = {
  in_force: 'good',
  was_in_force: 'plain',
  on_trial: 'wait',
  waits: 'wait',
  taken_back: 'bad',
  held_back: 'bad',
  invalid: 'bad',
  never_served: 'plain',
} as const satisfies Record<Outcome['kind'], string>;

function isUnserved({ outcome }: ListedRevisionJson): boolean {
  return (
    outcome !== null && (outcomeTones[outcome.kind] === 'bad' || outcome.kind === 'never_served')
  );
}

/** Such as `Taken back by bob, 2 min ago: too many complaints.` */
function toOutcomeText({ kind, since, until, by, reason }: Outcome): string {
  const why = reason === null ? '' : `: ${reason}`;
  return `${toSentence(`${toTimesText()}${why}`)}.`;

  function toTimesText(): string {
    if (since === null) return kind === 'waits' ? 'waits for the rollout before it' : words();
    if (kind === 'in_force' || kind === 'on_trial') return `${words()} since ${clockOf(since)}`;
    if (kind === 'was_in_force') {
      return `${words()} from ${clockOf(since)}${until === null ? '' : ` to ${clockOf(until)}`}`;
    }
    return `${words()}${by === null ? '' : ` by ${by}`}, ${toAgo(since)}`;
  }

  function clockOf(time: string): string {
    return toClock(Date.parse(time));
  }

  function words(): string {
    return kind.replaceAll('_', ' ');
  }
}

interface NewestProps {
  readonly status: Resource<StatusJson>;
}

/** The condition that the newest revision waits for, and its problems. */
function NewestState({ status: asked }: NewestProps) {
  const { value: status, reload } = asked;
  if (status === undefined) return null;
  const { newest, rollout, verdict, text } = status;
  const problems = newest?.problems ?? [];
  // If no share of the workers can receive the revision first, the rollout has the reason.
  const isForRemoval = verdict === 'held_back' && newest?.valid === false;
  return html`
    ${rollout && html`<${RolloutPanel} rollout=${rollout} status=${asked} />`}
    ${isForRemoval && html`<${HeldBack} status=${status} newest=${newest.id} reload=${reload} />`}
    ${
      problems.length > 0 &&
      !isForRemoval &&
      html`<section class="panel" aria-label="Problems of the newest revision">
        <h2>${newest?.valid ? 'What may be wrong with the newest revision' : 'The newest revision is not served'}</h2>
        ${!newest?.valid && html`<p>${toSentence(text)}.</p>`}
        <${Problems} problems=${problems} revision=${newest?.id} />
      </section>`
    }`;
}

interface HeldBackProps {
  readonly status: StatusJson;
  /** Its id. */
  readonly newest: string;
  reload(): void;
}

/** The revision is approved, or the files are restored to those in force. */
function HeldBack({ status, newest, reload }: HeldBackProps) {
  const [asked, setAsked] = useState<'approve' | 'reject' | undefined>(undefined);
  const refusal = useRefusal();
  const { inForce } = status;
  const closed = (done: boolean) => {
    setAsked(undefined);
    if (done) reload();
  };
  return html`<section class="panel" aria-label="Held back">
    <h2>A revision is held back</h2>
    <p>${toSentence(status.text)}.</p>
    <div class="buttons left">
      <button type="button" class="dangerous" disabled=${refusal !== undefined} title=${refusal ?? ''} onClick=${() => setAsked('approve')}>Approve…</button>
      ${inForce !== null && html`<button type="button" disabled=${refusal !== undefined} title=${refusal ?? ''} onClick=${() => setAsked('reject')}>Reject…</button>`}
    </div>
    ${
      asked === 'approve' &&
      html`<${Confirm} title=${`Serve ${toShortId(newest)}?`} action="Approve" isDangerous
        act=${(reason: string) => ask('approvals', { method: 'POST', body: { revision: newest, reason } })}
        onClose=${closed}><p>Requests that are limited now would pass.</p>
        ${inForce !== null && html`<${Changes} from=${inForce.id} to=${newest} />`}<//>`
    }
    ${
      asked === 'reject' &&
      inForce !== null &&
      html`<${Confirm} title=${`Reject ${toShortId(newest)}?`} action="Reject"
        act=${(reason: string) =>
          ask('rollbacks', {
            method: 'POST',
            body: { revision: inForce.id, message: reason, expectedRevision: newest },
          })}
        onClose=${closed}><p>No worker has it, and none gets it. A new revision gets the files of ${toShortId(inForce.id)}, which is in force.</p><//>`
    }
  </section>`;
}
