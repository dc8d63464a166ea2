// Warns that verdicts (which revisions were taken back, held back or approved) may be lost, or are not known to all
// control planes.
import { html } from 'htm/preact';
import type { StatusJson } from '../../admin/status-report.ts';
import { toSentence } from './format.ts';
import { Notice } from './parts.ts';

interface MemoryNoticeProps {
  readonly status: StatusJson;
}

/** One notice for the control plane that answers, and one for each of its peers. */
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
