// A chart of the traffic in the last quarter of an hour, or in the last hour.
import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';
import type { HistoryJson, MarkJson } from '../../admin/controllers/traffic.ts';
import { toClock, toRate, toShortId, toShown, toTime } from './format.ts';
import type { Tone } from './parts.ts';
import { hrefOf } from './route.ts';

interface ChartProps {
  readonly history: HistoryJson;
  readonly spanSeconds: number;
  /** Called when a minute is chosen, in seconds. */
  onMinute(second: number): void;
  /** Shown beside the title. */
  readonly children?: ComponentChildren;
}

/** The least span: at first, a chart of less data would be a line at its edge. */
const leastSpanSeconds = 180;
const height = 190;
/** The intervals between labels, in seconds: labels show minutes, each at most once. */
const minuteSteps = [60, 120, 300, 600];

/** The tiles above the chart show the newest values as text. */
export function TrafficChart({ history, spanSeconds, onMinute, children }: ChartProps) {
  const container = useRef<HTMLDivElement>(null);
  const chart = useRef<UPlot | undefined>(undefined);
  /** The position of the pointer. */
  const [index, setIndex] = useState<number | undefined>(undefined);
  const data = useMemo(() => toData(history, spanSeconds), [history, spanSeconds]);
  const latest = useRef(data);
  latest.current = data;
  const choose = useRef(onMinute);
  choose.current = onMinute;

  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    const draw = () => {
      chart.current?.destroy();
      chart.current = new UPlot(toOptions(element, setIndex), latest.current, element);
      chart.current.over.addEventListener('click', () => {
        const { idx } = chart.current?.cursor ?? {};
        const second = idx == null ? undefined : latest.current[0][idx];
        if (second !== undefined) choose.current(Math.floor(second / 60) * 60);
      });
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

  const { slotSeconds } = history;
  const [times, ...lines] = data;
  const hasGap = lines[0].some((value) => value === null);
  const second = index === undefined ? undefined : times[index];
  const rates = lines.map((line) => toReadRate(line[index ?? -1]));
  const from = Date.parse(history.slots[0]?.at ?? '') || (times[0] ?? 0) * 1000;
  const when =
    second === undefined
      ? `since ${toClock(from)}`
      : `at ${toTime(new Date((second - slotSeconds / 2) * 1000).toISOString()).slice(11)}`;
  return html`<figure class="chart">
    <figcaption>Requests per second, ${when}
      <span class="key ok">decisions${rates[0]}</span><span class="key over">over limit${rates[1]}</span><span class="key error">errors${rates[2]}</span>${hasGap && html`<span class="key gap">not known</span>`}
      ${children}
    </figcaption>
    <div class="plot">
      <div ref=${container} role="img" aria-label=${`A chart of the requests per second since ${toClock(from)}`}></div>
      <${Marks} marks=${history.marks} times=${times} />
    </div>
  </figure>`;
}

export const markSigns: Readonly<Record<MarkJson['kind'], readonly [Tone, string]>> = {
  in_force: ['good', '✓'],
  rollout: ['wait', '…'],
  taken_back: ['bad', '!'],
  held_back: ['wait', '‖'],
  invalid: ['bad', '×'],
  reset: ['plain', '↺'],
  lift: ['plain', '↥'],
  outage: ['bad', '!'],
  recovered: ['good', '✓'],
  workers: ['plain', '·'],
  control_plane: ['plain', '◇'],
};
/** A share of the chart's width: signs closer than this are drawn below each other. */
const leastDistance = 0.05;
/** The last sign represents all further ones. */
const mostBelow = 5;

interface MarksProps {
  readonly marks: readonly MarkJson[];
  readonly times: ArrayLike<number>;
}

/** Above the chart, for users who cannot see the picture. */
function Marks({ marks, times }: MarksProps) {
  const [start = 0, end = 1] = [times[0], times[times.length - 1]];
  const shown = marks
    .map((mark) => ({ mark, share: (Date.parse(mark.at) / 1000 - start) / (end - start) }))
    .filter(({ share }) => share >= 0 && share <= 1);
  if (shown.length === 0) return null;
  const positioned = shown.map(({ mark, share }, index) => {
    const near = shown.slice(0, index).filter((other) => share - other.share < leastDistance);
    const further = shown.slice(index).filter((other) => other.share - share < leastDistance);
    return { mark, share, below: near.length, count: further.length };
  });
  return html`<ol class="marks" aria-label="What happened during this period">${positioned.map(
    ({ mark, share, below, count }) => {
      if (below >= mostBelow) return null;
      const isMany = below === mostBelow - 1 && count > 1;
      const { at, kind, revision, text } = mark;
      // A newer control plane may send other kinds.
      const [tone, sign] = isMany ? ['plain', `+${count}`] : (markSigns[kind] ?? ['plain', '·']);
      const label = isMany
        ? `${toTime(at).slice(11)} and later: ${count} events`
        : `${toTime(at).slice(11)} ${toShown(text)}`;
      const href =
        revision === null || isMany
          ? hrefOf('fleet', { at: toMinute(at) })
          : hrefOf('revisions', { open: toShortId(revision) });
      return html`<li key=${`${at} ${text}`} class=${`${tone}${share > 0.5 ? ' late' : ''}`}
        style=${`left: ${(share * 100).toFixed(2)}%; --below: ${below}`}>
        <a href=${href} aria-label=${label}><span class="sign">${sign}</span><span class="label">${label}</span></a>
      </li>`;
    },
  )}</ol>`;
}

/** The start of the minute, in the format of the page's address. */
export function toMinute(time: string): string {
  return `${new Date(time).toISOString().slice(0, 16)}Z`;
}

/** Rates are unknown for a time that no report covers. */
function toReadRate(perSecond: number | null | undefined): string {
  if (perSecond === undefined) return '';
  return perSecond === null ? ' not known' : ` ${toRate(perSecond)}`;
}

/** At the middle of each slot of the span until now, with a gap for an unknown slot. */
function toData({ slots, slotSeconds, until }: HistoryJson, spanSeconds: number) {
  const knownSeconds = (Date.parse(until) - Date.parse(slots[0]?.at ?? until)) / 1000;
  const shownSeconds = knownSeconds < leastSpanSeconds ? leastSpanSeconds : spanSeconds;
  const known = new Map(slots.map((slot) => [Date.parse(slot.at) / 1000, slot]));
  const count = Math.floor(shownSeconds / slotSeconds);
  const end = Math.floor(Date.parse(until) / 1000 / slotSeconds) * slotSeconds;
  const starts = Array.from({ length: count }, (_, index) => end - (count - index) * slotSeconds);
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
  ] satisfies UPlot.AlignedData;
}

