// The combined results of a generator's connections.
import { createHistogram } from './histogram.ts';

export type Tally = ReturnType<typeof createTally>;

export function createTally() {
  return {
    /** Valid answers since the start, including the warm-up. */
    answered: 0,
    /** Of requests that began in the measured time, in microseconds. */
    latency: createHistogram(),
    /** How late requests were written in an open loop. */
    sendLag: createHistogram(),
    /** Failed requests in the whole run, by kind. */
    failures: new Map(),
  };
}

export function addFailure(tally: Tally, kind: string): void {
  tally.failures.set(kind, (tally.failures.get(kind) ?? 0) + 1);
}
