// How much of their limits counters have used, according to the workers.
import { html } from 'htm/preact';
import type { CountersJson } from '../../fleet/counter-answers.ts';
import { type Pair, toCount, toNumber, toSentence, toShown, toSpan, toTime } from './format.ts';
import { Badge, Notice } from './parts.ts';

/** The body of `POST /counters`. */
export interface CountersQuestion {
  readonly domain: string;
  readonly descriptors: readonly (readonly Pair[])[];
}

interface CountersTableProps {
  readonly counters: CountersJson;
}

export function CountersTable({
  counters: { answers, notAsked, lifted = [] },
}: CountersTableProps) {
  const lifts = new Map(lifted.map(({ descriptor, until }) => [descriptor, until]));
  if (answers.length === 0) return html`<p class="quiet">No worker has answered.</p>`;
  const sorted = answers.toSorted((a, b) => toUse(b) - toUse(a));
  const [shown, folded] = [sorted.slice(0, mostShown), sorted.slice(mostShown)];
  return html`${shown.map(toAnswer)}
  ${folded.length > 0 && html`<details><summary>${toNumber(folded.length)} more</summary>${folded.map(toAnswer)}</details>`}
  ${notAsked > 0 && html`<p class="quiet">${toCount(notAsked, 'worker')} that count by themselves were not asked.</p>`}`;

  function toAnswer({
    worker,
    address,
    together,
    differs,
    problem,
    confirmedBy,
    counters,
  }: CountersJson['answers'][number]) {
    return html`<div class="counters">
      <div class="quiet">${toHeading(together, differs, worker === '' ? address : toShown(worker))}</div>
      ${differs && html`<${Notice} tone="bad">${toShown(worker)} at ${address} differs from another worker that counts together with it.<//>`}
      ${problem !== null && html`<${Notice} tone="bad">${toSentence(problem)}.<//>`}
      ${counters.map((counter) => {
        const until = lifts.get(counter.descriptor);
        if (until !== undefined)
          return html`<p><${Badge} tone="wait">lifted<//> until ${toTime(until)}: nothing is counted.</p>`;
        if (counter.problem !== null) return html`<p>${toSentence(counter.problem)}.</p>`;
        const { used, limit, window, secondsUntilReset, rule, shadowMode } = counter;
        const isUsedUp = used >= limit;
        return html`<div class=${shadowMode ? 'counter shadow' : 'counter'}>
          <meter min="0" max=${Math.max(1, limit)} value=${Math.min(used, limit)} low=${limit * 0.8} high=${limit * 0.99} optimum="0" aria-label=${`${used} of ${limit}`}></meter>
          <span><strong>${toNumber(used)}</strong> of ${toNumber(limit)} per ${toTimeText(window)}${isUsedUp && !shadowMode && html` <span class="loud">used up</span>`}${shadowMode && html` <${Badge} tone="plain">${isUsedUp ? 'shadow mode: over, not refused' : 'shadow mode'}<//>`}</span>
          <span class="quiet">${secondsUntilReset > 0 && `${isUsedUp ? 'free again' : 'begins again'} in ${toSpan(secondsUntilReset)} · `}<code>${toShown(rule)}</code></span>
        </div>`;
      })}
      ${confirmedBy === 'itself' && html`<div class="quiet">Only the worker that reset it has confirmed the reset.</div>`}
    </div>`;
  }
}

const mostShown = 4;

/** Sorts answers: the most used-up counter first, an unknown one last. */
function toUse({ problem, counters }: CountersJson['answers'][number]): number {
  if (problem !== null) return -1;
  return Math.max(0, ...counters.map(({ used, limit }) => used / Math.max(1, limit)));
}

function toHeading(together: number, differs: boolean, worker: string): string {
  if (together === 1) return `Counted by ${worker}`;
  const all = `Counted together by ${toCount(together, 'worker')}`;
  return differs ? `${all}, as reported by ${worker}` : all;
}

/** `minute`, or `5 minutes` for `5_minute`. */
function toTimeText(window: string): string {
  const [, count, unit] = /^(\d+)_(.+)$/.exec(window) ?? [];
  return unit === undefined ? toShown(window) : `${count} ${toShown(unit)}s`;
}
