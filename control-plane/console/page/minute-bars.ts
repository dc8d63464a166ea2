// The hits of a rule in the last quarter of an hour, by the minute, with the limit drawn through where all hits count
// together.
import { html } from 'htm/preact';
import { toNumber } from './format.ts';

interface MinuteBarsProps {
  /** Hits a minute, the oldest first. */
  readonly hits: readonly number[];
  readonly over: readonly number[];
  /** Hits a minute that pass; null where each value has its own counter. */
  readonly limit: number | null;
  readonly isShadow: boolean;
}

const minutes = 15;
const [width, height] = [600, 150];
const step = width / minutes;

export function MinuteBars({ hits, over, limit, isShadow }: MinuteBarsProps) {
  const known = Array.from({ length: minutes }, (_, index) => index - minutes + hits.length);
  const largest = Math.max(...hits, limit ?? 0, 1) * 1.08;
  const toHeight = (count: number) => (count / largest) * height;
  const most = Math.max(...hits, 0);
  const refused = over.reduce((sum, count) => sum + count, 0);
  const all = hits.reduce((sum, count) => sum + count, 0);
  const told = `${toNumber(all)} hits in ${hits.length} min, ${toNumber(refused)} over the limit; ${toNumber(most)} in the busiest minute`;
  return html`<figure class="bars">
    <figcaption class="quiet">${told}${limit === null ? '. Each value has the limit by itself.' : `, of ${toNumber(limit)} that pass.`}</figcaption>
    <svg viewBox=${`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label=${told}>
      ${known.map((index, place) => {
        const [all, part] = [toHeight(hits[index] ?? 0), toHeight(over[index] ?? 0)];
        return html`<rect class="hit" x=${place * step + 2} y=${height - all} width=${step - 4} height=${all} />
          <rect class=${isShadow ? 'over shadow' : 'over'} x=${place * step + 2} y=${height - all} width=${step - 4} height=${part} />`;
      })}
      ${limit !== null && html`<line class="limit" x1="0" x2=${width} y1=${height - toHeight(limit)} y2=${height - toHeight(limit)} />`}
    </svg>
    <div class="ends quiet"><span>15 min ago</span><span class="key ok">within</span><span class=${`key ${isShadow ? 'shadow' : 'error'}`}>over the limit</span>${limit !== null && html`<span class="key limit">limit</span>`}<span>now</span></div>
  </figure>`;
}
