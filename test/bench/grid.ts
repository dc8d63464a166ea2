// The grid: every scenario on every service, at saturation and at fixed rates, in rounds.
import type { Bench, LoadOutcome } from './bench.ts';
import { readMemory } from './process-usage.ts';
import type { Scenario } from './scenario.ts';
import type { Service } from './service.ts';

export interface GridPlan {
  readonly scenarios: readonly Scenario[];
  readonly services: readonly Service[];
  /** Requests per second; undefined means saturation. */
  readonly rates: readonly (number | undefined)[];
  readonly rounds: number;
  readonly measuredMs: number;
}

/** One service under one load in one round. */
export interface Measurement {
  readonly scenario: string;
  readonly service: string;
  readonly round: number;
  readonly ratePerSecond: number | undefined;
  readonly decisionsPerSecond: number;
  /** User and system time of the service's processes. */
  readonly cpuPerDecisionUs: number;
  readonly p99Us: number;
  readonly p999Us: number;
  readonly sendLagP99Us: number | undefined;
  /** At the end of this load. */
  readonly residentBytes: number;
  readonly storeCommands: LoadOutcome['storeCommands'];
  /** Why the figures cannot be trusted. */
  readonly problems: readonly string[];
}

/** On a slow machine, compiling the yardstick's code takes this long. */
const firstWarmUpMs = 3_000;
const laterWarmUpMs = 500;
/** Above this lag, latencies measure the generator as much as the service. */
const sendLagLimitUs = 1_000;

/** Reports each measurement when it is done, with the number done so far and the total. */
export async function measureGrid(
  bench: Bench,
  plan: GridPlan,
  onMeasured: (measurement: Measurement, done: number, total: number) => void,
): Promise<void> {
  const runs = plan.scenarios.flatMap((scenario) => {
    const services = plan.services.filter((s) => s.kind !== 'other' || !scenario.isOursAlone);
    return Array.from({ length: plan.rounds }, (_, round) => round).flatMap((round) =>
      // The services alternate in being first.
      (round % 2 === 0 ? services : services.toReversed()).map((service) => ({
        scenario,
        service,
        round,
      })),
    );
  });
  let done = 0;
  for (const { scenario, service, round } of runs) {
    const running = await bench.start(service, scenario);
    try {
      for (const [index, ratePerSecond] of plan.rates.entries()) {
        const outcome = await bench.load(running, service, scenario, {
          ratePerSecond,
          warmUpMs: Math.min(index === 0 ? firstWarmUpMs : laterWarmUpMs, 2 * plan.measuredMs),
          measuredMs: plan.measuredMs,
        });
        const { residentBytes } = readMemory(running.pids);
        const measurement: Measurement = {
          scenario: scenario.name,
          service: service.name,
          round,
          ratePerSecond,
          residentBytes,
          ...toFigures(outcome),
        };
        done++;
        onMeasured(measurement, done, runs.length * plan.rates.length);
      }
    } finally {
      await running.stop();
    }
  }
}

function toFigures(
  outcome: LoadOutcome,
): Omit<Measurement, 'scenario' | 'service' | 'round' | 'ratePerSecond' | 'residentBytes'> {
  const lagUs = outcome.sendLagUs?.p99;
  const problems = Object.entries(outcome.failures).map(([kind, count]) => `${kind}: ${count}`);
  if (outcome.answered === 0) problems.push('no answers in the measured time');
  if (outcome.unsent > 0) problems.push('the rate was not reached');
  else if (lagUs !== undefined && lagUs > sendLagLimitUs) problems.push('sent late');
  return {
    decisionsPerSecond: outcome.answered / outcome.seconds,
    cpuPerDecisionUs: outcome.serviceCpuUs / outcome.answered,
    p99Us: outcome.latencyUs.p99,
    p999Us: outcome.latencyUs.p999,
    sendLagP99Us: lagUs,
    storeCommands: outcome.storeCommands,
    problems,
  };
}
