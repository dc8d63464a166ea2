// The requests that changed rules would refuse, and how certain that is.
import { html } from 'htm/preact';
import type { EffectJson } from '../../admin/controllers/effects.ts';
import { toClock, toCount, toNumber, toPairs, toSentence } from './format.ts';
import { RuleName, ValueName } from './names.ts';
import { Badge } from './parts.ts';
import { type Column, Table } from './table.ts';

type Value = EffectJson['values'][number];
type Range = Value['before'];

/** `1,036`, or `1,046 to 1,056`. */
export function toRange({ atLeast, atMost }: Range): string {
  return atLeast === atMost ? toNumber(atMost) : `${toNumber(atLeast)} to ${toNumber(atMost)}`;
}

interface EffectProps {
  readonly domain: string;
  readonly effect: EffectJson;
}

export function Effect({ domain, effect }: EffectProps) {
  const { basis, before, after, values, valuesInAll, notes } = effect;
  return html`
    ${
      before !== null &&
      after !== null &&
      html`<p>${basis === 'recorded' ? html`<${Badge} tone="good">exact<//>` : html`<${Badge} tone="wait">estimate<//>`} <span class="quiet">${toBasis(effect)}</span></p>
        <dl class="tiles effect">
          <div class="tile"><dt>Refused</dt><dd><span class="value">${toRange(before)}</span><span class="detail">as it was</span></dd></div>
          <div class=${`tile ${after.atMost > before.atMost ? 'bad' : ''}`}><dt>Would be refused</dt><dd><span class="value">${toRange(after)}</span><span class="detail">${toDifference(effect)}</span></dd></div>
        </dl>`
    }
    ${
      values.length > 0
        ? html`<${Table} caption="Who would be refused more or less often" columns=${columns} items=${values} toRow=${(value: Value) => toRow(domain, value)} atOnce=${20} />
            ${valuesInAll > values.length && html`<p class="quiet">The first ${values.length} of ${toNumber(valuesInAll)}.</p>`}`
        : basis !== 'none' && html`<p>No known value would be refused more or less often.</p>`
    }
    <ul class="plain quiet">${notes.map((note) => html`<li>${toSentence(note)}.</li>`)}</ul>`;
}

function toBasis({ basis, from, to, decisions }: EffectJson): string {
  if (basis === 'estimate') {
    return 'Based on the values that were refused in the last two minutes. Whether their requests came in one burst or evenly is not known.';
  }
  const span =
    from === null || to === null
      ? ''
      : ` from ${toClock(Date.parse(from))} to ${toClock(Date.parse(to))}`;
  return `${toCount(decisions ?? 0, 'recorded request')}${span}, each decided again.`;
}

function toDifference({ basis, newlyLimited, freed }: EffectJson): string {
  if (basis !== 'recorded') return 'about';
  const parts = [
    (newlyLimited ?? 0) > 0 ? `${toNumber(newlyLimited ?? 0)} newly` : '',
    (freed ?? 0) > 0 ? `${toNumber(freed ?? 0)} let through` : '',
  ];
  return parts.filter((part) => part !== '').join(', ') || 'no other';
}

const columns: readonly Column<Value>[] = [
  { name: 'Value', value: ({ entries }) => toPairs(entries) },
  { name: 'Refused', isNumber: true, value: ({ before }) => before.atMost },
  { name: 'Would be', isNumber: true, value: ({ after }) => after.atMost },
];

function toRow(domain: string, { entries, rule, before, after }: Value) {
  const isNew = before.atMost === 0 && after.atMost > 0;
  return html`<tr key=${JSON.stringify(entries)}>
    <td><${ValueName} domain=${domain} entries=${entries} />${isNew && html` <${Badge} tone="bad">newly<//>`}<div><${RuleName} rule=${rule} /></div></td>
    <td class="number">${toRange(before)}</td>
    <td class=${after.atMost > before.atMost ? 'number loud' : 'number'}>${toRange(after)}</td>
  </tr>`;
}
