// Requests that no rule matches, often because of an unnoticed misspelling.
import { html } from 'htm/preact';
import type { UnmatchedJson } from '../../admin/controllers/unmatched.ts';
import { toAgo, toLines, toPairs, toSentence, toShown } from './format.ts';
import { DomainName } from './names.ts';
import type { PageProps } from './page-props.ts';
import { Empty, Listed, NoReports, Page, ReadingState } from './parts.ts';
import { useResource } from './resource.ts';
import { hrefOf } from './route.ts';
import { type Column, Table } from './table.ts';

type Sample = UnmatchedJson['samples'][number];

const columns: readonly Column<Sample>[] = [
  { name: 'Descriptor', value: ({ entries }) => toPairs(entries) },
  { name: 'Domain', value: ({ domain }) => domain },
  { name: 'Why', value: ({ reason }) => reason },
  { name: 'Nearest rule', value: ({ nearest }) => nearest },
  { name: 'Samples', isNumber: true, value: ({ samples }) => samples },
  { name: 'Last', value: ({ lastAt }) => lastAt },
  { name: '' },
];

export function UnmatchedPage({ status }: PageProps) {
  const unmatched = useResource<UnmatchedJson>('unmatched', 'figures');
  const samples = unmatched.value?.samples ?? [];
  return html`<${Page} title="Unmatched" about="Samples of descriptors that matched no rule, and so were allowed.">
    <${ReadingState} of=${unmatched} />
    <${Listed} of=${unmatched} count=${samples.length}
      nothing=${status.value?.traffic === null ? html`<${NoReports} />` : allAreMatched}>
      <${Table} caption="Unmatched descriptors" columns=${columns} items=${samples} toRow=${toRow} />
    <//>
  <//>`;
}

const allAreMatched = html`<${Empty} title="Every descriptor matches a rule.">
  <p>Unmatched descriptors appear here within five seconds.</p><//>`;

function toRow({ domain, entries, samples, lastAt, reason, hint, nearest }: Sample) {
  return html`<tr key=${JSON.stringify([domain, entries])}>
    <td><strong>${toPairs(entries)}</strong></td>
    <td><${DomainName} domain=${domain} /></td>
    <td>${toSentence(reason)}${hint && html`<div class="hint">${toSentence(hint)}</div>`}</td>
    <td class="source">${nearest === null ? '–' : toShown(nearest)}</td>
    <td class="number">${samples}</td>
    <td class="when">${toAgo(lastAt)}</td>
    <td><a class="go" href=${hrefOf('try', { domain, descriptor: toLines(entries) })} aria-label=${`Try ${toPairs(entries)}`}>Try</a></td>
  </tr>`;
}
