// Remembers which counters are over their limit until their window ends, so that the store is not asked
// again (behaviour: over-limit-cache).
import type { Metrics } from '../metrics.ts';

/** Counters are known by `Hit.mapKey`. */
export interface OverLimitCache {
  /** Whether this counter is known to be over its limit. */
  has(mapKey: string, nowSeconds: number): boolean;
  /** Expiry of a cached key in Unix seconds; else 0. */
  until(mapKey: string): number;
  /** How often `remove` was called. */
  readonly removals: number;
  /** `removalsBefore`: `removals` at the start of the decision. A key that was removed since is not added:
   * the counter may have been over its limit only before that. Nor is any key where a removal since is no longer
   * remembered. */
  add(mapKey: string, untilSeconds: number, removalsBefore: number): void;
  /** A refund brought the counter back within its limit (behaviour: refunds). */
  remove(mapKey: string): void;
}

/** The reference's cache never uses less; smaller settings keep working as they did there. */
export const leastBytes = 512 * 1024;
/** V8's overhead of a map entry and a string header, rounded up. */
const bytesPerEntry = 96;
/** How many removed keys are remembered, for decisions that wait for an answer. */
const removedKeysMax = 10_000;

/** Undefined where `sizeInBytes` is 0: then there is none. At the size limit, which counts removed keys too, the oldest keys are dropped
 * first. */
export function createOverLimitCache(
  sizeInBytes: number,
  metrics: Metrics,
): OverLimitCache | undefined {
  if (sizeInBytes === 0) return undefined;
  const bytesMax = Math.max(sizeInBytes, leastBytes);
  const untilByKey = new Map<string, number>();
  /** The bytes of both maps. */
  let bytes = 0;
  let removals = 0;
  /** The value of `removals` after the last removal of each key; the oldest first. */
  const removedAt = new Map<string, number>();
  /** The value of `removals` after the last removal that is no longer remembered. */
  let forgottenAt = 0;
  const counts = { hit: 0, miss: 0, expired: 0, evacuated: 0, overwritten: 0 };
  let lastLookupSeconds = 0;

  const gauge = (name: string) => metrics.gauge(`ratelimit.localcache.${name}`);
  const gauges = {
    entryCount: gauge('entryCount'),
    averageAccessTime: gauge('averageAccessTime'),
    hitCount: gauge('hitCount'),
    missCount: gauge('missCount'),
    lookupCount: gauge('lookupCount'),
    expiredCount: gauge('expiredCount'),
    evacuateCount: gauge('evacuateCount'),
    overwriteCount: gauge('overwriteCount'),
  };
  metrics.beforeReading(() => {
    gauges.entryCount.set(untilByKey.size);
    // In place of the mean over the entries, which would need a timestamp in each.
    gauges.averageAccessTime.set(untilByKey.size === 0 ? 0 : lastLookupSeconds);
    gauges.hitCount.set(counts.hit);
    gauges.missCount.set(counts.miss);
    gauges.lookupCount.set(counts.hit + counts.miss);
    gauges.expiredCount.set(counts.expired);
    gauges.evacuateCount.set(counts.evacuated);
    gauges.overwriteCount.set(counts.overwritten);
  });

  // Two bytes per character, as for keys with a character outside Latin-1.
  const cost = (mapKey: string) => bytesPerEntry + 2 * mapKey.length;
  const drop = (mapKey: string): boolean => {
    const dropped = untilByKey.delete(mapKey);
    if (dropped) bytes -= cost(mapKey);
    return dropped;
  };
  const forget = (mapKey: string): void => {
    if (removedAt.delete(mapKey)) bytes -= cost(mapKey);
  };
  /** Removed keys go first: they matter only to decisions under way. */
  const makeRoom = (): void => {
    for (const [oldest, removal] of removedAt) {
      if (bytes <= bytesMax && removedAt.size <= removedKeysMax) break;
      forget(oldest);
      forgottenAt = removal;
    }
    for (const [oldest] of untilByKey) {
      if (bytes <= bytesMax) break;
      drop(oldest);
      counts.evacuated++;
    }
  };

  return {
    has(mapKey, nowSeconds) {
      lastLookupSeconds = nowSeconds;
      const until = untilByKey.get(mapKey);
      if (until !== undefined && nowSeconds < until) {
        counts.hit++;
        return true;
      }
      if (until !== undefined) {
        drop(mapKey);
        counts.expired++;
      }
      counts.miss++;
      return false;
    },
    until: (mapKey) => untilByKey.get(mapKey) ?? 0,
    get removals() {
      return removals;
    },
    add(mapKey, untilSeconds, removalsBefore) {
      if (removalsBefore < (removedAt.get(mapKey) ?? forgottenAt)) return;
      if (drop(mapKey)) counts.overwritten++;
      untilByKey.set(mapKey, untilSeconds);
      bytes += cost(mapKey);
      if (bytes > bytesMax) makeRoom();
    },
    remove(mapKey) {
      removals++;
      drop(mapKey);
      forget(mapKey);
      removedAt.set(mapKey, removals);
      bytes += cost(mapKey);
      makeRoom();
    },
  };
}
