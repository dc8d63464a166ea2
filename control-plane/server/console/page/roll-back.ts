// The dialog for a rollback: the workers of either revision, and the changes for requests.
import { html } from 'htm/preact';
import type { ListedRevisionJson } from '../../admin/controllers/revisions.ts';
import type { StatusJson } from '../../admin/status-report.ts';
import { ask } from './api.ts';
import { Changes } from './changes.ts';
import { Confirm } from './confirm.ts';
import { toShortId, toShown, toTime } from './format.ts';
import { toHavingText, toUndoText } from './reach.ts';

interface RollBackProps {
  readonly to: Pick<ListedRevisionJson, 'id' | 'at' | 'author'>;
  readonly status: StatusJson;
  /** A sentence about further effects. */
  readonly note?: string;
  /** `done`: whether the rollback was performed. */
  onClose(done: boolean): void;
}

export function RollBack({ to, status, note, onClose }: RollBackProps) {
  const { newest } = status;
  return html`<${Confirm} title=${`Roll back to ${toShortId(to.id)}?`} action="Roll back" isDangerous
    act=${(reason: string) =>
      ask('rollbacks', {
        method: 'POST',
        body: {
          revision: to.id,
          message: reason,
          ...(newest && { expectedRevision: newest.id }),
        },
      })}
    onClose=${onClose}>
    <p>A new revision gets the files that ${toShortId(to.id)} had${to.author && `, by ${toShown(to.author)}`}, ${toTime(to.at)}.</p>
    <p>${toHavingText(status)} ${toUndoText(status, to.id)}</p>
    ${note && html`<p><strong>${note}</strong></p>`}
    <p>What changes for requests:</p>
    <${Changes} from=${newest?.id ?? to.id} to=${to.id} />
  <//>`;
}
