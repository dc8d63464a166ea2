// The values of a rule over time: which revision changed it, when, by whom and why.
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { RuleChangesJson } from '../../admin/controllers/sources.ts';
import { ask } from './api.ts';
import { toAgo, toSentence, toShortId, toShown, toTime } from './format.ts';
import { RevisionName } from './names.ts';
import { Badge, Notice, ReadingState } from './parts.ts';
import { useResource } from './resource.ts';
import { type Column, Table } from './table.ts';

type Change = RuleChangesJson['changes'][number];

const columns: readonly Column<Change>[] = [
  { name: 'When', value: ({ revision }) => revision.at },
  { name: 'Value from then on', value: ({ to }) => to },
  { name: 'What changed', value: ({ texts }) => texts.join('; ') },
  { name: 'Who', value: ({ revision }) => revision.author },
  { name: 'Why', value: ({ revision }) => revision.message?.split('\n')[0] ?? null },
  { name: 'Revision', value: ({ revision }) => revision.id },
];

export function RuleHistory({ rule }: { readonly rule: string }) {
  const path = `sources/changes?rule=${encodeURIComponent(rule)}`;
  const first = useResource<RuleChangesJson>(path, 'revisions');
  const [more, setMore] = useState<readonly RuleChangesJson[]>([]);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const { value } = first;
  if (value === undefined) return html`<${ReadingState} of=${first} />`;
  // Further pages that continue an earlier answer would not match a newer one.
  const pages = more[0]?.rule === rule && more.length > 0 ? [value, ...more] : [value];
  const changes = pages.flatMap((each) => each.changes);
  const next = pages.at(-1)?.next ?? null;

  async function readOn(from: string): Promise<void> {
    const answer = await ask<RuleChangesJson>(`${path}&before=${encodeURIComponent(from)}`);
    setProblem(answer.ok ? undefined : answer.text);
    if (answer.ok) setMore([...more, answer.value]);
  }

  return html`${
    changes.length === 0
      ? html`<p class="quiet">${next === null ? 'No known revision has it.' : 'No change so far.'}</p>`
      : html`<${Table} caption=${`History of ${rule}`} columns=${columns} items=${changes} toRow=${toRow} />`
  }
  ${problem !== undefined && html`<${Notice} tone="bad">${toSentence(problem)}.<//>`}
  ${next !== null && html`<div class="buttons left"><button type="button" onClick=${() => void readOn(next)}>Read older revisions</button></div>`}`;
}

function toRow({ revision, before, to, texts, restores, outcome }: Change) {
  const { id, at, author, message } = revision;
  const isServed = outcome === null || outcome.kind.endsWith('in_force');
  return html`<tr key=${`${id} ${at}`}>
    <td class="when" title=${toTime(at)}>${toAgo(at)}</td>
    <td><strong>${to === null ? 'no rule' : toShown(to)}</strong>${!isServed && html` <${Badge} tone="bad">${outcome.kind.replaceAll('_', ' ')}<//>`}</td>
    <td class="message">${before === null ? 'The oldest known value' : toShown(texts.join('; '))}${restores !== null && html`<div class="quiet">as ${restores === id ? 'before' : `in ${toShortId(restores)}`}</div>`}</td>
    <td>${author === null ? '–' : toShown(author)}</td>
    <td class="message">${message === null ? '–' : toShown(message.split('\n')[0] ?? '')}</td>
    <td><${RevisionName} id=${id} /></td>
  </tr>`;
}
