// The decision of a request under the rules in force: its current outcome, and the rules that were matched or skipped.
import { html } from 'htm/preact';
import type { ExplainedDescriptorJson } from '../../../authoring/explain/explanation-json.ts';
import type { OutcomeJson } from '../../admin/controllers/explanations.ts';
import type { CountersJson } from '../../fleet/counter-answers.ts';
import type { CountersQuestion } from './counters.ts';
import { toPairs, toSentence, toShown, toSpan, toTime } from './format.ts';
import { LiftButton } from './lift.ts';
import { Source } from './names.ts';
import { Badge, Notice, type Tone } from './parts.ts';
import { type Resource, useResource } from './resource.ts';

/** The answer of `POST /explanations` with `now`. */
export interface Explanation {
  readonly revision: string;
  readonly outcome: OutcomeJson;
  /** Null if they are unknown. */
  readonly counters: CountersJson | null;
  readonly descriptors: readonly ExplainedDescriptorJson[];
}

/** Requested again whenever there is news. */
export function useExplanation(asked: CountersQuestion): Resource<Explanation> {
  return useResource<Explanation>(
    { path: 'explanations', body: { ...asked, now: true } },
    'revisions',
    'figures',
  );
}

const outcomeTones: Readonly<Record<OutcomeJson['kind'], Tone>> = {
  refused: 'bad',
  passes: 'good',
  shadow: 'wait',
  not_known: 'plain',
};

function toOutcomeText({ text, freeInSeconds }: OutcomeJson): string {
  const free = freeInSeconds === null ? '' : `, free again in ${toSpan(freeInSeconds)}`;
  return `${toSentence(text)}${free}`;
}

/** The answer that the request would receive now, in one sentence. */
export function OutcomeNotice({ outcome }: { readonly outcome: OutcomeJson }) {
  return html`<div role="status"><${Notice} tone=${outcomeTones[outcome.kind]}><strong class="outcome">${toOutcomeText(outcome)}.</strong><//></div>`;
}

export function Descriptor({
  domain,
  revision,
  of: { entries, levels, verdict, until, match, noMatch },
}: {
  readonly domain: string;
  /** The revision of the rules. */
  readonly revision: string;
  readonly of: ExplainedDescriptorJson;
}) {
  return html`<section class="tried">
    <h2>${toPairs(entries)}</h2>
    <p><strong>${toSentence(verdict)}.</strong>
      ${match !== null && html` ${toLimitText(match.limit)}${match.limit.shadowMode && ', in shadow mode'}, by <code><${Source} file=${match.rule.file} line=${match.rule.line} revision=${revision} /></code>.`}
      ${until !== null && html` <${Badge} tone="wait">${match?.limit.unlimited ? 'lifted' : 'in force'} until ${toTime(until)}<//>`}
      ${match !== null && match.replacedBy.length > 0 && ' Another descriptor of the request replaces it: it does not apply.'}
      ${noMatch !== null && html` ${toSentence(noMatch.reason)}.${noMatch.hint !== null && ` ${toSentence(noMatch.hint)}.`}`}
    </p>
    ${match !== null && (until !== null || !match.limit.unlimited) && html`<div class="buttons"><${LiftButton} domain=${domain} entries=${entries} liftedUntil=${match.limit.unlimited ? (until ?? undefined) : undefined} /></div>`}
    <ol class="levels">${levels.map(
      ({ entry, candidates, otherRules, nearestKey }) => html`<li>
        <code>${toPairs([entry])}</code>
        ${
          candidates.length === 0
            ? html`<div class="quiet">No rule here has this key${nearestKey !== null && `; did you mean ${toShown(nearestKey)}?`}</div>`
            : html`<ul>${candidates.map(
                ({
                  composite,
                  file,
                  line,
                  chosen,
                  reason,
                }) => html`<li class=${chosen ? 'chosen' : ''}>
                  ${chosen ? html`<${Badge} tone="good">taken<//>` : html`<${Badge} tone="plain">passed over<//>`}
                  <code>${toShown(composite)}</code> <span class="quiet"><${Source} file=${file} line=${line} revision=${revision} /></span>
                  <div class="quiet">${toSentence(reason)}</div></li>`,
              )}</ul>`
        }
        ${otherRules > 0 && html`<div class="quiet">and ${otherRules} for other keys and values</div>`}
      </li>`,
    )}</ol>
    ${match?.cacheKey != null && html`<p class="quiet">Cache key <code>${toShown(match.cacheKey)}</code></p>`}
  </section>`;
}

function toLimitText({
  text,
  name,
}: NonNullable<ExplainedDescriptorJson['match']>['limit']): string {
  return toSentence(name === null ? text : `${text}, named ${name}`);
}

/** Undefined when something is missing. */
export function toAsked(domain: string, text: string): CountersQuestion | undefined {
  const descriptors = text
    .split(/\n[^\S\n]*\n/)
    .map((block) =>
      block
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '')
        .map((line) => {
          const [key = '', ...rest] = line.split('=');
          return { key, value: rest.join('=') };
        }),
    )
    .filter((entries) => entries.length > 0);
  return domain === '' || descriptors.length === 0 ? undefined : { domain, descriptors };
}
