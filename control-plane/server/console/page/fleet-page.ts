// The page of workers: each one's rules, decision rate and problems.
import { html } from 'htm/preact';
import { useContext } from 'preact/hooks';
import type { HistoryJson } from '../../admin/controllers/traffic.ts';
import type { FleetJson, GoneWorkerJson, LinkJson, WorkerJson } from '../../admin/fleet-json.ts';
import type { StatusJson } from '../../admin/status-report.ts';
import { TrafficChart, toMinute } from './chart.ts';
import {
  compareNames,
  toAge,
  toAgo,
  toCount,
  toP99,
  toRate,
  toRateCell,
  toReporting,
  toSentence,
  toShown,
} from './format.ts';
import { AskMinute, Minute, readMinute } from './minute.ts';
import { RevisionName, WorkerName } from './names.ts';
import type { PageProps } from './page-props.ts';
import { Badge, Empty, NothingMatches, Notice, Page, ReadingState, Search, Tile } from './parts.ts';
import { useResource } from './resource.ts';
import { hrefOf, replaceRoute, withParams } from './route.ts';
import { SessionContext } from './session.ts';
import { type Column, Table } from './table.ts';
import { workerStates } from './worker-states.ts';

/** The group of all nodes that no other group names. */
const defaultGroup = 'default';

/** Workers with problems are first. */
const order: readonly WorkerJson['state'][] = ['refused', 'pending', 'on_trial', 'in_force'];

export function FleetPage({ params, status }: PageProps) {
  const span = params.get('span') === '1h' ? '1h' : '15m';
  const history = useResource<HistoryJson>(`traffic?span=${span}`, 'figures');
  const { value } = status;
  const at = readMinute(params);
  const show = (time: string) => replaceRoute('fleet', withParams(params, { at: toMinute(time) }));
  return html`<${Page} title="Fleet" about="The workers' rules and decisions.">
    <${ReadingState} of=${status} />
    ${value?.rolloutWarning && html`<${Notice} tone="wait">${toSentence(value.rolloutWarning)}.<//>`}
    ${value && html`<${Tiles} status=${value} />`}
    ${
      history.value !== undefined &&
      history.value.slots.length + history.value.marks.length > 1 &&
      html`<${TrafficChart} key=${span} history=${history.value} spanSeconds=${span === '1h' ? 3_600 : 900}
        onMinute=${(second: number) => show(new Date(second * 1000).toISOString())}>
        <${AskMinute} show=${show} /><${Spans} span=${span} params=${params} /><//>`
    }
    ${at !== undefined && html`<${Minute} key=${at} at=${at} params=${params} />`}
    ${value !== undefined && value.controlPlanes.length > 0 && html`<${ControlPlanes} status=${value} />`}
    <h2>Workers</h2>
    ${value?.fleet && html`<${Workers} fleet=${value.fleet} params=${params} />`}
    ${value?.fleet && value.fleet.links.length > 0 && html`<${Links} links=${value.fleet.links} />`}
  <//>`;
}

interface SpansProps {
  readonly span: string;
  readonly params: URLSearchParams;
}

function Spans({ span, params }: SpansProps) {
  const link = (value: string, text: string) =>
    html`<a href=${hrefOf('fleet', withParams(params, { span: value }))} aria-current=${value === span ? 'true' : undefined}>${text}</a>`;
  return html`<nav class="spans" aria-label="Span of the chart">${link('15m', '15 min')}${link('1h', '1 h')}</nav>`;
}

interface StatusProps {
  readonly status: StatusJson;
}

