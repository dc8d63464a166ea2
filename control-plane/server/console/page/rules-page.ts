// The rules in force, one domain at a time, with the current counts of each.
import { html } from 'htm/preact';
import type { DomainsJson, RulesJson } from '../../admin/controllers/rules.ts';
import type { RuleRow } from '../../admin/rule-rows.ts';
import type { RuleSeries } from '../../fleet/rule-rates.ts';
import { toCount, toLines, toPairs, toRateCell, toShown, toTime } from './format.ts';
import { Source } from './names.ts';
import type { PageProps } from './page-props.ts';
import {
  Badge,
  Empty,
  Listed,
  NothingMatches,
  Notice,
  Page,
  ReadingState,
  Search,
  Sparkline,
  UseBar,
} from './parts.ts';
import { useResource } from './resource.ts';
import { hrefOf, replaceRoute } from './route.ts';
import { type Column, Table } from './table.ts';

const mostRules = 5_000;
const mostDomains = 500;

const noRules = html`<${Empty} title="No rules are in force."><p>Write a file, and its rules appear here as soon as it is valid:</p>
  <pre>domain: shop\ndescriptors:\n  - key: customer\n    rate_limit:\n      unit: minute\n      requests_per_unit: 3</pre><//>`;

export function RulesPage({ params, status }: PageProps) {
  const find = params.get('find') ?? '';
  const search = params.get('search') ?? '';
  const query = find === '' ? '' : `&search=${encodeURIComponent(find)}`;
  const domains = useResource<DomainsJson>(`rules?limit=${mostDomains}${query}`, 'revisions');
  const noWorkerReports = status.value?.traffic === null;
  const domain = params.get('domain') ?? domains.value?.domains[0]?.domain;
  const go = (next: { domain?: string; search?: string; find?: string }) => {
    const all = {
      ...(domain && { domain }),
      ...(find && { find }),
      ...(search && { search }),
      ...next,
    };
    replaceRoute(
      'rules',
      Object.fromEntries(Object.entries(all).filter(([, text]) => text !== '')),
    );
  };
  return html`<${Page} title="Rules" about="The rules in force, and how much each of them counts.">
    <${ReadingState} of=${domains} />
    ${noWorkerReports && html`<${Notice} tone="wait"><strong>No worker reports:</strong> how much the rules count is not known.<//>`}
    ${
      domains.value &&
      html`<div class="split">
        <nav class="domains" aria-label="Domains">
          ${(find !== '' || domains.value.total > 0) && html`<${Search} label="Find a domain" value=${find} onInput=${(text: string) => go({ find: text })} />`}
          <ul>${domains.value.domains.map(
            (
              each,
            ) => html`<li key=${each.domain}><a href=${hrefOf('rules', { ...(find && { find }), domain: each.domain })}
              aria-current=${each.domain === domain ? 'true' : undefined}><span>${toShown(each.domain)}</span>
              <span class="quiet">${each.rules}</span></a></li>`,
          )}</ul>
          ${domains.value.total > domains.value.domains.length && html`<p class="quiet">${domains.value.domains.length} of ${domains.value.total}; find the others by name.</p>`}
          ${domains.isOwn && domains.value.total === 0 && html`<p class="quiet">${find === '' ? 'There is no domain.' : `Nothing matches '${toShown(find)}'.`}</p>`}
        </nav>
        <section aria-label="Rules of the domain">
          <${Listed} of=${domains} count=${domain === undefined ? 0 : 1} isFiltered=${find !== ''} sought=${find} showAll=${() => replaceRoute('rules', {})} nothing=${noRules}>
            <${DomainRules} key=${domain} domain=${domain} search=${search} go=${go} reports=${!noWorkerReports} isAlreadyShown=${domains.problem !== undefined} />
          <//>
        </section>
      </div>`
    }
  <//>`;
}

interface DomainRulesProps {
  readonly domain: string;
  readonly search: string;
  /** Whether any worker reports the counts of the rules. */
  readonly reports: boolean;
  /** Whether the page already shows that there is no answer. */
  readonly isAlreadyShown: boolean;
  go(next: { search?: string }): void;
}

