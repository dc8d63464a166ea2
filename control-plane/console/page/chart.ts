// The traffic of the last quarter of an hour, or of the last hour.
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';
import type { HistoryJson, MarkJson } from '../../admin/history-json.ts';
import { toClock, toRate, toShortId, toShown, toTime } from './format.ts';
import type { Tone } from './parts.ts';
import { hrefOf } from './route.ts';

interface ChartProps {
  readonly history: HistoryJson;
  /** Stands beside the title. */
  readonly children?: ComponentChildren;
}

const leastSpanSeconds = 180;
const height = 190;
/** Between labels, in seconds: they tell minutes, and none of them twice. */
const wholeMinutes = [60, 120, 300, 600];

/** The tiles above it say the newest values in words. */
export function TrafficChart({ history, children }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<UPlot | undefined>(undefined);
  /** Where the pointer is. */
  const [index, setIndex] = useState<number | undefined>(undefined);
  const data = useMemo(() => toData(history), [history]);
  const latest = useRef(data);
  latest.current = data;

  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const draw = () => {
      chart.current?.destroy();
      chart.current = new UPlot(toOptions(element, setIndex), latest.current, element);
    };
    const resized = new ResizeObserver(() => {
      chart.current?.setSize({ width: element.clientWidth, height });
    });
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const theme = new MutationObserver(draw);
    draw();
    resized.observe(element);
    dark.addEventListener('change', draw);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => {
      resized.disconnect();
      theme.disconnect();
      dark.removeEventListener('change', draw);
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, []);

  useEffect(() => chart.current?.setData(data), [data]);

  const { slots, slotSeconds } = history;
  const [times, ...lines] = data;
  const second = index === undefined ? undefined : times[index];
  const told = lines.map((line) => toToldRate(line[index ?? -1]));
  const from = Date.parse(slots[0]?.at ?? '');
  const when =
    second === undefined
      ? `since ${toClock(from)}`
      : `at ${toTime(new Date((second - slotSeconds / 2) * 1000).toISOString()).slice(11)}`;
  return html`<figure class="chart">
    <figcaption>Requests per second, ${when}
      <span class="key ok">decisions${told[0]}</span><span class="key over">over limit${told[1]}</span><span class="key error">errors${told[2]}</span>
      ${children}
    </figcaption>
    <div class="plot">
      <div ref=${place} role="img" aria-label=${`A chart of the requests per second since ${toClock(from)}`}></div>
      <${Marks} marks=${history.marks} times=${times} />
    </div>
  </figure>`;
}

const markSigns: Readonly<Record<MarkJson['kind'], readonly [Tone, string]>> = {
  in_force: ['good', '✓'],
  rollout: ['wait', '…'],
  taken_back: ['bad', '!'],
  reset: ['plain', '↺'],
};
/** Of the chart's width: signs that are nearer to each other stand below each other. */
const leastDistance = 0.05;
const mostBelow = 5;

interface MarksProps {
  readonly marks: readonly MarkJson[];
  readonly times: ArrayLike<number>;
}

/** Stands above the chart, for people who cannot see its picture. */
function Marks({ marks, times }: MarksProps) {
  const [start, end] = toRange(times[0] ?? 0, times[times.length - 1] ?? 0);
  const shown = marks
    .map((mark) => ({ mark, share: (Date.parse(mark.at) / 1000 - start) / (end - start) }))
    .filter(({ share }) => share >= 0 && share <= 1);
  if (shown.length === 0) return null;
  return html`<ol class="marks" aria-label="What happened in this time">${shown.map(
    ({ mark: { at, kind, revision, text }, share }, index) => {
      const near = shown.slice(0, index).filter((other) => share - other.share < leastDistance);
      const [tone, sign] = markSigns[kind];
      const label = `${toTime(at).slice(11)} ${toShown(text)}`;
      const href =
        revision === null ? hrefOf('limited') : hrefOf('revisions', { open: toShortId(revision) });
      return html`<li key=${`${at} ${text}`} class=${`${tone}${share > 0.5 ? ' late' : ''}`}
        style=${`left: ${(share * 100).toFixed(2)}%; --below: ${near.length % mostBelow}`}>
        <a href=${href} aria-label=${label}><span class="sign">${sign}</span><span class="label">${label}</span></a>
      </li>`;
    },
  )}</ol>`;
}

/** Of a time that no report covers nothing is known. */
function toToldRate(perSecond: number | null | undefined): string {
  if (perSecond === undefined) return '';
  return perSecond === null ? ' not known' : ` ${toRate(perSecond)}`;
}

/** At the middle of each slot until now; with a gap where one is not known. */
function toData({ slots, slotSeconds, until }: HistoryJson): UPlot.AlignedData {
  const known = new Map(slots.map((slot) => [Date.parse(slot.at) / 1000, slot]));
  const [first = 0] = known.keys();
  const count = Math.max(0, Math.floor((Date.parse(until) / 1000 - first) / slotSeconds));
  const starts = Array.from({ length: count }, (_, index) => first + index * slotSeconds);
  const line = (field: 'decisions' | 'overLimit' | 'errors') =>
    starts.map((start) => {
      const count = known.get(start)?.[field];
      return count === undefined ? null : count / slotSeconds;
    });
  return [
    starts.map((start) => start + slotSeconds / 2),
    line('decisions'),
    line('overLimit'),
    line('errors'),
  ];
}

function toRange(first: number, last: number): [first: number, last: number] {
  return [Math.min(first, last - leastSpanSeconds), last];
}

/** `point`: of which slot the pointer is, undefined where it is elsewhere. */
function toOptions(
  element: HTMLElement,
  point: (index: number | undefined) => void,
): UPlot.Options {
  const style = getComputedStyle(element);
  // A canvas wants the colour of now, which only a property of the element has.
  const colour = (name: string) => {
    element.style.color = `var(${name})`;
    return style.color;
  };
  const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 } };
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor }) => point(cursor.idx ?? undefined)] },
    // As `.marks` has it.
    padding: [8, 24, 0, 0],
    axes: [
      {
        ...axis,
        size: 32,
        incrs: wholeMinutes,
        values: (_chart, times) =>
          times.map((seconds) => toTime(new Date(seconds * 1000).toISOString()).slice(11, 16)),
      },
      { ...axis, size: 56, values: (_chart, values) => values.map(toRate) },
    ],
    scales: {
      x: { range: (_chart, first, last) => toRange(first, last) },
      y: { range: (_chart, _low, high) => [0, Math.max(1, high * 1.1)] },
    },
    series: [
      {},
      {
        label: 'decisions',
        stroke: colour('--accent'),
        fill: colour('--accent-soft'),
        width: 2,
        points: { show: false },
      },
      { label: 'over limit', stroke: colour('--wait'), width: 2, points: { show: false } },
      { label: 'errors', stroke: colour('--bad'), width: 2, points: { show: false } },
    ],
  };
}