function Tiles({ status }: StatusProps) {
  const { workers, traffic, inForce, notices = [] } = status;
  const isReported = traffic !== null && traffic.workers >= workers.connected;
  const uncounted = traffic?.withoutStorePerSecond ?? 0;
  const isShadow = notices.some(({ kind }) => kind === 'shadow_mode');
  const isCounted = !notices.some(({ kind }) => kind.startsWith('store_'));
  const badly = (...kinds: string[]) =>
    notices.some(({ kind }) => kinds.includes(kind)) ? 'bad' : 'plain';
  const others = [
    workers.onTrial > 0 ? `${workers.onTrial} on trial` : '',
    workers.pending > 0 ? `${workers.pending} pending` : '',
    workers.refused > 0 ? `${workers.refused} refused` : '',
    workers.gone > 0 ? `${workers.gone} gone` : '',
  ].filter((part) => part !== '');
  const isWaiting = workers.inForce < workers.connected;
  const p99 = traffic === null ? undefined : toP99(traffic);
  const rate = (perSecond: number | undefined) =>
    perSecond === undefined ? '–' : toRate(perSecond);
  return html`<dl class="tiles">
    <${Tile} name="Workers" value=${`${workers.inForce} of ${workers.connected}`}
      detail=${['in force', ...others].join(', ')}
      tone=${workers.refused > 0 ? 'bad' : isWaiting ? 'wait' : badly('no_rules', 'other_rules', 'no_workers')} />
    <${Tile} name="Decisions/s" value=${rate(traffic?.decisionsPerSecond)}
      detail=${uncounted > 0 ? `${toRate(uncounted)}/s without the store` : toReportText(status)}
      tone=${uncounted > 0 ? 'bad' : isReported || workers.connected === 0 ? 'plain' : 'wait'} />
    <${Tile} name="Over limit/s" value=${rate(traffic?.overLimitPerSecond)}
      detail=${isShadow ? 'not refused: shadow mode' : isCounted ? shareText(traffic) : 'limits are not enforced now'}
      tone=${badly('store_unreachable', 'store_partly_unreachable', 'store_failing', 'shadow_mode')} />
    <${Tile} name="Errors/s" value=${rate(traffic?.errorsPerSecond)}
      detail="not decided" tone=${(traffic?.errorsPerSecond ?? 0) > 0 ? 'bad' : 'plain'} />
    <${Tile} name=${p99 === undefined ? 'p99' : `p99, ${p99[0]}`} value=${p99?.[1] ?? '–'} detail="99 % of decisions" />
    ${
      traffic?.quota &&
      html`<${Tile} name="Quota buckets" value=${String(traffic.quota.buckets)}
        detail=${`${toCount(traffic.quota.streams, 'stream')}, ${toRate(traffic.quota.assignmentsPerSecond)} assignments/s`} />`
    }
    <${Tile} name="Limits" value=${inForce === null ? '–' : String(inForce.limits)}
      detail=${inForce === null ? 'nothing is in force' : toDomainsText(inForce)} />
  </dl>`;
}

function toDomainsText({ domains, fewerInAll = 0 }: NonNullable<StatusJson['inForce']>): string {
  const fewer = fewerInAll === 0 ? '' : `, ${toCount(fewerInAll, 'group')} with fewer`;
  return `in ${toCount(domains, 'domain')}${fewer}`;
}

function toReportText({ workers, traffic }: StatusJson): string {
  if (traffic === null) return 'no worker reports';
  return traffic.workers < workers.connected
    ? `${traffic.workers} of ${toReporting(workers.connected)}`
    : toReporting(traffic.workers);
}

function shareText(traffic: StatusJson['traffic']): string {
  if (traffic === null || traffic.decisionsPerSecond === 0) return 'of no decisions';
  const percent = (traffic.overLimitPerSecond / traffic.decisionsPerSecond) * 100;
  return `${percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} % of decisions`;
}

