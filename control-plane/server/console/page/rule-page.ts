// The page of one rule: its text, its counts, and the values that it limits now.
import { html } from 'htm/preact';
import type { TopJson } from '../../admin/controllers/top.ts';
import { toLines, toPairs, toRateCell, toShown } from './format.ts';
import { DomainName, ValueName } from './names.ts';
import type { PageProps } from './page-props.ts';
import { Empty, Page, ReadingState } from './parts.ts';
import { useResource } from './resource.ts';
import { hrefOf } from './route.ts';
import { RuleCard, useRuleSource } from './rule-card.ts';
import { RuleHistory } from './rule-history.ts';
import { type Column, Table } from './table.ts';

export function RulePage({ params, status }: PageProps) {
  const wanted = params.get('rule') ?? '';
  const source = useRuleSource(wanted === '' ? undefined : wanted);
  const { value, problem } = source;
  const name = value?.rule.rule ?? wanted;
  return html`<${Page} title=${toShown(name)} about="A rule: its text, its effects, and the values that it limits.">
    ${
      problem?.status === 404
        ? html`<${Empty} title="No such rule is in force."><p><a href=${hrefOf('revisions')}>Show what changed</a></p><//>
          ${wanted !== '' && html`<h2>History</h2><${RuleHistory} key=${wanted} rule=${wanted} />`}`
        : html`<${ReadingState} of=${source} />`
    }
    ${
      value &&
      problem?.status !== 404 &&
      html`<p>In the domain <${DomainName} domain=${value.domain} />. <a href=${hrefOf('try', { domain: value.domain, descriptor: toLines(value.rule.entries) })}>Try a request</a></p>
        <${RuleCard} source=${value} status=${status} />
        <h2>History</h2>
        <${RuleHistory} key=${name} rule=${name} />
        <h2>Values it limits now</h2>
        <${Limited} domain=${value.domain} rule=${value.rule.rule} />`
    }
  <//>`;
}

type Value = TopJson['values'][number];

const columns: readonly Column<Value>[] = [
  { name: 'Value', value: ({ entries }) => toPairs(entries) },
  { name: 'Refused now', isNumber: true, value: ({ perSecond }) => perSecond },
];

function Limited({ domain, rule }: { readonly domain: string; readonly rule: string }) {
  const top = useResource<TopJson>(`top?limit=200&domain=${encodeURIComponent(domain)}`, 'figures');
  if (top.value === undefined) return html`<${ReadingState} of=${top} />`;
  const values = top.value.values.filter((value) => value.rule === rule);
  if (values.length === 0)
    return html`<p class="quiet">No value in the last one or two minutes.</p>`;
  return html`<${Table} caption=${`Limited by ${rule}`} columns=${columns} items=${values}
    toRow=${(each: Value) => html`<tr key=${JSON.stringify(each.entries)}>
      <td><${ValueName} domain=${each.domain} entries=${each.entries} /></td>
      <td class="number">${toRateCell(each.perSecond)}</td></tr>`} />`;
}
