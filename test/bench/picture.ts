// A picture (SVG) of the CPU time of a decision, on a background of its own, so that it is readable on light and dark
// pages.
import { describeMachineLine, toPart } from './report.ts';
import type { BenchResults } from './results.ts';
import { summarize } from './summary.ts';

const width = 860;
const labelWidth = 210;
const barStart = labelWidth + 20;
const barLength = width - barStart - 170;
const barHeight = 16;
const groupGap = 14;
const headHeight = 86;
const footHeight = 44;
/** Ours first; readable on both backgrounds of the card. */
const colours = ['#2f81f7', '#9aa4b2', '#d29922', '#a371f7'];

export function drawPicture(results: BenchResults): string {
  const rows = summarize(results.measurements, results.yardstick).filter(
    (row) => row.ratePerSecond === undefined,
  );
  const scenarios = [...new Set(rows.map((row) => row.scenario))];
  const services = [...new Set(rows.map((row) => row.service))].sort(
    // The yardstick is what readers compare with, so it is last.
    (a, b) => Number(a === results.yardstick) - Number(b === results.yardstick),
  );
  const highest = Math.max(...rows.map((row) => row.cpuPerDecisionUs));
  const parts: string[] = [];
  let y = headHeight;
  for (const scenario of scenarios) {
    const bars = services.flatMap((service, index) => {
      const row = rows.find((one) => one.scenario === scenario && one.service === service);
      return row === undefined ? [] : [{ row, colour: colours[index % colours.length] }];
    });
    const middle = y + (bars.length * (barHeight + 2)) / 2 + 3;
    parts.push(
      `<text x="${labelWidth}" y="${middle.toFixed(0)}" text-anchor="end">${escapeXml(scenario)}</text>`,
    );
    for (const { row, colour } of bars) {
      const length = Math.max((row.cpuPerDecisionUs / highest) * barLength, 1);
      const ratio = row.cpuRatio === undefined ? '' : `, ${toPart(row.cpuRatio)} of grpc-js`;
      parts.push(
        `<rect x="${barStart}" y="${y}" width="${length.toFixed(1)}" height="${barHeight}" rx="2" fill="${colour}"/>`,
        `<text class="value" x="${(barStart + length + 6).toFixed(1)}" y="${y + 12}">${row.cpuPerDecisionUs.toFixed(1)} us${ratio}</text>`,
      );
      y += barHeight + 2;
    }
    y += groupGap;
  }
  const height = y + footHeight;
  const legend = services.map((service, index) => {
    const x = barStart + index * 200;
    return (
      `<rect x="${x}" y="54" width="12" height="12" rx="2" fill="${colours[index % colours.length]}"/>` +
      `<text x="${x + 18}" y="64">${escapeXml(service)}</text>`
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="CPU time of a decision at saturation, by scenario and service">
<style>
  .card { fill: #ffffff; stroke: #d0d7de; }
  text { fill: #1f2328; font: 13px system-ui, sans-serif; }
  .title { font-size: 17px; font-weight: 600; }
  .value { font-size: 12px; }
  .foot { font-size: 11px; fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #151b23; stroke: #3d444d; }
    text { fill: #f0f6fc; }
    .foot { fill: #9198a1; }
  }
</style>
<rect class="card" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
<text class="title" x="20" y="32">CPU time of the service for each decision, at saturation (less is better)</text>
${legend.join('\n')}
${parts.join('\n')}
<text class="foot" x="20" y="${height - 16}">${escapeXml(describeMachineLine(results.machine))}</text>
</svg>
`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
