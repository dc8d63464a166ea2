// The activity page: actions of users and of the programs.
import { html } from 'htm/preact';
import type { ActivityEntryJson, ActivityJson } from '../../admin/controllers/activity.ts';
import { toAgo, toNumber, toSentence, toShown, toTime } from './format.ts';
import { RevisionName } from './names.ts';
import type { PageProps } from './page-props.ts';
import { Badge, Empty, Listed, Notice, Page, ReadingState, Search } from './parts.ts';
import { useResource } from './resource.ts';
import { replaceRoute, withParams } from './route.ts';
import { type Column, Table } from './table.ts';

const columns: readonly Column<ActivityEntryJson>[] = [
  { name: 'When', value: ({ at }) => at },
  { name: 'Who', value: ({ who }) => who },
  { name: 'What', value: ({ what }) => what },
  { name: 'Revision', value: ({ revision }) => revision },
  { name: 'Outcome', value: ({ outcome }) => outcome },
];

/** The spans in milliseconds. */
const spans = [
  ['3600000', 'In the last hour'],
  ['86400000', 'In the last day'],
  ['604800000', 'In the last week'],
] as const;
const minuteMs = 60_000;

export function ActivityPage({ params }: PageProps) {
  const [who, object, span] = ['who', 'object', 'span'].map((name) => params.get(name) ?? '');
  const go = (next: Record<string, string>) => replaceRoute('activity', withParams(params, next));
  const query = new URLSearchParams({
    limit: '500',
    ...(who && { who }),
    ...(object && { object }),
    // Rounded to the minute, so that the query stays the same for some time.
    ...(Number(span) > 0 && {
      since: new Date(Math.floor((Date.now() - Number(span)) / minuteMs) * minuteMs).toISOString(),
    }),
  });
  const activity = useResource<ActivityJson>(
    { path: `activity?${query}`, name: `activity of ${JSON.stringify([who, object, span])}` },
    'revisions',
    'figures',
  );
  const entries = activity.value?.deeds ?? [];
  const isFiltered = `${who}${object}${span}` !== '';
  return html`<${Page} title="Activity" about="What users and the programs did: changes, approvals, resets, pauses, and what was taken back.">
    <div class="filters">
      <${Search} label="Who" value=${who} onInput=${(text: string) => go({ who: text })} />
      <${Search} label="About what" value=${object} onInput=${(text: string) => go({ object: text })} />
      <select aria-label="When" value=${span} onChange=${(event: Event) => go({ span: (event.target as HTMLSelectElement).value })}>
        <option value="">At any time</option>
        ${spans.map(([ms, text]) => html`<option value=${ms}>${text}</option>`)}
      </select>
      ${activity.value && html`<span class="quiet" role="status">${entries.length === 1 ? '1 entry' : `${toNumber(entries.length)} entries`}</span>`}
    </div>
    <${ReadingState} of=${activity} />
    ${activity.value?.missing.map(({ url, error }) => html`<${Notice} tone="bad">What was done at ${url} is not listed: ${error}.<//>`)}
    <${Listed} of=${activity} count=${entries.length} isFiltered=${isFiltered} sought=${object || who} showAll=${() => replaceRoute('activity', {})}
      nothing=${html`<${Empty} title="Nothing has been done yet."><p>Changes, resets and approvals are listed here, with their authors and reasons.</p><//>`}>
      <${Table} caption="Activity, the newest first" columns=${columns} items=${entries} toRow=${toRow} />
    <//>
  <//>`;
}

function toRow({ at, who, what, outcome, revision }: ActivityEntryJson) {
  return html`<tr key=${`${at} ${what}`}>
    <td class="when" title=${toTime(at)}>${toAgo(at)}</td>
    <td>${who === null ? '–' : toShown(who)}</td>
    <td class="message">${toSentence(what)}</td>
    <td>${revision === null ? '–' : html`<${RevisionName} id=${revision} />`}</td>
    <td>${outcome === 'done' || outcome === 'seen' ? html`<span class="quiet">${outcome === 'done' ? 'done' : '–'}</span>` : html`<${Badge} tone="bad">not done<//><div class="why">${toShown(outcome)}</div>`}</td>
  </tr>`;
}
