// The page "why": why a value is limited now, by which rule, who wrote the rule, and possible actions.
import { html } from 'htm/preact';
import { type CountersQuestion, CountersTable } from './counters.ts';
import { Descriptor, OutcomeNotice, toAsked, useExplanation } from './explained.ts';
import { toPairs } from './format.ts';
import { LiftButton } from './lift.ts';
import { DomainName, RuleName } from './names.ts';
import type { PageProps } from './page-props.ts';
import { Empty, Page, ReadingState } from './parts.ts';
import { ResetButton } from './reset.ts';
import { RuleCard, useRuleSource } from './rule-card.ts';

export function WhyPage({ params, status }: PageProps) {
  const asked = toAsked(params.get('domain') ?? '', params.get('descriptor') ?? '');
  const [entries] = asked?.descriptors ?? [];
  if (asked === undefined || entries === undefined) {
    return html`<${Page} title="Why was this refused?" about="What happens to a request now, and why.">
      <${Empty} title="No request is given."><p>Press <kbd>/</kbd> or <kbd>Ctrl</kbd> <kbd>K</kbd>, and name a value, a rule, a domain, a worker or a revision, or paste a descriptor.</p><//>
    <//>`;
  }
  return html`<${Page} title=${toPairs(entries)} about="What happens to it now, and why. The address of this page can be shared.">
    <${Answer} key=${JSON.stringify(asked)} asked=${asked} entries=${entries} status=${status} />
  <//>`;
}

interface AnswerProps extends Pick<PageProps, 'status'> {
  readonly asked: CountersQuestion;
  readonly entries: CountersQuestion['descriptors'][number];
}

function Answer({ asked, entries, status }: AnswerProps) {
  const explanation = useExplanation(asked);
  const { value } = explanation;
  const [first] = value?.descriptors ?? [];
  const rule = first?.levels.flatMap(({ entry, candidates }) => {
    const chosenRule = candidates.find(({ chosen }) => chosen);
    return chosenRule === undefined ? [] : { entry, chosenRule };
  });
  const name = first?.match == null ? undefined : toMatched(asked.domain, rule ?? []);
  const source = useRuleSource(name);
  const isLifted = first?.match?.limit.unlimited === true && first.until !== null;
  return html`<${ReadingState} of=${explanation} />
    ${
      value &&
      html`<${OutcomeNotice} outcome=${value.outcome} />
        <p>In the domain <${DomainName} domain=${asked.domain} />${name !== undefined && html`, by the rule <${RuleName} rule=${name} />`}.</p>
        ${value.counters && html`<${CountersTable} counters=${value.counters} />`}
        ${
          first?.match != null &&
          html`<div class="buttons left">
          <${ResetButton} domain=${asked.domain} entries=${entries} />
          ${(first.until !== null || !first.match.limit.unlimited) && html`<${LiftButton} domain=${asked.domain} entries=${entries} liftedUntil=${isLifted ? (first.until ?? undefined) : undefined} />`}
        </div>`
        }
        ${source.value && name !== undefined && html`<${RuleCard} source=${source.value} status=${status} />`}
        <details class="panel"><summary>How the rule was found</summary>
          ${value.descriptors.map((each, index) => html`<${Descriptor} key=${index} domain=${asked.domain} revision=${value.revision} of=${each} />`)}
        </details>`
    }`;
}

interface ChosenLevel {
  readonly chosenRule: { readonly composite: string };
}

/** The rule that matched on each level, by its name in the API. */
function toMatched(domain: string, levels: readonly ChosenLevel[]): string {
  return [domain, ...levels.map(({ chosenRule }) => chosenRule.composite)].join('.');
}
