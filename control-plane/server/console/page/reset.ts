// The use of a descriptor's counters, and a reset of them.
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { CountersJson } from '../../fleet/counter-answers.ts';
import { ask } from './api.ts';
import { Confirm, Dialog } from './confirm.ts';
import { CountersTable } from './counters.ts';
import { type Pair, toPairs, toShown } from './format.ts';
import { Notice, ReadingState } from './parts.ts';
import { useResource } from './resource.ts';
import { useRefusal } from './session.ts';

interface DescriptorProps {
  readonly domain: string;
  readonly entries: readonly Pair[];
}

/** The current use, read again whenever there is news. */
export function Counter({ domain, entries }: DescriptorProps) {
  const answer = useResource<CountersJson>(
    { path: 'counters', body: { domain, descriptors: [entries] } },
    'revisions',
    'figures',
  );
  return html`<${ReadingState} of=${answer} />${answer.value && html`<${CountersTable} counters=${answer.value} />`}`;
}

export function ResetButton({ domain, entries }: DescriptorProps) {
  const [isOpen, setOpen] = useState(false);
  const refusal = useRefusal();
  return html`<button type="button" disabled=${refusal !== undefined} title=${refusal ?? ''} onClick=${() => setOpen(true)}
    aria-label=${`Reset the counter of ${toPairs(entries)}`}>Reset…</button>
    ${isOpen && html`<${Reset} domain=${domain} entries=${entries} onClose=${() => setOpen(false)} />`}`;
}

interface ResetProps extends DescriptorProps {
  onClose(): void;
}

function Reset({ domain, entries, onClose }: ResetProps) {
  const [done, setDone] = useState<CountersJson | undefined>(undefined);
  if (done !== undefined) {
    const { answers, notAsked, missing } = done;
    const isConfirmed =
      notAsked + missing.length === 0 &&
      answers.every(({ differs, confirmedBy }) => !differs && confirmedBy !== null);
    return html`<${Dialog} onCancel=${onClose}>
      <h2 id="dialog-title">${isConfirmed ? 'The counter is reset' : 'The reset is only partly confirmed'}</h2>
      ${missing.map(({ url, error }) => html`<${Notice} tone="bad">Whether the workers of ${url} have reset it is not known: ${error}.<//>`)}
      <${CountersTable} counters=${done} />
      <div class="buttons"><button type="button" class="main" onClick=${onClose}>Close</button></div><//>`;
  }
  return html`<${Confirm} title="Reset this counter?" action="Reset" isDangerous
    act=${async (reason: string) => {
      const answer = await ask<CountersJson>('resets', {
        method: 'POST',
        body: { domain, descriptors: [entries], reason },
      });
      if (answer.ok) setDone(answer.value);
      return answer;
    }}
    onClose=${(isDone: boolean) => {
      if (!isDone) onClose();
    }}>
    <p><strong>${toPairs(entries)}</strong> in the domain ${toShown(domain)} starts again at zero: all its limits, on all workers. Now:</p>
    <${Counter} domain=${domain} entries=${entries} />
  <//>`;
}