function DomainRules({ domain, search, reports, isAlreadyShown, go }: DomainRulesProps) {
  const name = encodeURIComponent(domain);
  const query = search === '' ? '' : `&search=${encodeURIComponent(search)}`;
  const rules = useResource<RulesJson>(`rules/${name}?limit=${mostRules}${query}`, 'revisions');
  const traffic = useResource<{ readonly rules: readonly RuleSeries[] }>(
    `traffic/rules?domain=${name}`,
    'figures',
  );
  const shown = rules.value?.rules ?? [];
  const rates = new Map(traffic.value?.rules.map((series) => [series.rule, series]));
  return html`<h2>${toShown(domain)}</h2>
    <div class="filters">
      <${Search} label="Find a rule" value=${search} onInput=${(text: string) => go({ search: text })} />
      ${rules.value && html`<span class="quiet" role="status">${toCount(rules.value.total, 'rule')}</span>`}
    </div>
    ${(!isAlreadyShown || rules.problem === undefined) && html`<${ReadingState} of=${rules} />`}
    ${rules.value !== undefined && rules.isOwn && shown.length === 0 && html`<${NothingMatches} sought=${search} showAll=${() => go({ search: '' })} />`}
    ${
      shown.length > 0 &&
      html`<${Table} caption=${`Rules of ${domain}`} columns=${toColumns(rates)} items=${shown}
        toRow=${(rule: RuleRow, isSorted: boolean) => toRow(domain, rule, { revision: rules.value?.revision, reports, series: rates.get(rule.rule), isSorted })} />`
    }
    ${rules.value !== undefined && rules.value.total > shown.length && html`<p class="quiet">The first ${shown.length} of ${rules.value.total}; find the others by name.</p>`}`;
}

/** 0 for a rule without hits. */
function averageOf(series: readonly number[] = []): number {
  return series.reduce((sum, value) => sum + value, 0) / Math.max(1, series.length);
}

const levels = ['l1', 'l2', 'l3', 'l4', 'l5'];

function toColumns(rates: ReadonlyMap<string, RuleSeries>): readonly Column<RuleRow>[] {
  const rate = (field: 'hits' | 'overLimit') => (rule: RuleRow) =>
    averageOf(rates.get(rule.rule)?.[field]);
  return [
    { name: 'Rule', value: ({ rule }) => rule },
    { name: 'Limit', value: ({ limits, modes }) => [...limits, ...modes].join(', ') },
    { name: 'Hits', isNumber: true, value: rate('hits') },
    { name: 'Over limit', isNumber: true, value: rate('overLimit') },
    { name: 'Last minute' },
    {
      name: 'Owner and source',
      value: ({ owner, file, line }) =>
        `${owner === null ? '' : `${owner} `}${file}${line === null ? '' : `:${line}`}`,
    },
    { name: '' },
  ];
}

interface RowContext {
  readonly revision: string | undefined;
  readonly reports: boolean;
  readonly series: RuleSeries | undefined;
  readonly isSorted: boolean;
}

/** The rate, and below it the algorithm in parentheses. */
function toLimit(limit: string) {
  const at = limit.indexOf(' (');
  const [rate, details] = at < 0 ? [limit, ''] : [limit.slice(0, at), limit.slice(at + 1)];
  return html`<div><span class="rate">${toShown(rate)}</span>${details !== '' && html` <span class="quiet">${toShown(details)}</span>`}</div>`;
}

/** Without its parents, only a rule's full name identifies it. */
function toRow(domain: string, rule: RuleRow, { revision, reports, series, isSorted }: RowContext) {
  const rate = (perSecond: number) => (reports ? toRateCell(perSecond) : '–');
  const { entries, limits, modes, until, owner, file, line } = rule;
  const last = entries.at(-1);
  const over = averageOf(series?.overLimit);
  const isShadow = modes.includes('shadow_mode');
  const hits = averageOf(series?.hits);
  const near = averageOf(series?.nearLimit);
  const level = levels[Math.min(entries.length, levels.length) - 1];
  return html`<tr key=${`${rule.rule} ${file} ${line}`}>
    <td class=${`rule ${isSorted ? '' : level}`}><a href=${hrefOf('rule', { rule: rule.rule })}><code>${isSorted ? toPairs(entries) : toPairs(last === undefined ? [] : [last])}</code></a></td>
    <td class="limit">${limits.length === 0 ? html`<span class="quiet">no limit</span>` : limits.map(toLimit)}
      ${modes.map((mode) => html`<${Badge} tone="plain">${mode.replaceAll('_', ' ')}<//> `)}
      ${until !== null && html`<${Badge} tone="wait">until ${toTime(until)}<//>`}</td>
    <td class="number">${rate(hits)}</td>
    <td class=${over > 0 && !isShadow ? 'number loud' : 'number'}>${rate(over)}</td>
    <td>${reports && limits.length > 0 && html`<${UseBar} hits=${hits} near=${near} over=${over} isShadow=${isShadow} />`}
      ${series && html`<${Sparkline} values=${series.hits} over=${series.overLimit} isShadow=${isShadow} />`}</td>
    <td>${owner !== null && html`<div>${toShown(owner)}</div>`}<div class="source"><${Source} file=${file} line=${line} revision=${revision} /></div></td>
    <td><a class="go" href=${hrefOf('try', { domain, descriptor: toLines(entries) })} aria-label=${`Try a request for ${toPairs(entries)}`}>Try</a></td>
  </tr>`;
}
