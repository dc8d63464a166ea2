// Finds the highest offered rate at which latencies stay low, by raising the rate step by step.
import type { Bench } from './bench.ts';
import { findScenario } from './scenario.ts';
import type { Service } from './service.ts';

export type HighestRate = Awaited<ReturnType<typeof findHighestRate>>;

const p99LimitUs = 8_000;
const sendLagLimitUs = 1_000;
const firstRate = 4_000;
const step = 1.25;
const lastRate = 500_000;
/** The machine may cause a bad step, but hardly this many at one rate. */
const attempts = 4;

export async function findHighestRate(
  bench: Bench,
  service: Service,
  scenarioName: string,
  onStep: (ratePerSecond: number, p99Us: number) => void,
) {
  const scenario = findScenario(scenarioName);
  const running = await bench.start(service, scenario);
  let best: { ratePerSecond: number; p99Us: number; sendLagP99Us: number } | undefined;
  let endedBy = `the rate of ${lastRate}`;
  const tryRate = async (ratePerSecond: number): Promise<string | undefined> => {
    const outcome = await bench.load(running, service, scenario, {
      ratePerSecond,
      warmUpMs: best === undefined ? 1_500 : 500,
      measuredMs: 2_000,
    });
    const p99Us = outcome.latencyUs.p99;
    const sendLagP99Us = outcome.sendLagUs?.p99 ?? Number.NaN;
    onStep(ratePerSecond, p99Us);
    const [failure] = Object.keys(outcome.failures);
    if (failure !== undefined) return failure;
    if (outcome.unsent > 0) return 'the rate was not reached';
    if (p99Us > p99LimitUs) return `p99 ${(p99Us / 1000).toFixed(1)} ms`;
    if (sendLagP99Us > sendLagLimitUs) return 'the generator was late';
    best = { ratePerSecond, p99Us, sendLagP99Us };
    return undefined;
  };
  try {
    for (let rate = firstRate; rate <= lastRate; rate = Math.round(rate * step)) {
      let problem: string | undefined;
      for (let attempt = 0; attempt < attempts; attempt++) {
        problem = await tryRate(rate);
        if (problem === undefined) break;
      }
      if (problem !== undefined) {
        endedBy = problem;
        break;
      }
    }
  } finally {
    await running.stop();
  }
  return {
    service: service.name,
    scenario: scenario.name,
    p99LimitUs,
    /** The last good rate; undefined when the first was bad. */
    ratePerSecond: best?.ratePerSecond,
    p99Us: best?.p99Us,
    sendLagP99Us: best?.sendLagP99Us,
    /** Why the next rate was bad. */
    endedBy,
  };
}
