// Dialogs that lift the limit of a descriptor for a time, and end a lift early.
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { LiftJson } from '../../admin/controllers/lifts.ts';
import { ask } from './api.ts';
import { Confirm } from './confirm.ts';
import { type Pair, toPairs, toShown, toTime } from './format.ts';
import { Field } from './parts.ts';
import { useRefusal } from './session.ts';

interface LiftProps {
  readonly domain: string;
  readonly entries: readonly Pair[];
  /** RFC 3339; undefined if the limit is not lifted. */
  readonly liftedUntil: string | undefined;
}

export function LiftButton(props: LiftProps) {
  const [isOpen, setOpen] = useState(false);
  const refusal = useRefusal();
  return html`<button type="button" disabled=${refusal !== undefined} title=${refusal ?? ''} onClick=${() => setOpen(true)}
    aria-label=${`Lift the limit of ${toPairs(props.entries)}`}>Lift…</button>
    ${isOpen && html`<${LiftDialog} ...${props} onClose=${() => setOpen(false)} />`}`;
}

/** The spans in the format of the admin API, and their labels. */
const spans = [
  ['15m', '15 minutes'],
  ['1h', '1 hour'],
  ['4h', '4 hours'],
  ['24h', '1 day'],
  ['168h', '1 week'],
] as const;

interface LiftDialogProps extends LiftProps {
  onClose(): void;
}

function LiftDialog({ domain, entries, liftedUntil, onClose }: LiftDialogProps) {
  const [span, setSpan] = useState('1h');
  const isEnd = span === '';
  const what =
    liftedUntil === undefined
      ? 'is not limited for a time, on all workers at once. Then the limit applies again by itself.'
      : `is lifted until ${toTime(liftedUntil)}: this moves the end.`;
  return html`<${Confirm} title="Lift this limit?" action=${isEnd ? 'End the lift' : 'Lift'}
    act=${(reason: string) =>
      ask<LiftJson>('lifts', {
        method: 'POST',
        body: {
          domain,
          descriptors: [entries],
          ...(isEnd ? { end: true } : { for: span }),
          reason,
        },
      })}
    onClose=${onClose}>
    <p><strong>${toPairs(entries)}</strong> in the domain ${toShown(domain)} ${what}</p>
    <${Field} label="How long">
      <select name="span" value=${span} onChange=${(event: Event) => setSpan((event.target as HTMLSelectElement).value)}>
        ${spans.map(([text, label]) => html`<option value=${text}>${label}</option>`)}
        ${liftedUntil !== undefined && html`<option value="">no longer: it ends now</option>`}
      </select>
    <//>
  <//>`;
}
