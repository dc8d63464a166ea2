// What the connections of one generator have seen together.
import { createHistogram } from './histogram.ts';

export type Tally = ReturnType<typeof createTally>;

export function createTally() {
  return {
    /** Valid answers since the start, the warm-up's included. */
    answered: 0,
    /** Of requests begun in the measured time, in microseconds. */
    latency: createHistogram(),
    /** How late they were written in an open loop. */
    sendLag: createHistogram(),
    /** Requests that failed, in the whole run, by kind. */
    failures: new Map(),
  };
}

export function addFailure(tally: Tally, kind: string): void {
  tally.failures.set(kind, (tally.failures.get(kind) ?? 0) + 1);
}