function ControlPlanes({ status }: StatusProps) {
  return html`<h2>Control planes</h2>
    <${Table} caption="Control planes" columns=${[{ name: 'Address' }, { name: 'State' }, { name: 'Serves' }, { name: 'Workers', isNumber: true }]} items=${status.controlPlanes}
      toRow=${({
        url,
        connected,
        inForce,
        trial,
        error,
      }: StatusJson['controlPlanes'][number]) => html`<tr key=${url}>
        <td>${url === 'this' ? 'this one' : url}</td>
        <td>${error === null ? html`<${Badge} tone="good">answers<//>` : html`<${Badge} tone="bad">no answer<//> ${error}`}</td>
        <td>${error === null && (inForce === null ? 'nothing' : html`<${RevisionName} id=${inForce} />`)}${trial !== null && html`, <${RevisionName} id=${trial} /> on trial`}</td>
        <td class="number">${connected ?? '–'}</td>
      </tr>`} />`;
}

interface LinksProps {
  readonly links: readonly LinkJson[];
}

function Links({ links }: LinksProps) {
  return html`<h2>Links that do not count in rollouts</h2>
    <${Table} caption="Links" columns=${[{ name: 'Worker' }, { name: 'Instance' }, { name: 'Address' }, { name: 'Why' }]} items=${links}
      toRow=${({ id, instance, address, problem }: LinkJson) => html`<tr key=${instance}>
        <td><strong>${toShown(id)}</strong></td>
        <td><code>${toShown(instance.slice(0, 8))}</code></td>
        <td>${address}</td>
        <td>${toShown(problem)}</td>
      </tr>`} />`;
}

interface WorkersProps {
  readonly fleet: FleetJson;
  readonly params: URLSearchParams;
}

function Workers({ fleet: { workers, gone }, params }: WorkersProps) {
  const { xdsPort } = useContext(SessionContext);
  const search = params.get('search') ?? '';
  const state = params.get('state') ?? '';
  const go = (next: { search?: string; state?: string }) =>
    replaceRoute('fleet', withParams(params, next));
  if (workers.length + gone.length === 0) {
    return html`<${Empty} title="No worker is connected.">
      <p>A worker with this setting gets its rules from this control plane:</p>
      <pre>CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_URL=${xdsAddress(xdsPort)} npm run -s worker</pre>
    <//>`;
  }
  const sought = search.toLowerCase();
  const isFound = (...texts: string[]) => texts.some((text) => text.toLowerCase().includes(sought));
  const found = workers
    .filter((worker) => state === '' || worker.state === state)
    .filter(({ name, address, group }) => isFound(name, address, group ?? ''))
    .toSorted(
      (a, b) =>
        order.indexOf(a.state) - order.indexOf(b.state) ||
        (b.figures?.decisionsPerSecond ?? 0) - (a.figures?.decisionsPerSecond ?? 0) ||
        compareNames(a.name, b.name),
    );
  const left = gone.filter(
    ({ id, address, refusal }) =>
      (state === '' || state === 'gone' || (state === 'refused' && refusal != null)) &&
      isFound(id, address),
  );
  return html`<div class="filters">
      <${Search} label="Find a worker" value=${search} onInput=${(text: string) => go({ search: text })} />
      <select aria-label="State" value=${state} onChange=${(event: Event) => go({ state: (event.target as HTMLSelectElement).value })}>
        <option value="">All states</option>
        <option value="in_force">In force</option><option value="on_trial">On trial</option><option value="pending">Pending</option>
        <option value="refused">Refused</option><option value="gone">Gone</option>
      </select>
      <span class="quiet" role="status">${toCount(found.length, 'worker')}${left.length > 0 && `, ${left.length} gone`}</span>
    </div>
    ${
      found.length + left.length === 0
        ? html`<${NothingMatches} sought=${search} showAll=${() => go({ search: '', state: '' })} />`
        : html`<${Table} caption="Workers" items=${[...found, ...left]} columns=${columns}
            toRow=${(each: Shown) => ('at' in each ? toGoneRow(each) : toRow(each))} />`
    }`;
}

type Shown = WorkerJson | GoneWorkerJson;

