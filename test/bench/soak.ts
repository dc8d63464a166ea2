// The long run: millions of decisions over many keys, to check that memory does not grow.
import type { Bench } from './bench.ts';
import { readMemory } from './process-usage.ts';
import { findScenario } from './scenario.ts';
import type { Service } from './service.ts';
import { median } from './statistics.ts';

export type Soak = Awaited<ReturnType<typeof runSoak>>;

const ratePerSecond = 20_000;
const warmUpMs = 5_000;
const sampleEveryMs = 1_000;

export async function runSoak(
  bench: Bench,
  service: Service,
  decisions: number,
  onSample: (secondsLeft: number, residentBytes: number) => void,
) {
  const scenario = findScenario('redis-200k-keys');
  const measuredMs = (decisions / ratePerSecond) * 1000;
  const running = await bench.start(service, scenario);
  const samples: number[] = [];
  const startedMs = performance.now();
  const timer = setInterval(() => {
    const passedMs = performance.now() - startedMs - warmUpMs;
    if (passedMs < 0 || passedMs > measuredMs) return;
    const { residentBytes } = readMemory(running.pids);
    samples.push(residentBytes);
    onSample((measuredMs - passedMs) / 1000, residentBytes);
  }, sampleEveryMs);
  try {
    const outcome = await bench.load(running, service, scenario, {
      ratePerSecond,
      warmUpMs,
      measuredMs,
    });
    const quarter = (index: number) => {
      const { length } = samples;
      return median(
        samples.slice(Math.floor((index * length) / 4), Math.floor(((index + 1) * length) / 4)),
      );
    };
    const problems = Object.entries(outcome.failures).map(([kind, count]) => `${kind}: ${count}`);
    if (outcome.unsent > 0) problems.push('the rate was not reached');
    return {
      service: service.name,
      scenario: scenario.name,
      ratePerSecond,
      seconds: outcome.seconds,
      decisions: outcome.answered,
      cpuPerDecisionUs: outcome.serviceCpuUs / outcome.answered,
      p99Us: outcome.latencyUs.p99,
      p999Us: outcome.latencyUs.p999,
      sendLagP99Us: outcome.sendLagUs?.p99,
      /** Medians of the first, third and last quarter of the run, and the overall maximum. */
      residentBytes: {
        firstQuarter: quarter(0),
        thirdQuarter: quarter(2),
        lastQuarter: quarter(3),
        peak: readMemory(running.pids).peakBytes,
      },
      problems,
    };
  } finally {
    clearInterval(timer);
    await running.stop();
  }
}
