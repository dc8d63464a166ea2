// The traffic of the last minutes over time.
import { html } from 'htm/preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';
import type { HistoryJson } from '../../admin/history-json.ts';
import { toClock, toRate, toTime } from './format.ts';

interface ChartProps {
  readonly history: HistoryJson;
}

const slotSeconds = 5;
const leastSpanSeconds = 180;
const height = 190;
/** Between labels, in seconds: they tell minutes, and none of them twice. */
const wholeMinutes = [60, 120, 300, 600];

/** The tiles above it say the newest values in words. */
export function TrafficChart({ history }: ChartProps) {
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

  const { slots } = history;
  const slot = index === undefined ? undefined : slots[index];
  const told = (count: number | undefined) =>
    count === undefined ? '' : ` ${toRate(count / slotSeconds)}`;
  const from = Date.parse(slots[0]?.at ?? '');
  return html`<figure class="chart">
    <figcaption>Requests per second, ${slot === undefined ? `since ${toClock(from)}` : `at ${toTime(slot.at).slice(11)}`}
      <span class="key ok">decisions${told(slot?.decisions)}</span><span class="key over">over limit${told(slot?.overLimit)}</span><span class="key error">errors${told(slot?.errors)}</span>
    </figcaption>
    <div ref=${place} role="img" aria-label=${`A chart of the requests per second since ${toClock(from)}`}></div>
  </figure>`;
}

function toData({ slots }: HistoryJson): UPlot.AlignedData {
  const rate = (count: number) => count / slotSeconds;
  return [
    slots.map(({ at }) => Date.parse(at) / 1000),
    slots.map(({ decisions }) => rate(decisions)),
    slots.map(({ overLimit }) => rate(overLimit)),
    slots.map(({ errors }) => rate(errors)),
  ];
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
      x: { range: (_chart, first, last) => [Math.min(first, last - leastSpanSeconds), last] },
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
