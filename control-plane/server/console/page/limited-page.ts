// The page of limited values: the most limited ones, the use of their counters, and a reset of these.
import { html } from 'htm/preact';
import type { TopJson } from '../../admin/controllers/top.ts';
import { toNumber, toPairs, toRateCell, toReporting, toTime } from './format.ts';
import { LiftButton } from './lift.ts';
import { DomainName, RuleName, ValueName } from './names.ts';
import type { PageProps } from './page-props.ts';
import { Badge, Empty, Listed, NoReports, Notice, Page, ReadingState, Search } from './parts.ts';
import { Counter, ResetButton } from './reset.ts';
import { useResource } from './resource.ts';
import { replaceRoute, withParams } from './route.ts';
import { type Column, Table } from './table.ts';

type Limited = TopJson['values'][number];
type Rate = TopJson['rules'][number];

const columns: readonly Column<Limited>[] = [
  { name: 'Value', value: ({ entries }) => toPairs(entries) },
  { name: 'Domain', value: ({ domain }) => domain },
  { name: 'Rule', value: ({ rule }) => rule },
  { name: 'Refused now', isNumber: true, value: ({ perSecond }) => perSecond },
  { name: 'Trend' },
  { name: 'Refused', isNumber: true, value: ({ atMost }) => atMost },
  { name: '' },
];

const ruleColumns: readonly Column<Rate>[] = [
  { name: 'Rule', value: ({ rule }) => rule },
  { name: 'Hits', isNumber: true, value: ({ hitsPerSecond }) => hitsPerSecond },
  { name: 'Near', isNumber: true, value: ({ nearLimitPerSecond }) => nearLimitPerSecond },
  { name: 'Over limit', isNumber: true, value: ({ overLimitPerSecond }) => overLimitPerSecond },
];

const most = 100;

const noValueIsLimited = html`<${Empty} title="No value is limited.">
  <p>Values are listed here within five seconds of being refused, where CONFIG_FLEET_LINK_VALUES allows it.</p><//>`;

export function LimitedPage({ params }: PageProps) {
  const search = params.get('search') ?? '';
  const query = search === '' ? '' : `&search=${encodeURIComponent(search)}`;
  const top = useResource<TopJson>(`top?limit=${most}${query}`, 'figures');
  const open = params.get('counter') ?? '';
  const { value } = top;
  const values = value?.values ?? [];
  const isUnreported = value?.workers === 0;

  function toRows(each: Limited) {
    const id = idOf(each);
    const isOpen = open === id;
    return [
      html`<tr key=${id}>
        <td><${ValueName} domain=${each.domain} entries=${each.entries} />${each.liftedUntil !== undefined && html` <${Badge} tone="wait">lifted until ${toTime(each.liftedUntil)}<//>`}</td>
        <td><${DomainName} domain=${each.domain} /></td>
        <td class="rule">${each.rule !== '' && html`<${RuleName} rule=${each.rule} />`}</td>
        <td class="number">${toRateCell(each.perSecond)}</td>
        <td class="when">${trendOf(each)}</td>
        <td class="number" title="Lower and upper bound: a worker retains 1,000 values">${rangeOf(each)}</td>
        <td class="actions">
          <button type="button" aria-expanded=${isOpen} onClick=${() => replaceRoute('limited', withParams(params, { counter: isOpen ? '' : id }))}>Counter</button>
          <${ResetButton} domain=${each.domain} entries=${each.entries} />
          <${LiftButton} domain=${each.domain} entries=${each.entries} liftedUntil=${each.liftedUntil} />
        </td>
      </tr>`,
      isOpen &&
        html`<tr key=${`${id} counter`} class="inner"><td colspan="7"><${Counter} domain=${each.domain} entries=${each.entries} /></td></tr>`,
    ];
  }

  return html`<${Page} title="Who is limited" about="The values that were refused most in the last one or two minutes, and the rules that refuse.">
    <div class="filters">
      <${Search} label="Find a value, a rule or a domain" value=${search}
        onInput=${(text: string) => replaceRoute('limited', withParams(params, { search: text }))} />
      ${value && value.workers > 0 && html`<span class="quiet" role="status">${toReporting(value.workers)}</span>`}
    </div>
    <${ReadingState} of=${top} />
    ${value?.missing.map(({ url, error }) => html`<${Notice} tone="bad">What the workers of ${url} limit is not included: ${error}.<//>`)}
    <${Listed} of=${top} count=${values.length} isFiltered=${search !== '' && !isUnreported} sought=${search} showAll=${() => replaceRoute('limited', {})}
      nothing=${isUnreported ? html`<${NoReports} />` : noValueIsLimited}>
      <${Table} caption="Values that are limited most" columns=${columns} items=${values} toRow=${toRows} />
      ${value && value.unlistedAtMost > 0 && html`<p class="quiet">No value that is not listed was refused more than ${toNumber(value.unlistedAtMost)} times.</p>`}
    <//>
    ${value !== undefined && value.rules.length > 0 && html`<${Rules} rules=${value.rules} />`}
  <//>`;
}

function Rules({ rules }: Pick<TopJson, 'rules'>) {
  return html`<h2>Rules</h2>
    <${Table} caption="Rules with the most hits over limit" columns=${ruleColumns} items=${rules}
      toRow=${(rate: Rate) => html`<tr key=${rate.rule}>
          <td><${RuleName} rule=${rate.rule} />${(rate.limits ?? []).filter(({ overLimitPerSecond }) => overLimitPerSecond > 0).map(({ limit, overLimitPerSecond }) => html` <${Badge} tone="plain">${limit}: ${toRateCell(overLimitPerSecond)} over limit<//>`)}${rate.shadowMode && html` <${Badge} tone="plain">shadow mode: not refused<//>`}</td>
          <td class="number">${toRateCell(rate.hitsPerSecond)}</td>
          <td class="number">${toRateCell(rate.nearLimitPerSecond)}</td>
          <td class=${rate.overLimitPerSecond > 0 && !rate.shadowMode ? 'number loud' : 'number'}>${toRateCell(rate.overLimitPerSecond)}</td>
        </tr>`} />`;
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
