// Links to the same page on other control planes while this one does not answer.
import { html } from 'htm/preact';
import type { StatusJson } from '../../admin/status-report.ts';
import { Notice } from './parts.ts';

interface OtherPlanesProps {
  /** The status in the last answer. */
  readonly status: StatusJson;
}

export function OtherPlanes({ status: { controlPlanes } }: OtherPlanesProps) {
  const others = controlPlanes.filter(({ url }) => URL.canParse(url));
  if (others.length === 0) return null;
  return html`<${Notice} tone="wait"><strong>Another control plane of this fleet may answer, and can undo:</strong>${' '}
    ${others.map(({ url }, index) => html`${index > 0 && ', '}<a href=${`${url}/console/${location.hash}`} rel="noreferrer">${new URL(url).host}</a>`)}.<//>`;
}
