// Caches which counters are over their limit until their window ends, so that the store is not asked again (behaviour:
// over-limit-cache).
import type { Clock } from '../../shared/clock.ts';
import { owned } from '../../shared/owned-text.ts';
import type { Metrics } from '../metrics.ts';
import { AgedEntry, OldestFirst } from './oldest-first.ts';

/** The limit that a counter is over, by the two numbers that limits of rules and of requests both have. */
export interface KnownLimit {
  readonly requestsPerUnit: number;
  /** The most hits at once: `burst` of a bucket, else the same number as `requestsPerUnit`. */
  readonly capacity: number;
}

/** Counters are identified by `Hit.mapKey`, times are on the monotonic clock. */
export interface OverLimitCache {
  /** Whether this counter is cached as over this limit. */
  has(mapKey: string, requestsPerUnit: number, capacity: number, nowMs: number): boolean;
  /** Until when a cached counter is over its limit. */
  until(mapKey: string): number;
  /** The number of calls of `remove`. */
  readonly removals: number;
  /**
   * `removalsBefore` is `removals` at the start of the decision. A key that was removed since is not added: the counter
   * may have been over its limit only before the removal. Nor is any key added if a removal since then is no longer
   * stored.
   */
  add(mapKey: string, limit: KnownLimit, untilMs: number, removalsBefore: number): void;
  /** Call it when a refund brought the counter back within its limit (behaviour: refunds). */
  remove(mapKey: string): void;
}

/** The reference's cache never uses less; smaller settings continue to work as they do there. */
export const leastBytes = 512 * 1024;
/** V8's overhead of a map entry, the entry itself and a string header, rounded up. */
export const bytesPerEntry = 176;
/** How many removed keys are stored, for decisions that wait for an answer. */
const removedKeysMax = 10_000;
/** Entries that are inspected whenever one is added: expired ones are removed before the same number is added again. */
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

/** Undefined when `sizeInBytes` is 0: there is then no cache. */
export function createOverLimitCache(
  sizeInBytes: number,
  metrics: Metrics,
  clock: Clock,
): OverLimitCache | undefined {
  if (sizeInBytes === 0) return undefined;
  return new BoundedCache(Math.max(sizeInBytes, leastBytes), metrics, clock);
}

/** When the size limit, which includes removed keys, is reached, the oldest keys are dropped first. */
class BoundedCache implements OverLimitCache {
  readonly #bytesMax: number;
  readonly #clock: Clock;
  readonly #known = new OldestFirst<Known>();
  readonly #removed = new OldestFirst<Removed>();
  /** The bytes of entries and removed keys. */
  #bytes = 0;
  removals = 0;
  /** The value of `removals` after the newest removal that is no longer stored. */
  #forgottenAt = 0;
  readonly #counts = { hit: 0, miss: 0, expired: 0, evacuated: 0, overwritten: 0 };
  #lastLookupMs = Number.NaN;

  constructor(bytesMax: number, metrics: Metrics, clock: Clock) {
    this.#bytesMax = bytesMax;
    this.#clock = clock;
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
      const { hit, miss, expired, evacuated, overwritten } = this.#counts;
      gauges.entryCount.set(this.#known.size);
      gauges.averageAccessTime.set(this.#toAccessTime());
      gauges.hitCount.set(hit);
      gauges.missCount.set(miss);
      gauges.lookupCount.set(hit + miss);
      gauges.expiredCount.set(expired);
      gauges.evacuateCount.set(evacuated);
      gauges.overwriteCount.set(overwritten);
    });
  }

  has(mapKey: string, requestsPerUnit: number, capacity: number, nowMs: number): boolean {
    this.#lastLookupMs = nowMs;
    const entry = this.#known.get(mapKey);
    if (entry !== undefined && nowMs >= entry.untilMs) {
      this.#drop(entry);
      this.#counts.expired++;
    } else if (entry?.requestsPerUnit === requestsPerUnit && entry.capacity === capacity) {
      this.#counts.hit++;
      return true;
    }
    this.#counts.miss++;
    return false;
  }

  until(mapKey: string): number {
    return this.#known.get(mapKey)?.untilMs ?? 0;
  }

  add(mapKey: string, limit: KnownLimit, untilMs: number, removalsBefore: number): void {
    if (removalsBefore < (this.#removed.get(mapKey)?.at ?? this.#forgottenAt)) return;
    const before = this.#known.get(mapKey);
    if (before !== undefined) {
      this.#drop(before);
      this.#counts.overwritten++;
    }
    this.#sweep(this.#clock.monotonicMs());
    this.#known.add(new Known(mapKey, limit, untilMs));
    this.#bytes += cost(mapKey);
    if (this.#bytes > this.#bytesMax) this.#makeRoom();
  }

  remove(mapKey: string): void {
    this.removals++;
    const before = this.#known.get(mapKey);
    if (before !== undefined) this.#drop(before);
    const removedBefore = this.#removed.get(mapKey);
    if (removedBefore !== undefined) this.#forget(removedBefore);
    this.#removed.add(new Removed(mapKey, this.removals));
    this.#bytes += cost(mapKey);
    this.#makeRoom();
  }

  /** The time of the last lookup, in Unix seconds: the mean over the entries would need a timestamp in each. */
  #toAccessTime(): number {
    if (this.#known.size === 0 || Number.isNaN(this.#lastLookupMs)) return 0;
    const agoMs = this.#clock.monotonicMs() - this.#lastLookupMs;
    return Math.floor((this.#clock.wallMs() - agoMs) / 1000);
  }

  #drop(entry: Known): void {
    this.#known.delete(entry);
    this.#bytes -= cost(entry.key);
  }

  #forget(entry: Removed): void {
    this.#removed.delete(entry);
    this.#bytes -= cost(entry.key);
  }

  /** A key contains its window, so no request has it after the window's end. */
  #sweep(nowMs: number): void {
    for (let count = 0; count < inspectedPerAddition; count++) {
      const entry = this.#known.inspectNext();
      if (entry === undefined || nowMs < entry.untilMs) continue;
      this.#drop(entry);
      this.#counts.expired++;
    }
  }

  /** Removed keys are dropped first: they only matter to decisions in progress. */
  #makeRoom(): void {
    while (this.#bytes > this.#bytesMax || this.#removed.size > removedKeysMax) {
      const { oldest } = this.#removed;
      if (oldest === undefined) break;
      this.#forget(oldest);
      this.#forgottenAt = oldest.at;
    }
    while (this.#bytes > this.#bytesMax && this.#known.oldest !== undefined) {
      this.#drop(this.#known.oldest);
      this.#counts.evacuated++;
    }
  }
}

/** Two bytes per character, as for keys with a character outside Latin-1. */
function cost(mapKey: string): number {
  return bytesPerEntry + 2 * mapKey.length;
}
