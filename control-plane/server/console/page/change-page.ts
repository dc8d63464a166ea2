// The page "What if": an editor for a rule's text, with its problems and the requests that it would refuse, before
// anything is written.
import { html } from 'htm/preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import type { DomainJson } from '../../admin/controllers/domains.ts';
import type { PlannedChangeJson } from '../../admin/controllers/effects.ts';
import { ask } from './api.ts';
import { ChangeList } from './changes.ts';
import { Confirm } from './confirm.ts';
import { Editor } from './editor.ts';
import { Effect, toRange } from './effect.ts';
import { toShown } from './format.ts';
import { copyText, RevisionName, RuleName, Source } from './names.ts';
import type { PageProps } from './page-props.ts';
import { Badge, Field, Notice, Page, ReadingState } from './parts.ts';
import { Problems } from './problems.ts';
import { type Resource, useResource } from './resource.ts';
import { hrefOf } from './route.ts';
import { SessionContext, useRefusal } from './session.ts';

export function ChangePage({ params }: PageProps) {
  const [domain, rule] = ['domain', 'rule'].map((name) => params.get(name) ?? '') as [
    string,
    string,
  ];
  const base = useResource<DomainJson>(
    `domains/${encodeURIComponent(domain)}?rule=${encodeURIComponent(rule)}`,
  );
  const { value } = base;
  return html`<${Page} title=${`Change ${toShown(rule)}`} about="What it would do to recorded traffic. Nothing is written before you confirm it.">
    ${(value === undefined || base.problem !== undefined) && html`<${ReadingState} of=${base} />`}
    ${
      value !== undefined &&
      (value.files.length === 1
        ? html`<${Draft} rule=${rule} base=${value} reload=${base.reload} />`
        : html`<${Notice} tone="wait"><strong>This domain is in ${value.files.length} files:</strong> it cannot be changed here; edit the files where they are kept.<//>`)
    }
  <//>`;
}

interface Part {
  readonly path: string;
  /** The lines above and below, including their line breaks. */
  readonly above: string;
  readonly own: string;
  readonly below: string;
  /** The line at which the text begins, counted from 1. */
  readonly line: number;
}

/** The lines of the rule; the whole file if they are unknown. */
function toPart({ files, place }: DomainJson): Part {
  const [{ path, yaml } = { path: '', yaml: '' }] = files;
  const lines = yaml.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const [first, last] = place === null ? [1, lines.length] : [place.first, place.last];
  const join = (from: number, to?: number) => lines.slice(from, to).join('');
  return {
    path,
    above: join(0, first - 1),
    own: join(first - 1, last),
    below: join(last),
    line: first,
  };
}

function toFileText({ above, below }: Part, own: string): string {
  return `${above}${own}${below !== '' && !own.endsWith('\n') ? '\n' : ''}${below}`;
}

interface DraftProps {
  readonly rule: string;
  readonly base: DomainJson;
  reload(): void;
}

/** Delay after the last key press, in milliseconds. */
const pauseMs = 400;

function Draft({ rule, base, reload }: DraftProps) {
  const { domain, etag } = base;
  const part = toPart(base);
  const [draft, setDraft] = useState<string | undefined>(undefined);
  const [allowRemoval, setAllowRemoval] = useState(false);
  const own = draft ?? part.own;
  const yaml = toFileText(part, own);
  const asked = usePaused(yaml);
  const planned = useResource<PlannedChangeJson>(
    { path: 'effects', body: { domain, yaml: asked, etag, allowRemoval } },
    'revisions',
  );
  const isChanged = own !== part.own;
  const { value } = planned;
  const isCurrent = planned.isOwn && asked === yaml;
  return html`
    ${
      value?.isStale &&
      planned.isOwn &&
      html`<div role="alert"><${Notice} tone="bad"><strong>The domain was changed meanwhile,</strong> in <${RevisionName} id=${value.revision.id} />${value.revision.author !== null && ` by ${toShown(value.revision.author)}`}. Your text is kept.
        <div class="buttons left"><button type="button" onClick=${reload}>Put my text in the newer file</button>
        <button type="button" onClick=${() => {
          setDraft(undefined);
          reload();
        }}>Start from the newer text</button></div><//></div>`
    }
    <div class="halves change">
      <section class="panel" aria-label="The rule">
        <h2><${Source} file=${part.path} line=${part.line} revision=${base.revision} /></h2>
        <${Editor} label=${base.place === null ? 'The rules of the domain' : 'The rule, as YAML'} text=${own} firstLine=${part.line} onInput=${setDraft} />
        <div role="status"><${Verdict} planned=${planned} isChanged=${isChanged} isCurrent=${isCurrent} /></div>
        ${value !== undefined && value.problems.length > 0 && html`<${Problems} problems=${value.problems} revision=${undefined} />`}
        ${
          (allowRemoval || value?.problems.some((problem) => problem.rule === 'large-removal')) &&
          html`<label class="check"><input type="checkbox" checked=${allowRemoval}
            onChange=${(event: Event) => setAllowRemoval((event.target as HTMLInputElement).checked)} /> Allow the removal of these limits</label>`
        }
        <${Actions} rule=${rule} domain=${domain} yaml=${yaml} allowRemoval=${allowRemoval} planned=${planned} isReady=${isChanged && isCurrent} startAgain=${isChanged ? () => setDraft(undefined) : undefined} />
      </section>
      <section class="panel" aria-label="What it would do" aria-busy=${isCurrent ? 'false' : 'true'}>
        <h2>What it would do${isChanged && !isCurrent && value !== undefined && html` <${Badge} tone="wait">of the text before<//>`}</h2>
        ${
          !isChanged
            ? html`<p class="quiet">Change the limit, and the requests that it would refuse are listed here, by the recorded traffic of <${RuleName} rule=${rule} />.</p>`
            : value === undefined
              ? html`<${ReadingState} of=${planned} />`
              : html`${value.effect === null ? html`<p class="quiet">Nothing, as long as the rules have errors.</p>` : html`<${Effect} domain=${domain} effect=${value.effect} />`}
                ${value.changes.length > 0 && html`<h3>What changes for requests</h3><${ChangeList} changes=${value.changes} from=${undefined} to=${undefined} />`}`
        }
      </section>
    </div>`;
}

/** The text of a moment ago, while it changes quickly. */
function usePaused(text: string): string {
  const [paused, setPaused] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), pauseMs);
    return () => clearTimeout(timer);
  }, [text]);
  return paused;
}

interface VerdictProps {
  readonly planned: Resource<PlannedChangeJson>;
  readonly isChanged: boolean;
  readonly isCurrent: boolean;
}

function Verdict({ planned, isChanged, isCurrent }: VerdictProps) {
  const { value, problem } = planned;
  if (problem !== undefined) return html`<${ReadingState} of=${planned} />`;
  if (value === undefined || !isCurrent) return html`<${Badge} tone="plain">being checked…<//>`;
  if (!value.valid) return html`<${Badge} tone="bad">not accepted<//>`;
  return html`<${Badge} tone="good">${isChanged ? 'accepted' : 'as it is now'}<//>`;
}

