// The page that tries a request: the matching limits, why they match, and the current use of their counters.
import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { type CountersQuestion, CountersTable } from './counters.ts';
import { Descriptor, OutcomeNotice, toAsked, useExplanation } from './explained.ts';
import { RevisionName } from './names.ts';
import type { PageProps } from './page-props.ts';
import { Empty, Field, Page, ReadingState } from './parts.ts';
import { useResource } from './resource.ts';
import { replaceRoute } from './route.ts';

export function TryPage({ params }: PageProps) {
  const domains = useResource<{ readonly domains: readonly { readonly domain: string }[] }>(
    'rules?limit=500',
    'revisions',
  );
  const [domain, setDomain] = useState(params.get('domain') ?? '');
  const [text, setText] = useState(params.get('descriptor') ?? '');
  const asked = toAsked(params.get('domain') ?? '', params.get('descriptor') ?? '');
  function submit(event: Event): void {
    event.preventDefault();
    replaceRoute('try', { domain: domain.trim(), descriptor: text.trim() });
  }
  return html`<${Page} title="Try a request" about="Which limits a request meets under the rules in force, why, and what is left of them. Nothing is counted.">
    <form class="try" onSubmit=${submit}>
      <${Field} label="Domain">
        <input list="domains" required value=${domain} autocomplete="off"
          onInput=${(event: InputEvent) => setDomain((event.target as HTMLInputElement).value)} />
      <//>
      <datalist id="domains">${domains.value?.domains.map((each) => html`<option value=${each.domain}></option>`)}</datalist>
      <${Field} label="Descriptor: one key=value per line; an empty line begins another descriptor">
        <textarea required rows="4" spellcheck=${false} value=${text} placeholder="customer=ada"
          onInput=${(event: InputEvent) => setText((event.target as HTMLTextAreaElement).value)}></textarea>
      <//>
      <div class="buttons"><button type="submit" class="main">Try</button></div>
    </form>
    ${
      asked === undefined
        ? html`<${Empty} title="Nothing has been tried yet."><p>Copy an example from the page Rules, or from a request of a gateway.</p><//>`
        : html`<${Tried} key=${JSON.stringify(asked)} asked=${asked} />`
    }
  <//>`;
}

function Tried({ asked }: { readonly asked: CountersQuestion }) {
  const answer = useExplanation(asked);
  const { value } = answer;
  return html`<${ReadingState} of=${answer} />
    ${
      value &&
      html`<div role="region" aria-label="Result">
        <${OutcomeNotice} outcome=${value.outcome} />
        ${value.descriptors.map((each, index) => html`<${Descriptor} key=${index} domain=${asked.domain} revision=${value.revision} of=${each} />`)}
        ${value.counters && html`<h2>Counters now</h2><${CountersTable} counters=${value.counters} />`}
        <p class="quiet">Under revision <${RevisionName} id=${value.revision} />.</p>
      </div>`
    }`;
}
