// All results of a benchmark run, which are stored as JSON.
import type { Measurement } from './grid.ts';
import type { HighestRate } from './highest-rate.ts';
import type { Machine } from './machine.ts';
import type { RoundTripMeasurement } from './round-trips.ts';
import type { Soak } from './soak.ts';

export interface BenchResults {
  readonly machine: Machine;
  /** Which program ran on which processor. */
  readonly processors: string;
  /** The share of the processors' time that other work took before the run. */
  readonly otherWork: number;
  readonly rounds: number;
  readonly measuredMs: number;
  readonly connections: number;
  readonly streams: number;
  /** The service whose CPU time the ratios refer to. */
  readonly yardstick: string;
  readonly measurements: readonly Measurement[];
  readonly roundTrips: readonly RoundTripMeasurement[];
  readonly highestRates: readonly HighestRate[];
  readonly soak: Soak | undefined;
}
