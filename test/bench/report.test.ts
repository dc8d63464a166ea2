import test from 'ava';
import type { Measurement } from './grid.ts';
import { drawPicture } from './picture.ts';
import { renderMarkdown, renderText } from './report.ts';
import type { BenchResults } from './results.ts';
import { summarize } from './summary.ts';

const yardstick = 'grpc-js <constant>';

function measurement(
  service: string,
  round: number,
  cpuPerDecisionUs: number,
  ratePerSecond?: number,
): Measurement {
  return {
    scenario: 'unlimited',
    service,
    round,
    ratePerSecond,
    decisionsPerSecond: 1e6 / cpuPerDecisionUs,
    cpuPerDecisionUs,
    p99Us: 2_000,
    p999Us: 4_000,
    sendLagP99Us: ratePerSecond === undefined ? undefined : 150,
    residentBytes: 100_000_000,
    storeCommands: { firstHalf: 1.5, secondHalf: 1.0, total: 1.25 },
    problems: service === yardstick && ratePerSecond !== undefined ? ['sent late'] : [],
  };
}

const results: BenchResults = {
  machine: {
    processor: 'Processor',
    cores: 2,
    memoryBytes: 8 * 2 ** 30,
    kernel: 'Linux 6.1',
    node: 'v24',
    commit: 'abc',
    date: '2026-01-01',
  },
  processors: 'the service on one processor, load and store on one other',
  otherWork: 0.02,
  rounds: 3,
  measuredMs: 3_000,
  connections: 4,
  streams: 64,
  yardstick,
  measurements: [
    measurement('ratelane', 0, 2),
    measurement(yardstick, 0, 40),
    measurement(yardstick, 1, 80),
    measurement('ratelane', 1, 8),
    measurement('ratelane', 2, 4),
    measurement(yardstick, 2, 80),
    measurement('ratelane', 0, 30, 2_000),
    measurement(yardstick, 0, 40, 2_000),
  ],
  roundTrips: [
    {
      service: 'ratelane',
      roundTripMs: 0.5,
      oneKey: { commandsPerDecision: 0.05, decisionsPerSecond: 10_000, p99Us: 3_000 },
      manyKeys: { whenNew: 2, whenKnown: 1 },
      problems: [],
    },
  ],
  highestRates: [
    {
      service: 'ratelane',
      scenario: 'redis-10k-keys-trace',
      p99LimitUs: 8_000,
      ratePerSecond: 40_000,
      p99Us: 6_000,
      sendLagP99Us: 200,
      endedBy: 'p99 12.0 ms',
    },
  ],
  soak: undefined,
};

test('a result is the median of its rounds, and a ratio is computed in each round', (t) => {
  const [ours, theirs] = summarize(results.measurements, yardstick);
  t.like(ours, { cpuPerDecisionUs: 4, cpuRatio: 0.05, cpuSpread: 0.75 });
  t.is(theirs?.cpuPerDecisionUs, 80);
  t.is(theirs?.cpuRatio, undefined);
});

test('the tables contain the scenario, service, ratio, machine and problems', (t) => {
  const text = renderText(results);
  t.regex(text, /^unlimited +ratelane +250,000 +4\.00 +75 % +1\/20\.0 +2\.00 +100/m);
  t.regex(text, /^unlimited +2,000 +ratelane +30\.0 +0\.75 +2\.00 +4\.00 +0\.15/m);
  t.regex(text, /! unlimited, 2,000\/s, grpc-js <constant>: sent late/);
  t.regex(text, /0\.5 +ratelane +0\.050 +10,000 +3\.00 +2\.000 +1\.000/);
  t.regex(text, /redis-10k-keys-trace +ratelane +8\.00 +40,000 +6\.00 +0\.20 +p99 12\.0 ms/);
  t.true(text.startsWith('Processor, 2 cores, 8 GiB, Linux 6.1, Node v24, commit abc, 2026-01-01'));
});

test('a round without answers is a problem, and is not part of the medians', (t) => {
  const without = {
    ...measurement(yardstick, 0, Number.POSITIVE_INFINITY),
    problems: ['no answers in the measured time'],
  };
  const rows = summarize(
    [without, measurement('ratelane', 0, 1), ...results.measurements.slice(2, 4)],
    yardstick,
  );
  t.is(rows.find((row) => row.service === yardstick)?.cpuPerDecisionUs, 80);
  t.is(rows.find((row) => row.service === 'ratelane')?.cpuRatio, 0.1);
  t.deepEqual(rows.find((row) => row.service === yardstick)?.problems, without.problems);
});

test('a machine that was busy with other work is reported', (t) => {
  t.notRegex(renderText(results), /Other work/);
  t.regex(renderText({ ...results, otherWork: 0.35 }), /Other work took 35 % of the machine/);
});

test('the Markdown tables have a cell for each column', (t) => {
  const rows = renderMarkdown(results)
    .split('\n')
    .filter((line) => line.startsWith('|'));
  t.is(rows.filter((row) => row.includes('---')).length, 4);
  let cells = 0;
  for (const [index, row] of rows.entries()) {
    const count = row.split('|').length;
    if (rows[index + 1]?.includes('---')) cells = count;
    t.is(count, cells, row);
  }
});

test("Markdown names the service only if several were measured, and no row is the yardstick's", (t) => {
  t.notRegex(renderMarkdown(results), /service \||grpc-js <constant>.*\|/);
  const measurements = [...results.measurements, measurement('another', 0, 3)];
  t.regex(renderMarkdown({ ...results, measurements }), /^\| unlimited \| another \| 333,333 \|/m);
});

test('the picture has a bar for each service, escaped names, and its own background', (t) => {
  const picture = drawPicture(results);
  t.is(picture.match(/<text class="value"/g)?.length, 2);
  t.true(picture.includes('4.0 us, 1/20.0 of grpc-js'));
  t.true(picture.includes('grpc-js &lt;constant&gt;'));
  t.true(picture.includes('prefers-color-scheme: dark'));
  t.true(picture.includes('class="card"'));
});
