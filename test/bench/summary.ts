// Reduces the measurements of all rounds to one row for each scenario, load and service.
import type { Measurement } from './grid.ts';
import { median, medianRatio, spread } from './statistics.ts';

export interface SummaryRow {
  readonly scenario: string;
  readonly service: string;
  readonly ratePerSecond: number | undefined;
  readonly decisionsPerSecond: number;
  readonly cpuPerDecisionUs: number;
  /** Half the range over the rounds, relative to the median. */
  readonly cpuSpread: number;
  /** CPU time relative to the yardstick's in the same round; undefined for the yardstick. */
  readonly cpuRatio: number | undefined;
  readonly p99Us: number;
  readonly p999Us: number;
  readonly sendLagP99Us: number | undefined;
  readonly residentBytes: number;
  readonly storeCommands: { readonly firstHalf: number; readonly secondHalf: number };
  readonly problems: readonly string[];
}

export function summarize(
  measurements: readonly Measurement[],
  yardstick: string,
): readonly SummaryRow[] {
  const groups = Map.groupBy(measurements, (one) =>
    JSON.stringify([one.scenario, one.ratePerSecond ?? 'saturation', one.service]),
  );
  const rows: SummaryRow[] = [];
  for (const group of groups.values()) {
    const [first] = group;
    if (first === undefined) continue;
    const { scenario, service, ratePerSecond } = first;
    const bases = measurements.filter(
      (one) =>
        one.scenario === scenario &&
        one.ratePerSecond === ratePerSecond &&
        one.service === yardstick &&
        one.decisionsPerSecond > 0,
    );
    // Without answers there are no figures, only the problem.
    const answered = group.filter((one) => one.decisionsPerSecond > 0);
    const medianOf = (pick: (one: Measurement) => number) => median(answered.map(pick));
    rows.push({
      scenario,
      service,
      ratePerSecond,
      decisionsPerSecond: medianOf((one) => one.decisionsPerSecond),
      cpuPerDecisionUs: medianOf((one) => one.cpuPerDecisionUs),
      cpuSpread: spread(answered.map((one) => one.cpuPerDecisionUs)),
      cpuRatio:
        service === yardstick ? undefined : medianRatio(cpuByRound(answered), cpuByRound(bases)),
      p99Us: medianOf((one) => one.p99Us),
      p999Us: medianOf((one) => one.p999Us),
      sendLagP99Us:
        ratePerSecond === undefined ? undefined : medianOf((one) => one.sendLagP99Us ?? Number.NaN),
      residentBytes: medianOf((one) => one.residentBytes),
      storeCommands: {
        firstHalf: medianOf((one) => one.storeCommands.firstHalf),
        secondHalf: medianOf((one) => one.storeCommands.secondHalf),
      },
      problems: [...new Set(group.flatMap((one) => one.problems))],
    });
  }
  return rows;
}

function cpuByRound(measurements: readonly Measurement[]): ReadonlyMap<number, number> {
  return new Map(measurements.map((one) => [one.round, one.cpuPerDecisionUs]));
}
