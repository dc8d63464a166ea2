// Draws the picture in the guide to rules: the same traffic at the edge of a window with each of the three algorithms,
// decided by the counters in process with a manual clock.
import { type LimitShape, plainShape, toLimiter } from '../../shared/rules/limit-shape.ts';
import { MemoryStore } from '../../worker/counters/memory-store.ts';
import { createHit, startCounting } from '../support/counting.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createRecordedLog } from '../support/recorded-log.ts';

/** A caller that sends six requests a second around the full minute. */
const firstSecond = 50;
const seconds = 30;
const hitsPerSecond = 6;
const minute = 60;

const rows: readonly (readonly [title: string, shape: Omit<LimitShape, 'unit'>])[] = [
  ['fixed_window: 60 a minute', { ...plainShape, requestsPerUnit: 60 }],
  [
    'sliding_window: 60 a minute',
    { ...plainShape, requestsPerUnit: 60, algorithm: 'sliding_window' },
  ],
  [
    'token_bucket: 60 a minute, burst 20',
    { ...plainShape, requestsPerUnit: 60, algorithm: 'token_bucket', burst: 20 },
  ],
];

/** The number of admitted hits in each second. */
export async function admit(shape: LimitShape): Promise<number[]> {
  const clock = createManualClock(Date.parse('2026-01-01T00:00:00Z') + firstSecond * 1000);
  const store = new MemoryStore({ clock, log: createRecordedLog() });
  const limiter = toLimiter(shape);
  const admitted: number[] = [];
  for (let second = 0; second < seconds; second++) {
    const windowStart = Math.floor(clock.wallMs() / 1000 / minute) * minute;
    let count = 0;
    for (let index = 0; index < hitsPerSecond; index++) {
      const hit = createHit({
        key: limiter === undefined ? `k_${windowStart}` : 'k',
        limit: limiter?.capacity ?? shape.requestsPerUnit,
        windowSeconds: minute,
        ...(limiter && {
          limiter: { ...limiter, windowStart, windowSeconds: minute, isEven: true },
        }),
      });
      const { request, result } = startCounting([hit], { deadlineMs: Number.POSITIVE_INFINITY });
      store.count(request);
      await result;
      if (hit.after <= hit.limit) count++;
    }
    admitted.push(count);
    clock.advance(1000);
  }
  await store.close();
  return admitted;
}

const barWidth = 18;
const unitHeight = 9;
const rowHeight = 110;
const left = 16;

/** An SVG, for light and dark pages. */
export async function drawWindowEdge(): Promise<string> {
  const parts: string[] = [];
  for (const [index, [title, shape]] of rows.entries()) {
    const admitted = await admit({ ...shape, unit: 'minute' });
    const base = (index + 1) * rowHeight;
    const total = admitted.reduce((sum, count) => sum + count, 0);
    parts.push(
      `<text x="${left}" y="${base - 72}">${title}: ${total} of ${seconds * hitsPerSecond} admitted</text>`,
    );
    for (const [second, count] of admitted.entries()) {
      const x = left + second * barWidth;
      const bar = (kind: string, height: number, y: number) =>
        `<rect class="${kind}" x="${x}" y="${y}" width="${barWidth - 3}" height="${height}"/>`;
      const admittedHeight = count * unitHeight;
      const asked = hitsPerSecond * unitHeight;
      if (admittedHeight < asked) parts.push(bar('refused', asked - admittedHeight, base - asked));
      if (admittedHeight > 0) parts.push(bar('admitted', admittedHeight, base - admittedHeight));
    }
  }
  const edge = left + (minute - firstSecond) * barWidth - 1.5;
  const height = rows.length * rowHeight + 30;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left * 2 + seconds * barWidth} ${height}" role="img">`,
    '<title>Six hits a second around the full minute, against three algorithms</title>',
    '<style>text{font:13px sans-serif;fill:#24292f}.admitted{fill:#1a7f37}.refused{fill:#d0d7de}line{stroke:#57606a;stroke-dasharray:4 3}',
    '@media (prefers-color-scheme:dark){text{fill:#e6edf3}.admitted{fill:#3fb950}.refused{fill:#30363d}line{stroke:#8b949e}}</style>',
    `<line x1="${edge}" x2="${edge}" y1="24" y2="${height - 22}"/>`,
    `<text x="${edge + 4}" y="${height - 8}">0:01:00, a new window</text>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}
