// Who is limited: the values that are limited most, how far their counters are, and setting these back.
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { CountersJson } from '../../admin/counters-json.ts';
import type { TopJson } from '../../admin/top-json.ts';
import { ask } from './api.ts';
import { Confirm, Dialog } from './confirm.ts';
import { type CountersQuestion, CountersTable } from './counters.ts';
import { toNumber, toPairs, toRateCell, toReporting, toShown, toTime } from './format.ts';
import { LiftButton } from './lift.ts';
import type { PageProps } from './page-props.ts';
import {
  Badge,
  Empty,
  NobodyReports,
  NothingMatches,
  Notice,
  Page,
  ReadingState,
  Search,
  Table,
} from './parts.ts';
import { useResource } from './resource.ts';
import { replaceRoute } from './route.ts';
import { useRefusal } from './session.ts';

type Limited = TopJson['values'][number];

const most = 100;

export function LimitedPage({ params }: PageProps) {
  const search = params.get('search') ?? '';
  const query = search === '' ? '' : `&search=${encodeURIComponent(search)}`;
  const top = useResource<TopJson>(`top?limit=${most}${query}`, 'figures');
  const [open, setOpen] = useState('');
  const [resetting, setResetting] = useState<Limited | undefined>(undefined);
  const { value } = top;
  return html`<${Page} title="Who is limited" about="The values that were refused most in the last one or two minutes, and the rules that refuse.">
    <div class="filters">
      <${Search} label="Find a value, a rule or a domain" value=${search}
        onInput=${(text: string) => replaceRoute('limited', text === '' ? {} : { search: text })} />
      ${value && html`<span class="quiet" role="status">${toReporting(value.workers)}</span>`}
    </div>
    <${ReadingState} of=${top} />
    ${value?.missing.map(({ url, error }) => html`<${Notice} tone="bad">What the workers of ${url} limit is not included: ${error}.<//>`)}
    ${
      value &&
      (value.values.length === 0
        ? value.workers === 0
          ? html`<${NobodyReports} />`
          : search !== ''
            ? html`<${NothingMatches} sought=${search} showAll=${() => replaceRoute('limited', {})} />`
            : html`<${Empty} title="Nobody is limited.">
            <p>Values are listed here within five seconds of being refused, where CONFIG_FLEET_LINK_VALUES allows it.</p><//>`
        : html`<${Table} caption="Values that are limited most" columns=${['Value', 'Domain', 'Rule', '#Refused now', 'Trend', '#Refused', '']}
            rows=${value.values.flatMap((each) => {
              const id = idOf(each);
              const isOpen = open === id;
              return [
                html`<tr key=${id}>
                  <td><strong>${toPairs(each.entries)}</strong>${each.liftedUntil !== undefined && html` <${Badge} tone="wait">lifted until ${toTime(each.liftedUntil)}<//>`}</td>
                  <td>${toShown(each.domain)}</td>
                  <td class="source">${toShown(each.rule)}</td>
                  <td class="number">${toRateCell(each.perSecond)}</td>
                  <td>${trendOf(each)}</td>
                  <td class="number" title="At least and at most: a worker keeps 1,000 values">${rangeOf(each)}</td>
                  <td class="actions">
                    <button type="button" aria-expanded=${isOpen} onClick=${() => setOpen(isOpen ? '' : id)}>Counter</button>
                    <${ResetButton} value=${each} onClick=${() => setResetting(each)} />
                    <${LiftButton} domain=${each.domain} entries=${each.entries} liftedUntil=${each.liftedUntil} />
                  </td>
                </tr>`,
                isOpen &&
                  html`<tr key=${`${id} counter`} class="inner"><td colspan="7"><${Counter} of=${each} /></td></tr>`,
              ];
            })} />
          ${value.unlistedAtMost > 0 && html`<p class="quiet">No value that is not listed was refused more than ${toNumber(value.unlistedAtMost)} times.</p>`}`)
    }
    ${value !== undefined && value.rules.length > 0 && html`<${Rules} rules=${value.rules} />`}
    ${resetting && html`<${Reset} value=${resetting} onClose=${() => setResetting(undefined)} />`}
  <//>`;
}

