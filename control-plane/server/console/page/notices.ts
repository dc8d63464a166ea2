// What callers get now instead of the answers of the rules, above every page.
import { html } from 'htm/preact';
import type { NoticeJson } from '../../admin/notices.ts';
import type { StatusJson } from '../../admin/status-report.ts';
import { toClock, toSentence, toShown } from './format.ts';
import { Notice } from './parts.ts';

interface NoticesProps {
  /** Missing in the answer of an older control plane. */
  readonly notices: StatusJson['notices'];
}

export function Notices({ notices = [] }: NoticesProps) {
  return notices.map(
    ({
      kind,
      tone,
      title,
      since,
      effect,
    }: NoticeJson) => html`<${Notice} key=${`${kind} ${title}`} tone=${tone}>
      <strong>${toSentence(title)}${since !== null && ` since ${toClock(Date.parse(since))}`}:</strong> ${toShown(effect)}<//>`,
  );
}

/** Whether some callers get answers other than those of the rules. */
export function isUnenforced({ notices = [] }: StatusJson): boolean {
  return notices.some(({ tone }) => tone === 'bad');
}
