// The parts that all pages are made of.
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { toClock, toSentence, toShown } from './format.ts';
import type { Resource } from './resource.ts';

export type Tone = 'good' | 'wait' | 'bad' | 'plain';

/** Never by colour alone: the sign is another for each tone. */
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

/** The heading takes the focus when another page comes. */
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

/** Where there is nothing to show: why, and what to do. */
export function Empty({ title, children }: EmptyProps) {
  return html`<div class="empty"><strong>${title}</strong><div>${children}</div></div>`;
}

interface NothingMatchesProps {
  readonly sought: string;
  showAll(): void;
}

/** Where a filter finds nothing. */
export function NothingMatches({ sought, showAll }: NothingMatchesProps) {
  const title = `Nothing matches ${sought === '' ? 'this' : `'${toShown(sought)}'`}.`;
  return html`<${Empty} title=${title}><button type="button" onClick=${showAll}>Show all</button><//>`;
}

/** Where nothing is shown because nothing is known. */
export function NobodyReports() {
  return html`<${Empty} title="No worker reports."><p>Workers of Ratelane report every five seconds, unless CONFIG_FLEET_LINK is false.</p><//>`;
}

interface StateProps {
  readonly of: Pick<Resource<unknown>, 'value' | 'atMs' | 'trouble'>;
}

/** What a page says while it has no answer, or an old one. */
export function ReadingState({ of: { value, atMs, trouble } }: StateProps) {
  if (trouble !== undefined) {
    const kept = value === undefined ? '' : ` What is shown is as of ${toClock(atMs)}.`;
    return html`<${Notice} tone="bad"><strong>${toSentence(trouble.text)}.</strong>${kept}
      ${trouble.status === 0 ? ' It is asked again every five seconds.' : ''}<//>`;
  }
  return value === undefined ? html`<${Skeleton} />` : null;
}

/** Where something will be in a moment. */
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

interface TableProps {
  readonly caption: string;
  /** Names of the columns; those that begin with `#` hold numbers. */
  readonly columns: readonly string[];
  readonly rows: readonly ComponentChildren[];
  /** How many rows are shown at first, and how many more at a time. */
  readonly atOnce?: number;
}

/** Only the first rows until somebody asks for more: thousands would make every update slow. */
export function Table({ caption, columns, rows, atOnce = 100 }: TableProps) {
  const [most, setMost] = useState(atOnce);
  const left = rows.length - most;
  return html`<div class="table" role="region" aria-label=${caption} tabindex="0">
      <table>
        <caption class="unseen">${caption}</caption>
        <thead><tr>${columns.map((column) =>
          column.startsWith('#')
            ? html`<th scope="col" class="number">${column.slice(1)}</th>`
            : html`<th scope="col">${column === '' ? html`<span class="unseen">Actions</span>` : column}</th>`,
        )}</tr></thead>
        <tbody>${rows.slice(0, most)}</tbody>
      </table>
    </div>
    ${
      left > 0 &&
      html`<p class="more"><button type="button" onClick=${() => setMost(most + atOnce)}>
        Show ${Math.min(left, atOnce)} more of ${left}</button></p>`
    }`;
}

interface SparklineProps {
  /** The oldest first. */
  readonly values: readonly number[];
  /** Drawn over it in another colour. */
  readonly over?: readonly number[] | undefined;
  /** What is over is not refused. */
  readonly isShadow?: boolean;
}

const [width, height] = [88, 22];

/** Of the last minute. The numbers beside it say the same. */
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
