// Components shared by all pages.
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { toClock, toSentence, toShown } from './format.ts';
import type { Resource } from './resource.ts';

export type Tone = 'good' | 'wait' | 'bad' | 'plain';

/** Colour is never the only difference: each tone has its own sign. */
const signs: Readonly<Record<Tone, string>> = { good: '✓', wait: '…', bad: '!', plain: '·' };

interface ToneProps {
  readonly tone: Tone;
  readonly children?: ComponentChildren;
}

export function Badge({ tone, children }: ToneProps) {
  return html`<span class=${`badge ${tone}`}><span class="sign" aria-hidden="true">${signs[tone]}</span>${children}</span>`;
}

/** One sentence above a page or a table. */
export function Notice({ tone, children }: ToneProps) {
  return html`<div class=${`notice ${tone}`}>
    <span class="sign" aria-hidden="true">${signs[tone]}</span>
    <div class="body">${children}</div>
  </div>`;
}

interface PageProps {
  readonly title: string;
  readonly about: string;
  readonly children?: ComponentChildren;
}

/** The heading receives the focus when the page changes. */
export function Page({ title, about, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Ratelane`;
    if (document.activeElement === document.body) return;
    heading.current?.focus({ preventScroll: true });
  }, [title]);
  return html`<header class="head">
      <h1 ref=${heading} tabindex="-1">${title}</h1>
      <p>${about}</p>
    </header>
    ${children}`;
}

interface EmptyProps {
  readonly title: string;
  readonly children?: ComponentChildren;
}

/** An empty page: why there is nothing to show, and what to do. */
export function Empty({ title, children }: EmptyProps) {
  return html`<div class="empty"><strong>${title}</strong><div>${children}</div></div>`;
}

interface NothingMatchesProps {
  readonly sought: string;
  showAll(): void;
}

/** Shown if a filter matches nothing. */
export function NothingMatches({ sought, showAll }: NothingMatchesProps) {
  const title = `Nothing matches ${sought === '' ? 'this' : `'${toShown(sought)}'`}.`;
  return html`<${Empty} title=${title}><button type="button" onClick=${showAll}>Show all</button><//>`;
}

interface ListedProps {
  /** The answer that contains the list. */
  readonly of: Pick<Resource<unknown>, 'value' | 'isOwn'>;
  readonly count: number;
  /** Whether the list is filtered, and the text of the filter. */
  readonly isFiltered?: boolean;
  readonly sought?: string;
  showAll?(): void;
  /** Shown if there is nothing to list. */
  readonly nothing: ComponentChildren;
  /** The list. */
  readonly children?: ComponentChildren;
}

/** A list, or why it is empty: the answer belongs to another filter, this filter matches nothing, or there is
 * nothing. */
export function Listed({ of, count, isFiltered, sought = '', showAll, ...shown }: ListedProps) {
  // ReadingState is shown in that case.
  if (of.value === undefined) return null;
  if (count > 0) return shown.children;
  if (!of.isOwn) return html`<${Skeleton} />`;
  if (isFiltered) return html`<${NothingMatches} sought=${sought} showAll=${showAll} />`;
  return shown.nothing;
}

/** Shown if there is no data because no worker reports. */
export function NoReports() {
  return html`<${Empty} title="No worker reports."><p>Workers of Ratelane report every five seconds, unless CONFIG_FLEET_LINK is false.</p><//>`;
}

interface StateProps {
  readonly of: Pick<Resource<unknown>, 'value' | 'atMs' | 'problem'>;
}

/** The text of a page that has no answer, or an outdated one. */
export function ReadingState({ of: { value, atMs, problem } }: StateProps) {
  if (problem !== undefined) {
    const shownSince = value === undefined ? '' : ` What is shown is as of ${toClock(atMs)}.`;
    return html`<${Notice} tone="bad"><strong>${toSentence(problem.text).replace(/[^?]$/, '$&.')}</strong>${shownSince}
      ${problem.status === 0 ? ' Retrying every five seconds.' : ''}<//>`;
  }
  return value === undefined ? html`<${Skeleton} />` : null;
}

/** A placeholder for content that is loading. */
export function Skeleton() {
  return html`<div class="skeleton" role="status"><span class="unseen">Reading…</span>
    ${['w60', 'w90', 'w75', 'w40'].map((width) => html`<div class=${width} aria-hidden="true"></div>`)}</div>`;
}

interface TileProps {
  readonly name: string;
  readonly value: string;
  readonly detail?: string | undefined;
  readonly tone?: Tone | undefined;
}

export function Tile({ name, value, detail, tone = 'plain' }: TileProps) {
  return html`<div class=${`tile ${tone}`}>
    <dt>${name}</dt>
    <dd><span class="value">${value}</span>${detail && html`<span class="detail">${detail}</span>`}</dd>
  </div>`;
}

interface SparklineProps {
  /** The oldest first. */
  readonly values: readonly number[];
  /** Drawn over `values` in another colour. */
  readonly over?: readonly number[] | undefined;
  /** Whether hits over the limit are admitted. */
  readonly isShadow?: boolean;
}

const [width, height] = [88, 22];

/** The last minute. The numbers beside it have the same content. */
export function Sparkline({ values, over, isShadow }: SparklineProps) {
  const largest = Math.max(...values, 1e-9);
  const pointsOf = (line: readonly number[]) =>
    line
      .map((value, index) => {
        const x = (index / Math.max(1, line.length - 1)) * (width - 2) + 1;
        const y = height - 2 - (Math.min(value, largest) / largest) * (height - 4);
        return `${x.toFixed(1)},${y.toFixed(1)}`;
      })
      .join(' ');
  return html`<svg class="spark" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} aria-hidden="true">
    <polyline points=${pointsOf(values)} />
    ${over?.some((value) => value > 0) && html`<polyline class=${isShadow ? 'shadow' : 'over'} points=${pointsOf(over)} />`}
  </svg>`;
}

interface UseBarProps {
  /** Per second, over the last minute. */
  readonly hits: number;
  readonly near: number;
  readonly over: number;
  readonly isShadow: boolean;
}

/** How many hits of a rule were within its limit, near it, and over it. */
export function UseBar({ hits, near, over, isShadow }: UseBarProps) {
  if (hits === 0) return html`<span class="quiet">–</span>`;
  const percentOf = (part: number) => Math.min(100, (part / hits) * 100);
  const [overPart, nearPart] = [percentOf(over), percentOf(near)];
  const percent = `${Math.max(1, Math.round(overPart))} %`;
  const overText = isShadow ? `${percent} would be refused` : `${percent} over`;
  const text = over > 0 ? overText : near > 0 ? 'near' : 'within';
  return html`<span class="use">
    <svg viewBox="0 0 100 8" width="72" height="8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="within" width="100" height="8" />
      <rect class="near" x=${100 - overPart - nearPart} width=${nearPart} height="8" />
      <rect class=${isShadow ? 'shadow' : 'over'} x=${100 - overPart} width=${overPart} height="8" />
    </svg><span class="quiet">${text}</span></span>`;
}

interface FieldProps {
  readonly label: string;
  readonly children?: ComponentChildren;
}

export function Field({ label, children }: FieldProps) {
  return html`<label class="field"><span>${label}</span>${children}</label>`;
}

interface SearchProps {
  readonly label: string;
  readonly value: string;
  onInput(text: string): void;
}

export function Search({ label, value, onInput }: SearchProps) {
  return html`<input type="search" aria-label=${label} placeholder=${label} value=${value}
    onInput=${(event: InputEvent) => onInput((event.target as HTMLInputElement).value)} />`;
}
