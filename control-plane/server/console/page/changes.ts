// The changes for requests between two revisions.
import { html } from 'htm/preact';
import type { RuleChangeJson } from '../../admin/rule-change-json.ts';
import { toCount, toRuleName, toShown } from './format.ts';
import { RuleName, SourceText } from './names.ts';
import { ReadingState } from './parts.ts';
import { useResource } from './resource.ts';

interface Difference {
  readonly files: readonly { readonly path: string; readonly change: string }[];
  readonly changes: readonly RuleChangeJson[];
}

interface ChangesProps {
  readonly from: string;
  readonly to: string;
}

const mostChanges = 30;

export function Changes({ from, to }: ChangesProps) {
  // The difference between two revisions never changes.
  const difference = useResource<Difference>(`revisions/diff?from=${from}&to=${to}`);
  const { value } = difference;
  if (value === undefined) return html`<${ReadingState} of=${difference} />`;
  const { changes, files } = value;
  return html`<div class="changes">
    <${ChangeList} changes=${changes} from=${from} to=${to} />
    ${
      files.length > 0 &&
      html`<p class="quiet">${toCount(files.length, 'file')}: ${files
        .slice(0, 10)
        .map(({ path, change }) => `${toShown(path)} ${change}`)
        .join(', ')}${files.length > 10 && ', …'}</p>`
    }
  </div>`;
}

interface ChangeListProps {
  readonly changes: readonly RuleChangeJson[];
  /** The revisions to which the rules' positions refer; undefined while none contains them. */
  readonly from: string | undefined;
  readonly to: string | undefined;
}

export function ChangeList({ changes, from, to }: ChangeListProps) {
  const removed = changes.filter(({ kind }) => kind === 'limit_removed').length;
  return html`<div class="changes">
    ${removed > 0 && html`<p><strong>${toCount(removed, 'limit')} removed${removed < changes.length ? ` of ${toCount(changes.length, 'change')}` : ''}:</strong></p>`}
    ${changes.length === 0 && html`<p>Nothing changes for requests.</p>`}
    <ul>${changes.slice(0, mostChanges).map(
      ({ kind, domain, requests, text, ruleAfter, ruleBefore }) => html`<li class=${kind}>
        ${toShown(text)} <span class="quiet">${requests.length === 0 ? toShown(domain) : html`<${RuleName} rule=${toRuleName(domain, requests)} />`}${(ruleAfter ?? ruleBefore) !== null && html`, <code><${SourceText} text=${ruleAfter ?? ruleBefore ?? ''} revision=${ruleAfter === null ? from : to} /></code>`}</span></li>`,
    )}</ul>
    ${changes.length > mostChanges && html`<p class="quiet">and ${changes.length - mostChanges} more</p>`}
  </div>`;
}