/** Marks unknown times, which are not times without requests. The newest slots have not been reported yet. */
function drawGaps({ ctx, data, bbox, valToPos }: UPlot, colour: string): void {
  const [times, decisions] = data;
  const last = (decisions as (number | null)[]).findLastIndex((value) => value !== null);
  ctx.save();
  ctx.fillStyle = colour;
  for (let from = 0; from < last; from++) {
    if (decisions?.[from] !== null) continue;
    let to = from;
    while (to < last && decisions[to] === null) to++;
    const [left, right] = [from, to].map((at) => valToPos(times[at] ?? 0, 'x', true));
    ctx.fillRect(left ?? 0, bbox.top, (right ?? 0) - (left ?? 0), bbox.height);
    from = to;
  }
  ctx.restore();
}

/** `point`: called with the slot under the pointer, undefined if it is elsewhere. */
function toOptions(
  element: HTMLElement,
  point: (index: number | undefined) => void,
): UPlot.Options {
  const style = getComputedStyle(element);
  // A canvas needs the current colour, which only a property of the element has.
  const colour = (name: string) => {
    element.style.color = `var(${name})`;
    return style.color;
  };
  const raised = colour('--raised');
  const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 } };
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    hooks: {
      setCursor: [({ cursor }) => point(cursor.idx ?? undefined)],
      drawClear: [(chart) => drawGaps(chart, raised)],
    },
    // Equal to the padding of `.marks`.
    padding: [8, 24, 0, 0],
    axes: [
      {
        ...axis,
        size: 32,
        incrs: minuteSteps,
        values: (_chart, times) =>
          times.map((seconds) => toTime(new Date(seconds * 1000).toISOString()).slice(11, 16)),
      },
      { ...axis, size: 56, values: (_chart, values) => values.map(toRate) },
    ],
    scales: {
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