interface ActionsProps {
  readonly rule: string;
  readonly domain: string;
  readonly yaml: string;
  readonly allowRemoval: boolean;
  readonly planned: Resource<PlannedChangeJson>;
  readonly isReady: boolean;
  readonly startAgain: (() => void) | undefined;
}

function Actions({ planned, isReady, startAgain, ...change }: ActionsProps) {
  const [isOpen, setOpen] = useState(false);
  const [isCopied, setCopied] = useState(false);
  const refusal = useRefusal();
  const { value, problem } = planned;
  const isPossible = isReady && problem === undefined && value?.valid === true && !value.isStale;
  useEffect(() => setCopied(false), [change.yaml]);
  async function copy(): Promise<void> {
    await copyText(value?.patch ?? '');
    setCopied(true);
  }
  return html`<div class="buttons left">
      <button type="button" class="main" disabled=${!isPossible || refusal !== undefined} onClick=${() => setOpen(true)}>Commit…</button>
      <button type="button" disabled=${!isReady || !value?.patch} onClick=${() => void copy()}>${isCopied ? 'Copied' : 'Copy the patch'}</button>
      ${startAgain && html`<button type="button" onClick=${startAgain}>Start again</button>`}
    </div>
    ${refusal !== undefined && html`<p class="quiet">You cannot commit it: ${refusal}. Copy the patch for a merge request.</p>`}
    ${
      isOpen &&
      value &&
      html`<${Commit} ...${change} planned=${value} onClose=${() => setOpen(false)} />`
    }`;
}

interface CommitProps {
  readonly rule: string;
  readonly domain: string;
  readonly yaml: string;
  readonly allowRemoval: boolean;
  readonly planned: PlannedChangeJson;
  onClose(): void;
}

function Commit({ rule, domain, yaml, allowRemoval, planned, onClose }: CommitProps) {
  const { rollout: hasSteps } = useContext(SessionContext);
  const [rollout, setRollout] = useState('');
  const { etag, changes, effect } = planned;
  return html`<${Confirm} title="Commit this change?" action="Commit"
    act=${(message: string) =>
      ask(`domains/${encodeURIComponent(domain)}`, {
        method: 'PUT',
        headers: { 'if-match': etag },
        body: { yaml, message, allowRemoval, ...(rollout !== '' && { rollout }) },
      })}
    onClose=${(isDone: boolean) => {
      onClose();
      if (isDone) location.hash = hasSteps ? hrefOf('revisions') : hrefOf('rule', { rule });
    }}>
    <${ChangeList} changes=${changes} from=${undefined} to=${undefined} />
    ${effect?.before && effect.after && html`<p>${effect.basis === 'recorded' ? 'Of what was recorded' : 'Estimated from the last two minutes'} <strong>${toRange(effect.after)}</strong> would have been refused, in place of ${toRange(effect.before)}.</p>`}
    ${
      hasSteps
        ? html`<${Field} label="Who gets it">
          <select name="rollout" value=${rollout} onChange=${(event: Event) => setRollout((event.target as HTMLSelectElement).value)}>
            <option value="">In steps, like every revision</option>
            <option value="now">All workers at once</option>
          </select><//>`
        : html`<p>All workers get it at once.</p>`
    }
  <//>`;
}
