// Remembers which counters are over their limit until their window ends, so that the store is not asked
// again (behaviour: over-limit-cache).
import type { Clock } from '../../shared/clock.ts';
import { AgedEntry, OldestFirst } from '../../shared/oldest-first.ts';
import { owned } from '../../shared/owned-text.ts';
import type { Metrics } from '../metrics.ts';

/** The limit that a counter is over. A limit of a rule has both numbers, and so has one of a request. */
export interface KnownLimit {
  readonly requestsPerUnit: number;
  /** The most hits at once: `burst` of a bucket, else the same number. */
  readonly capacity: number;
}

/** Counters are identified by `Hit.mapKey`, times are on the monotonic clock. */
export interface OverLimitCache {
  /** Until when this counter is over this limit; 0 where that is not known. */
  find(mapKey: string, requestsPerUnit: number, capacity: number, nowMs: number): number;
  /** How often `remove` was called. */
  readonly removals: number;
  /** `removalsBefore`: `removals` at the start of the decision. A key that was removed since is not added:
   * the counter may have been over its limit only before that. Nor is any key where a removal since is no longer
   * remembered. */
  add(mapKey: string, limit: KnownLimit, untilMs: number, removalsBefore: number): void;
  /** A refund brought the counter back within its limit (behaviour: refunds). */
  remove(mapKey: string): void;
}

/** The reference's cache never uses less; smaller settings keep working as they did there. */
export const leastBytes = 512 * 1024;
/** V8's overhead of a map entry, the entry itself and a string header, rounded up. */
export const bytesPerEntry = 176;
/** How many removed keys are remembered, for decisions that wait for an answer. */
const removedKeysMax = 10_000;
/** Entries that are inspected whenever one is added: what has expired is gone before as many again are there. */
const inspectedPerAddition = 2;

class Known extends AgedEntry<Known> {
  readonly requestsPerUnit: number;
  readonly capacity: number;
  readonly untilMs: number;

  constructor(key: string, { requestsPerUnit, capacity }: KnownLimit, untilMs: number) {
    super(owned(key));
    this.requestsPerUnit = requestsPerUnit;
    this.capacity = capacity;
    this.untilMs = untilMs;
  }
}

class Removed extends AgedEntry<Removed> {
  /** The value of `removals` after the last removal of the key. */
  readonly at: number;

  constructor(key: string, at: number) {
    super(owned(key));
    this.at = at;
  }
}

/** Undefined where `sizeInBytes` is 0: then there is none. At the size limit, which counts removed keys too, the oldest
 * keys are dropped first. */
export function createOverLimitCache(
  sizeInBytes: number,
  metrics: Metrics,
  clock: Clock,
): OverLimitCache | undefined {
  if (sizeInBytes === 0) return undefined;
  const bytesMax = Math.max(sizeInBytes, leastBytes);
  const known = new OldestFirst<Known>();
  const removed = new OldestFirst<Removed>();
  /** Of both. */
  let bytes = 0;
  let removals = 0;
  /** The value of `removals` after the last removal that is no longer remembered. */
  let forgottenAt = 0;
  const counts = { hit: 0, miss: 0, expired: 0, evacuated: 0, overwritten: 0 };
  let lastLookupMs: number | undefined;

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
  /** In Unix seconds, of the last lookup: the mean over the entries would need a timestamp in each. */
  const toAccessTime = () => {
    if (known.size === 0 || lastLookupMs === undefined) return 0;
    return Math.floor((clock.wallMs() - (clock.monotonicMs() - lastLookupMs)) / 1000);
  };
  metrics.beforeReading(() => {
    gauges.entryCount.set(known.size);
    gauges.averageAccessTime.set(toAccessTime());
    gauges.hitCount.set(counts.hit);
    gauges.missCount.set(counts.miss);
    gauges.lookupCount.set(counts.hit + counts.miss);
    gauges.expiredCount.set(counts.expired);
    gauges.evacuateCount.set(counts.evacuated);
    gauges.overwriteCount.set(counts.overwritten);
  });

  // Two bytes per character, as for keys with a character outside Latin-1.
  const cost = (mapKey: string) => bytesPerEntry + 2 * mapKey.length;
  const drop = (entry: Known): void => {
    known.delete(entry);
    bytes -= cost(entry.key);
  };
  const forget = (entry: Removed): void => {
    removed.delete(entry);
    bytes -= cost(entry.key);
  };
  /** A key contains its window, so nobody asks for it after that. */
  const sweep = (nowMs: number): void => {
    for (let count = 0; count < inspectedPerAddition; count++) {
      const entry = known.inspectNext();
      if (entry === undefined || nowMs < entry.untilMs) continue;
      drop(entry);
      counts.expired++;
    }
  };
  /** Removed keys go first: they matter only to decisions under way. */
  const makeRoom = (): void => {
    while (bytes > bytesMax || removed.size > removedKeysMax) {
      const { oldest } = removed;
      if (oldest === undefined) break;
      forget(oldest);
      forgottenAt = oldest.at;
    }
    while (bytes > bytesMax && known.oldest !== undefined) {
      drop(known.oldest);
      counts.evacuated++;
    }
  };

  return {
    find(mapKey, requestsPerUnit, capacity, nowMs) {
      lastLookupMs = nowMs;
      const entry = known.get(mapKey);
      if (entry !== undefined && nowMs >= entry.untilMs) {
        drop(entry);
        counts.expired++;
      } else if (entry?.requestsPerUnit === requestsPerUnit && entry.capacity === capacity) {
        counts.hit++;
        return entry.untilMs;
      }
      counts.miss++;
      return 0;
    },
    get removals() {
      return removals;
    },
    add(mapKey, limit, untilMs, removalsBefore) {
      if (removalsBefore < (removed.get(mapKey)?.at ?? forgottenAt)) return;
      const before = known.get(mapKey);
      if (before !== undefined) {
        drop(before);
        counts.overwritten++;
      }
      sweep(clock.monotonicMs());
      known.add(new Known(mapKey, limit, untilMs));
      bytes += cost(mapKey);
      if (bytes > bytesMax) makeRoom();
    },
    remove(mapKey) {
      removals++;
      const before = known.get(mapKey);
      if (before !== undefined) drop(before);
      const removedBefore = removed.get(mapKey);
      if (removedBefore !== undefined) forget(removedBefore);
      removed.add(new Removed(mapKey, removals));
      bytes += cost(mapKey);
      makeRoom();
    },
  };
}
