// What the connections of one generator have seen together.
import { createHistogram, type Histogram } from './histogram.ts';

export interface Tally {
  /** Valid answers since the start, the warm-up's included. */
  answered: number;
  /** Of requests begun in the measured time, in microseconds. */
  readonly latency: Histogram;
  /** How late they were written in an open loop. */
  readonly sendLag: Histogram;
  /** Requests that failed, in the whole run, by kind. */
  readonly failures: Map<string, number>;
}

export function createTally(): Tally {
  return {
    answered: 0,
    latency: createHistogram(),
    sendLag: createHistogram(),
    failures: new Map(),
  };
}

export function addFailure(tally: Tally, kind: string): void {
  tally.failures.set(kind, (tally.failures.get(kind) ?? 0) + 1);
}
