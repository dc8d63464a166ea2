// Counts as documented (behaviour: judging-hits, refunds), one request after another, in plain exact arithmetic: the
// model that counter stores are compared with.
import type { CountMode } from '../../worker/counters/store.ts';
import type { HitOptions } from './counting.ts';

export type CounterModel = ReturnType<typeof createCounterModel>;

const largest = 2n ** 63n - 1n;

export function createCounterModel() {
  const counters = new Map<string, bigint>();

  function change(hit: HitOptions, isStill: boolean): bigint | undefined {
    const current = counters.get(hit.key);
    const amount = BigInt(hit.hits ?? 1);
    if (hit.refund) {
      if (current === undefined) return 0n;
      counters.set(hit.key, current > amount ? current - amount : 0n);
    } else {
      const sum = (current ?? 0n) + (isStill ? 0n : amount);
      if (sum > largest) return undefined;
      counters.set(hit.key, sum);
    }
    return counters.get(hit.key);
  }

  return {
    /** The counters after the hits; 2^63 for those that did not fit. */
    count(mode: CountMode, hits: readonly HitOptions[]) {
      const overs = hits.map(
        ({ key, hits: amount, refund, limit }) =>
          !refund && (counters.get(key) ?? 0n) + BigInt(amount ?? 1) > BigInt(limit ?? 0),
      );
      const isStopped = mode === 'add-unless-over' && overs.includes(true);
      return hits.map(
        (hit, index) =>
          change(hit, mode === 'peek' || (isStopped && !overs[index])) ?? largest + 1n,
      );
    },
    read: (key: string) => counters.get(key),
  };
}
