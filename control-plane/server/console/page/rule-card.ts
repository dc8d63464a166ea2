// A rule as its author wrote it, with its last change, an undo of that, and its last quarter of an hour.
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { RuleSourceJson } from '../../admin/controllers/sources.ts';
import type { RuleSeriesJson } from '../../admin/controllers/traffic.ts';
import type { StatusJson } from '../../admin/status-report.ts';
import { toAgo, toCount, toSentence, toShown, toTime } from './format.ts';
import { MinuteBars } from './minute-bars.ts';
import { RevisionName, Source } from './names.ts';
import { Badge, ReadingState } from './parts.ts';
import { type Resource, useResource } from './resource.ts';
import { RollBack } from './roll-back.ts';
import { hrefOf } from './route.ts';
import { useRefusal } from './session.ts';

/** `rule`: its name or metric key; undefined: sends no request. */
export function useRuleSource(rule: string | undefined): Resource<RuleSourceJson> {
  const path = rule === undefined ? undefined : `sources?rule=${encodeURIComponent(rule)}`;
  // Many revisions are read for an answer, and events of workers do not affect it.
  return useResource<RuleSourceJson>(path, 'revisions');
}

interface RuleCardProps {
  readonly source: RuleSourceJson;
  readonly status: Resource<StatusJson>;
}

export function RuleCard({ source, status }: RuleCardProps) {
  const { rule, yaml, trial } = source;
  return html`<div class="halves">
    <section class="panel" aria-label="The rule">
      <h2>${rule.limits.length === 0 ? 'No limit of its own' : toShown(rule.limits.join(', '))}
        ${rule.modes.map((mode) => html` <${Badge} tone="plain">${mode.replaceAll('_', ' ')}<//>`)}</h2>
      <p class="source"><${Source} file=${rule.file} line=${rule.line} revision=${source.revision} />${rule.owner !== null && html` <span class="quiet">owned by ${toShown(rule.owner)}</span>`}</p>
      ${yaml === null ? html`<p class="quiet">Its text is no longer known.</p>` : html`<pre tabindex="0">${yaml.split('\n').map(toShown).join('\n')}</pre>`}
      ${
        trial !== null &&
        html`<p><${Badge} tone="wait">on trial<//> ${trial.texts.length === 0 ? 'The revision on trial does not affect it' : html`<strong>${toShown(trial.texts.join('; '))}</strong>`}, in <${RevisionName} id=${trial.revision.id} />, which is being rolled out.</p>`
      }
      <${LastChange} source=${source} status=${status} />
    </section>
    <section class="panel" aria-label="The last quarter of an hour">
      <h2>Last quarter of an hour</h2>
      <${Quarter} source=${source} />
    </section>
  </div>`;
}

function LastChange({ source: { changed, domain, rule }, status }: RuleCardProps) {
  const [isUndoing, setUndoing] = useState(false);
  const refusal = useRefusal();
  const change = html`<a class="button" href=${hrefOf('change', { domain, rule: rule.rule })}>Change…</a>`;
  if (changed === null) {
    return html`<p class="quiet">No known revision has changed it.</p>
      <div class="buttons left">${change}</div>`;
  }
  const { revision, before, texts, later, restores = null, isNew = false } = changed;
  const { author, message, at } = revision;
  // An undo would restore what was already undone, or remove the rule.
  const canUndo = restores === null && !isNew;
  return html`<p>${restores !== null ? 'Restored' : isNew ? 'Added' : 'Changed last'} <span title=${toTime(at)}>${toAgo(at)}</span> by <strong>${author === null ? 'an unknown author' : toShown(author)}</strong>${' '}
      in <${RevisionName} id=${revision.id} />${restores !== null && (restores === revision.id ? ', to what it was before' : html`, to what it was in <${RevisionName} id=${restores} />`)}${message !== null && html`<br /><q>${toShown(message.split('\n')[0] ?? '')}</q>`}</p>
    <ul class="plain">${texts.map((text) => html`<li>${toSentence(text)}</li>`)}</ul>
    <div class="buttons left">${change}${
      canUndo &&
      html`<button type="button" class="dangerous" disabled=${refusal !== undefined || status.value === undefined} title=${refusal ?? ''}
      onClick=${() => setUndoing(true)}>Undo that change…</button>`
    }</div>
    ${
      isUndoing &&
      status.value &&
      html`<${RollBack} to=${before} status=${status.value}
        note=${later === 0 ? undefined : `This also undoes ${toCount(later, 'later revision')}. The list below shows everything that changes.`}
        onClose=${(done: boolean) => {
          setUndoing(false);
          if (done) status.reload();
        }} />`
    }`;
}

function Quarter({ source: { domain, rule } }: Pick<RuleCardProps, 'source'>) {
  const traffic = useResource<RuleSeriesJson>(
    `traffic/rules?domain=${encodeURIComponent(domain)}&span=quarter`,
    'figures',
  );
  const { value } = traffic;
  if (value === undefined) return html`<${ReadingState} of=${traffic} />`;
  const { hits = [], overLimit = [] } = value.rules.find((each) => each.rule === rule.rule) ?? {};
  // An older control plane does not report which minutes are known.
  const known = value.known ?? hits.map(() => true);
  if (!known.includes(true)) {
    return html`<p class="quiet">Not known yet: no report covers a full minute.</p>`;
  }
  const toMinute = (perSecond: number) => perSecond * 60;
  return html`<${MinuteBars} hits=${hits.map(toMinute)} over=${overLimit.map(toMinute)} known=${known}
    untilMs=${Date.parse(value.until ?? new Date().toISOString())}
    limit=${rule.perMinute} isShadow=${rule.modes.includes('shadow_mode')} />`;
}
