// The hits of a rule in each minute of the last quarter of an hour, with a line for the limit if all hits share one
// counter. A minute that no report covers is a gap.
import { html } from 'htm/preact';
import { toMinute } from './chart.ts';
import { toClock, toNumber } from './format.ts';
import { hrefOf } from './route.ts';

interface MinuteBarsProps {
  /** Hits per minute, the oldest first. */
  readonly hits: readonly number[];
  readonly over: readonly number[];
  /** Whether reports cover each minute, the oldest first. */
  readonly known: readonly boolean[];
  /** The end of the newest minute, in wall time. */
  readonly untilMs: number;
  /** The admitted hits per minute; null if each value has its own counter. */
  readonly limit: number | null;
  readonly isShadow: boolean;
}

const minuteMs = 60_000;
const [width, height] = [600, 150];

export function MinuteBars({ hits, over, known, untilMs, limit, isShadow }: MinuteBarsProps) {
  const step = width / known.length;
  /** Aligned at the end: the newest minute is the last element. */
  const at = (counts: readonly number[], index: number) =>
    counts[counts.length - known.length + index] ?? 0;
  const minutes = known.map((isKnown, index) => ({
    isKnown,
    startMs: untilMs - (known.length - index) * minuteMs,
    all: at(hits, index),
    refused: at(over, index),
  }));
  const ofKnown = minutes.filter(({ isKnown }) => isKnown);
  const sum = (field: 'all' | 'refused') => ofKnown.reduce((total, each) => total + each[field], 0);
  const most = Math.max(...ofKnown.map(({ all }) => all), 0);
  const largest = Math.max(most, limit ?? 0, 1) * 1.08;
  const toHeight = (count: number) => (count / largest) * height;
  const text = `${toNumber(sum('all'))} hits in ${ofKnown.length} min, ${toNumber(sum('refused'))} over the limit; ${toNumber(most)} in the busiest minute`;
  const hasGap = ofKnown.length < known.length;
  return html`<figure class="bars">
    <figcaption class="quiet">${text}${limit === null ? '. Each value has its own limit.' : `, of ${toNumber(limit)} that pass.`}</figcaption>
    <svg viewBox=${`0 0 ${width} ${height}`} preserveAspectRatio="none" role="group" aria-label=${text}>
      ${minutes.map(({ isKnown, startMs, all, refused }, index) => {
        const x = index * step;
        const clock = toClock(startMs);
        const label = isKnown
          ? `${clock}: ${toNumber(all)} hits, ${toNumber(refused)} over the limit`
          : `${clock}: not known`;
        return html`<a href=${hrefOf('fleet', { at: toMinute(new Date(startMs).toISOString()) })} aria-label=${label}><title>${label}</title>
          <rect class=${isKnown ? 'minute' : 'minute gap'} x=${x} width=${step} height=${height} />
          <rect class="hit" x=${x + 2} y=${height - toHeight(all)} width=${step - 4} height=${toHeight(all)} />
          <rect class=${isShadow ? 'over shadow' : 'over'} x=${x + 2} y=${height - toHeight(all)} width=${step - 4} height=${toHeight(refused)} /></a>`;
      })}
      ${limit !== null && html`<line class="limit" x1="0" x2=${width} y1=${height - toHeight(limit)} y2=${height - toHeight(limit)} />`}
    </svg>
    <div class="ends quiet"><span>${toClock(untilMs - known.length * minuteMs)}</span><span class="key ok">within</span><span class=${`key ${isShadow ? 'shadow' : 'error'}`}>over the limit</span>${limit !== null && html`<span class="key limit">limit</span>`}${hasGap && html`<span class="key gap">not known</span>`}<span>${toClock(untilMs)}</span></div>
  </figure>`;
}
