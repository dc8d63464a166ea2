// How far counters are, as the workers have said.
import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import type { CountersJson } from '../../admin/counters-json.ts';
import { type Answer, ask } from './api.ts';
import { type Pair, toCount, toNumber, toSentence, toShown } from './format.ts';
import { listen } from './live.ts';
import { Notice } from './parts.ts';

/** As `POST /counters` takes it. */
export interface CountersQuestion {
  readonly domain: string;
  readonly descriptors: readonly (readonly Pair[])[];
}

/** What the workers answer now, and again whenever they have reported; undefined before the first answer. */
export function useCounters(question: CountersQuestion): Answer<CountersJson> | undefined {
  const [answer, setAnswer] = useState<Answer<CountersJson> | undefined>(undefined);
  const body = JSON.stringify(question);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const count = async () => {
      const next = await ask<CountersJson>('counters', { method: 'POST', body: question, signal });
      if (!signal.aborted) setAnswer(next);
    };
    void count();
    const leave = listen(() => void count());
    return () => {
      leave();
      controller.abort();
    };
  }, [body]);
  return answer;
}

interface CountersTableProps {
  readonly counters: CountersJson;
}

export function CountersTable({ counters: { answers, notAsked } }: CountersTableProps) {
  if (answers.length === 0) return html`<p class="quiet">No worker has answered.</p>`;
  return html`${answers.map(
    ({
      worker,
      address,
      together,
      differs,
      problem,
      confirmedBy,
      counters,
    }) => html`<div class="counters">
      <div class="quiet">${toHeading(together, differs, worker === '' ? address : toShown(worker))}</div>
      ${differs && html`<${Notice} tone="bad">${toShown(worker)} at ${address} differs from another worker that counts together with it.<//>`}
      ${problem !== null && html`<${Notice} tone="bad">${toSentence(problem)}.<//>`}
      ${counters.map((counter) => {
        if (counter.problem !== null) return html`<p>${toSentence(counter.problem)}.</p>`;
        const { used, limit, window, secondsUntilReset, rule } = counter;
        return html`<div class="counter">
          <meter min="0" max=${Math.max(1, limit)} value=${Math.min(used, limit)} low=${limit * 0.8} high=${limit * 0.99} optimum="0" aria-label=${`${used} of ${limit}`}></meter>
          <span><strong>${toNumber(used)}</strong> of ${toNumber(limit)} per ${toTimeText(window)}${used >= limit && limit > 0 && html` <span class="loud">used up</span>`}</span>
          <span class="quiet">${secondsUntilReset > 0 && `next in ${secondsUntilReset} s · `}<code>${toShown(rule)}</code></span>
        </div>`;
      })}
      ${confirmedBy === 'itself' && html`<div class="quiet">Only the worker that reset it has confirmed it.</div>`}
    </div>`,
  )}
  ${notAsked > 0 && html`<p class="quiet">${toCount(notAsked, 'worker')} that count by themselves were not asked.</p>`}`;
}

function toHeading(together: number, differs: boolean, worker: string): string {
  if (together === 1) return `Counted by ${worker}`;
  const all = `Counted together by ${toCount(together, 'worker')}`;
  return differs ? `${all}, as ${worker} says` : all;
}

/** `minute`, or `5 minutes` for `5_minute`. */
function toTimeText(window: string): string {
  const [, count, unit] = /^(\d+)_(.+)$/.exec(window) ?? [];
  return unit === undefined ? toShown(window) : `${count} ${toShown(unit)}s`;
}
