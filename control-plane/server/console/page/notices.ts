// What callers get now instead of the answers of the rules, above every page; where else to ask while this control plane
// does not answer; and whether verdicts may be lost.
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

interface MemoryNoticeProps {
  readonly status: StatusJson;
}

/** Verdicts (which revisions were taken back, held back or approved) may be lost, or are not known to all control
 * planes: one notice for the control plane that answers, and one for each of its peers. */
export function MemoryNotice({ status: { memory, controlPlanes } }: MemoryNoticeProps) {
  const peers = controlPlanes.filter(({ url }) => url !== 'this');
  const all = [{ url: '', memoryProblem: memory.problem }, ...peers];
  return html`${all.map(
    ({ url, memoryProblem }) =>
      memoryProblem !== null &&
      html`<${Notice} tone="bad"><strong>The record of rollouts and approvals is not shared${url !== '' && ` by ${url}`}.</strong>
      ${' '}${toSentence(memoryProblem)}.<//>`,
  )}`;
}

interface OtherPlanesProps {
  /** The status in the last answer. */
  readonly status: StatusJson;
}

/** Links to the same page on other control planes. */
export function OtherPlanes({ status: { controlPlanes } }: OtherPlanesProps) {
  const others = controlPlanes.filter(({ url }) => URL.canParse(url));
  if (others.length === 0) return null;
  return html`<${Notice} tone="wait"><strong>Another control plane of this fleet may answer, and can undo:</strong>${' '}
    ${others.map(({ url }, index) => html`${index > 0 && ', '}<a href=${`${url}/console/${location.hash}`} rel="noreferrer">${new URL(url).host}</a>`)}.<//>`;
}
