// `npm run bench`: measures what a decision costs, relative to a @grpc/grpc-js server with a constant answer,
// alternating within one run. Quote the ratios: machines are noisy.
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createBench } from './bench.ts';
import { type BenchCommand, parseCommandLine, usage } from './command-line.ts';
import { type Measurement, measureGrid } from './grid.ts';
import { findHighestRate, type HighestRate } from './highest-rate.ts';
import { describeMachine, measureOtherWork } from './machine.ts';
import { drawPicture } from './picture.ts';
import { renderMarkdown, renderText } from './report.ts';
import type { BenchResults } from './results.ts';
import { measureRoundTrips, type RoundTripMeasurement } from './round-trips.ts';
import { worker, yardstick } from './service.ts';
import { runSoak } from './soak.ts';

const print = (line: string) => process.stderr.write(`${line}\n`);
const toMs = (us: number) => `${(us / 1000).toFixed(2)} ms`;

function printMeasurement(one: Measurement, done: number, total: number): void {
  const leftMinutes = ((performance.now() / done) * (total - done)) / 60_000;
  const load = one.ratePerSecond === undefined ? 'saturation' : `${one.ratePerSecond}/s`;
  const figures = `${one.decisionsPerSecond.toFixed(0)}/s, ${one.cpuPerDecisionUs.toFixed(2)} us, p99 ${toMs(one.p99Us)}`;
  const problems = one.problems.map((problem) => ` ! ${problem}`).join('');
  print(
    `${done}/${total}, ${leftMinutes.toFixed(0)} min left: ${one.scenario}, round ${one.round + 1}, ${one.service}, ${load}: ${figures}${problems}`,
  );
}

function printRoundTrip({ roundTripMs, service, oneKey, manyKeys }: RoundTripMeasurement): void {
  const [one, whenNew, whenKnown] = [
    oneKey.commandsPerDecision,
    manyKeys.whenNew,
    manyKeys.whenKnown,
  ].map((commands) => commands.toFixed(3));
  print(
    `round trip ${roundTripMs} ms, ${service}: store commands with one key ${one}, with 10,000 ${whenNew} when new, then ${whenKnown}`,
  );
}

/** Samples come every second. */
const printSoakEvery = 10;
let soakSamples = 0;

function printSoak(secondsLeft: number, residentBytes: number): void {
  if (soakSamples++ % printSoakEvery !== 0) return;
  print(`long run: ${secondsLeft.toFixed(0)} s left, RSS ${(residentBytes / 1e6).toFixed(0)} MB`);
}

/** The results so far, which a run that is ended early still prints. */
let found: BenchResults | undefined;

async function run(command: BenchCommand): Promise<BenchResults> {
  const machine = describeMachine();
  const otherWork = await measureOtherWork();
  const bench = await createBench(command);
  print(bench.processors);
  const services = [worker, yardstick, ...command.others];
  const measurements: Measurement[] = [];
  const roundTrips: RoundTripMeasurement[] = [];
  const highestRates: HighestRate[] = [];
  let results: BenchResults = {
    machine,
    processors: bench.processors,
    otherWork,
    rounds: command.rounds,
    measuredMs: command.measuredMs,
    connections: command.connections,
    streams: command.streams,
    yardstick: yardstick.name,
    measurements,
    roundTrips,
    highestRates,
    soak: undefined,
  };
  found = results;
  try {
    await measureGrid(bench, { ...command, services }, (one, done, total) => {
      measurements.push(one);
      printMeasurement(one, done, total);
    });
    for (const service of command.hasExtras ? services : []) {
      const printStep = (rate: number, p99Us: number) =>
        print(`highest rate, ${service.name}, ${rate}/s: p99 ${toMs(p99Us)}`);
      highestRates.push(await findHighestRate(bench, service, 'redis-10k-keys-trace', printStep));
    }
    if (command.hasExtras) {
      await measureRoundTrips(bench, [worker, ...command.others], (one) => {
        roundTrips.push(one);
        printRoundTrip(one);
      });
    }
    if (command.soakDecisions > 0) {
      results = {
        ...results,
        soak: await runSoak(bench, worker, command.soakDecisions, printSoak),
      };
    }
    return results;
  } finally {
    await bench.stop();
  }
}

async function writeResults(results: BenchResults, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'results.json'), `${JSON.stringify(results, null, 1)}\n`);
  await writeFile(join(folder, 'results.md'), renderMarkdown(results));
  await writeFile(join(folder, 'results.svg'), drawPicture(results));
  print(`written to ${folder}`);
}

// Exiting this way also ends the processes that were started.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, () => {
    if (found !== undefined) process.stdout.write(`${renderText(found)}\n`);
    process.exit(code);
  });
}

let command: ReturnType<typeof parseCommandLine>;
try {
  command = parseCommandLine(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n\n${usage}`);
  process.exit(2);
}
if (command === 'help') {
  process.stdout.write(usage);
} else {
  const results = await run(command);
  process.stdout.write(`${renderText(results)}\n`);
  if (command.outputFolder !== undefined)
    await writeResults(results, resolve(command.outputFolder));
}