/** Null for a worker that is gone or does not report. */
function figureOf(
  each: Shown,
  field: 'decisionsPerSecond' | 'overLimitPerSecond' | 'errorsPerSecond',
) {
  return 'figures' in each ? (each.figures?.[field] ?? null) : null;
}

const columns: readonly Column<Shown>[] = [
  { name: 'Worker', value: (each) => ('name' in each ? each.name : each.id) },
  { name: 'Rules', value: (each) => ('state' in each ? workerStates[each.state][1] : 'gone') },
  { name: 'Revision', value: (each) => ('revision' in each ? each.revision : null) },
  { name: 'Decisions', isNumber: true, value: (each) => figureOf(each, 'decisionsPerSecond') },
  { name: 'Over limit', isNumber: true, value: (each) => figureOf(each, 'overLimitPerSecond') },
  { name: 'Errors', isNumber: true, value: (each) => figureOf(each, 'errorsPerSecond') },
  {
    name: 'p99',
    isNumber: true,
    value: (each) =>
      'figures' in each ? (each.figures?.p99AboveMs ?? each.figures?.p99Ms ?? null) : null,
  },
  {
    name: 'Store',
    value: (each) => ('figures' in each ? (each.figures?.store.kind ?? null) : null),
  },
  {
    name: 'Connected',
    value: (each) => ('connectedSince' in each ? each.connectedSince : each.at),
  },
];

/** The address for workers on this machine or network, unless a proxy is in front of the console. */
function xdsAddress(port: number | null): string {
  return `${location.hostname}:${port ?? 'PORT'}`;
}

/** The row of a worker whose connection broke in the last hour. */
function toGoneRow({ id, instance, address, at, refusal }: GoneWorkerJson) {
  return html`<tr key=${`gone ${id} ${instance} ${address}`} class="gone">
    <td><${WorkerName} name=${id} /><div class="quiet">${address}</div></td>
    <td><${Badge} tone="bad">gone<//></td>
    <td colspan="7" class="quiet">Its connection broke ${toAgo(at)}, and it has not reconnected.${refusal != null && html`<div class="why">It had refused its rules: ${toShown(refusal.text)}</div>`}</td>
  </tr>`;
}

function toRow(worker: WorkerJson) {
  const { id, name, address, group, state, acked, nacked, figures, connectedSince } = worker;
  const [tone, text] = workerStates[state];
  return html`<tr key=${`${id} ${address}`}>
    <td><${WorkerName} name=${name} /><div class="quiet">${address}${group !== null && group !== defaultGroup && `, group ${toShown(group)}`}</div></td>
    <td><${Badge} tone=${tone}>${text}<//>${state === 'refused' && nacked !== null && html`<div class="why">${toShown(nacked.text)}</div>`}</td>
    <td>${worker.revision === null ? html`<span class="quiet">${acked === null ? '–' : 'an earlier one'}</span>` : html`<${RevisionName} id=${worker.revision} />`}
      ${worker.gets !== null && worker.gets !== worker.revision && html`<div class="quiet">gets <${RevisionName} id=${worker.gets} /></div>`}
      ${acked !== null && html`<div class="quiet">${toAgo(acked.at)}</div>`}</td>
    ${
      figures === null
        ? html`<td colspan="5" class="quiet">does not report</td>`
        : html`<td class="number">${toRateCell(figures.decisionsPerSecond)}</td>
          <td class="number">${toRateCell(figures.overLimitPerSecond)}</td>
          <td class=${figures.errorsPerSecond > 0 ? 'number loud' : 'number'}>${toRateCell(figures.errorsPerSecond)}</td>
          <td class="number">${toP99(figures)?.join(' ') ?? '–'}</td>
          <td>${toShown(figures.store.kind)}${figures.store.serversAway > 0 && html` <${Badge} tone="bad">${toCount(figures.store.serversAway, 'server')} away<//>`}</td>`
    }
    <td>${toAge(connectedSince)}</td>
  </tr>`;
}