function Rules({ rules }: Pick<TopJson, 'rules'>) {
  return html`<h2>Rules</h2>
    <${Table} caption="Rules with the most hits over limit" columns=${['Rule', '#Hits', '#Near', '#Over limit']}
      rows=${rules.map(
        (rate) => html`<tr key=${rate.rule}>
          <td><span class="source">${toShown(rate.rule)}</span>${rate.shadowMode && html` <${Badge} tone="plain">shadow mode: not refused<//>`}</td>
          <td class="number">${toRateCell(rate.hitsPerSecond)}</td>
          <td class="number">${toRateCell(rate.nearLimitPerSecond)}</td>
          <td class=${rate.overLimitPerSecond > 0 && !rate.shadowMode ? 'number loud' : 'number'}>${toRateCell(rate.overLimitPerSecond)}</td>
        </tr>`,
      )} />`;
}

interface ResetButtonProps {
  readonly value: Limited;
  onClick(): void;
}

function ResetButton({ value, onClick }: ResetButtonProps) {
  const refusal = useRefusal();
  return html`<button type="button" disabled=${refusal !== undefined} title=${refusal ?? ''} onClick=${onClick}
    aria-label=${`Reset the counter of ${toPairs(value.entries)}`}>Reset…</button>`;
}

function Counter({ of }: { readonly of: Limited }) {
  const answer = useResource<CountersJson>(
    { path: 'counters', body: toQuestion(of) },
    'revisions',
    'state',
    'figures',
  );
  return html`<${ReadingState} of=${answer} />${answer.value && html`<${CountersTable} counters=${answer.value} />`}`;
}

interface ResetProps {
  readonly value: Limited;
  onClose(): void;
}

function Reset({ value, onClose }: ResetProps) {
  const [done, setDone] = useState<CountersJson | undefined>(undefined);
  if (done !== undefined) {
    const { answers, notAsked, missing } = done;
    const isConfirmed =
      notAsked + missing.length === 0 &&
      answers.every(({ differs, confirmedBy }) => !differs && confirmedBy !== null);
    return html`<${Dialog} onCancel=${onClose}>
      <h2 id="dialog-title">${isConfirmed ? 'The counter is set back' : 'Not all of the reset is confirmed'}</h2>
      ${missing.map(({ url, error }) => html`<${Notice} tone="bad">Whether the workers of ${url} have reset it is not known: ${error}.<//>`)}
      <${CountersTable} counters=${done} />
      <div class="buttons"><button type="button" class="main" onClick=${onClose}>Close</button></div><//>`;
  }
  return html`<${Confirm} title="Reset this counter?" action="Reset" isDangerous
    act=${async (reason: string) => {
      const answer = await ask<CountersJson>('resets', {
        method: 'POST',
        body: { ...toQuestion(value), reason },
      });
      if (answer.ok) setDone(answer.value);
      return answer;
    }}
    onClose=${(isDone: boolean) => {
      if (!isDone) onClose();
    }}>
    <p><strong>${toPairs(value.entries)}</strong> in the domain ${toShown(value.domain)} begins again at nothing: all its limits, on all workers.</p>
  <//>`;
}

function toQuestion({ domain, entries }: Limited): CountersQuestion {
  return { domain, descriptors: [entries] };
}

function idOf({ domain, rule, entries }: Limited): string {
  return JSON.stringify([domain, rule, entries]);
}

function rangeOf({ atLeast, atMost }: Limited): string {
  return atLeast === atMost ? toNumber(atMost) : `${toNumber(atLeast)} – ${toNumber(atMost)}`;
}

function trendOf({ perSecond, perSecondBefore }: Limited) {
  if (perSecondBefore === null) return html`<span class="quiet">new</span>`;
  if (perSecond > perSecondBefore * 1.2) return html`<span class="loud">↑ rising</span>`;
  if (perSecond < perSecondBefore * 0.8) return '↓ falling';
  return html`<span class="quiet">→ steady</span>`;
}
