// All that a run of the benchmark found; what is kept as JSON.
import type { Measurement } from './grid.ts';
import type { HighestRate } from './highest-rate.ts';
import type { Machine } from './machine.ts';
import type { RoundTripMeasurement } from './round-trips.ts';
import type { Soak } from './soak.ts';

export interface BenchResults {
  readonly machine: Machine;
  /** Who ran on which processor. */
  readonly processors: string;
  /** The part of the processors' time that went to other work before the run. */
  readonly otherWork: number;
  readonly rounds: number;
  readonly measuredMs: number;
  readonly connections: number;
  readonly streams: number;
  /** The service whose CPU time the others' is a part of. */
  readonly yardstick: string;
  readonly measurements: readonly Measurement[];
  readonly roundTrips: readonly RoundTripMeasurement[];
  readonly highestRates: readonly HighestRate[];
  readonly soak: Soak | undefined;
}
