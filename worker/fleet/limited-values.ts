// Counts failed requests by domain, and finds the values that are limited most: counts requests answered OVER_LIMIT,
// and the descriptors that caused it, in periods of about a minute. Other requests cost nothing; in a flood only
// samples are counted (sampling.ts), and only the values with the highest counts have one (space-saving.ts). So each
// count is a highest possible one with an error, and `unlistedAtMost` is the highest possible one of any other value.
//
// If several processes decide for the worker, each sends its counts to the primary (`drainShare`, `addShare`), which
// reports the sum (`drainPeriod`). For example, one lists ada with 300 and 40 as `unlistedAtMost`: 40 are added to all
// values, since any may have been counted there unlisted, and the other 260 to ada.

import type { Clock } from '../../shared/clock.ts';
import { owned } from '../../shared/owned-text.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import { toMapKey } from '../counters/store.ts';
import type { RuleHit } from '../decision/hit.ts';
import { codes, type DescriptorStatus, type RateLimitRequest } from '../decision/message.ts';
import type { OverLimitObserver } from '../decision/should-rate-limit.ts';
import { deviationOf, Sampling } from './sampling.ts';
import { type Counted, SpaceSaving } from './space-saving.ts';

/** A limited descriptor; its texts are cut. */
export interface LimitedDescriptor {
  readonly domain: string;
  readonly metricKey: string;
  readonly metricKeyIsStatic: boolean;
  readonly entries: readonly Entry[];
}

/** The counts of another process of the worker since the last call. */
export interface LimitedShare {
  readonly requests: number;
  /** Failed requests by domain. */
  readonly failures: ReadonlyMap<string, number>;
  readonly values: readonly Counted<LimitedDescriptor>[];
  readonly unlistedAtMost: number;
}

export interface LimitedPeriod {
  /** Wall time in milliseconds. */
  readonly startMs: number;
  readonly seconds: number;
  readonly values: readonly Counted<LimitedDescriptor>[];
  readonly unlistedAtMost: number;
}

/** The most values with a count. */
export const size = 1_000;
export const periodMs = 60_000;
/** The most values in a report. */
export const maxReported = 50;
/** The most values that a process sends to the primary each second. */
const mostShared = 200;
/** The most domains whose failed requests are counted between two reports. */
const maxDomains = 100;
/** What is stored of a value: its first entries, and the start of each text. */
const maxEntries = 16;
const maxLength = 128;

/** With `storesValues` false only requests are counted. */
export class LimitedValues implements OverLimitObserver {
  readonly #clock: Clock;
  readonly #storesValues;
  readonly #sketch = new SpaceSaving<LimitedDescriptor>(size);
  readonly #sampling;
  /** Requests answered OVER_LIMIT since the start, and how many of them the primary has. */
  #requests = 0;
  #sharedRequests = 0;
  #failures = new Map<string, number>();
  /** The start of the period. */
  #startMs;
  #startMonotonicMs;
  /** The most requests of one value that other processes may have counted in the period without listing the value. */
  #missed = 0;

  constructor(clock: Clock, storesValues: boolean, random = Math.random) {
    this.#clock = clock;
    this.#storesValues = storesValues;
    this.#sampling = new Sampling(random);
    this.#startMs = clock.wallMs();
    this.#startMonotonicMs = clock.monotonicMs();
  }

  /** Requests answered OVER_LIMIT since the start. */
  get requests(): number {
    return this.#requests;
  }

  overLimit(
    request: RateLimitRequest,
    limited: readonly RuleHit[],
    statuses: readonly DescriptorStatus[],
    nowSeconds: number,
  ): void {
    this.#requests++;
    if (!this.#storesValues || this.#sampling.skips()) return;
    this.#countLimited(request, limited, statuses);
    this.#sampling.counted(nowSeconds);
  }

  #countLimited(
    { domain, descriptors }: RateLimitRequest,
    limited: readonly RuleHit[],
    statuses: readonly DescriptorStatus[],
  ): void {
    const { weight, variance } = this.#sampling;
    let last = -1;
    for (const { descriptorIndex, match } of limited) {
      // The limits of a list are consecutive, and share one status.
      if (descriptorIndex === last || statuses[descriptorIndex]?.code !== codes.overLimit) continue;
      last = descriptorIndex;
      const entries = descriptors[descriptorIndex]?.entries ?? [];
      const key = toKey(match.metricKey, entries);
      if (this.#sketch.count(key, weight, 0, variance)) continue;
      const { metricKey, metricKeyIsStatic } = match;
      const item = {
        domain: cut(domain),
        metricKey: metricKeyIsStatic ? metricKey : cut(metricKey),
        metricKeyIsStatic,
        entries: entries.slice(0, maxEntries).map(cutEntry),
      };
      this.#sketch.insert(owned(key), item, weight, 0, variance);
    }
  }

  failed(domain: string): void {
    this.#addFailures(domain, 1);
  }

  #addFailures(domain: string, count: number): void {
    const name = domain.length > maxLength ? cut(domain) : domain;
    const known = this.#failures.get(name);
    if (known !== undefined) this.#failures.set(name, known + count);
    else if (this.#failures.size < maxDomains) this.#failures.set(owned(name), count);
  }

  /** Failed requests since the last call, for the first 100 domains. */
  drainFailures(): ReadonlyMap<string, number> {
    const drained = this.#failures;
    this.#failures = new Map();
    return drained;
  }

  /** The current period. A finished one is reported once more, and then the next one begins. */
  drainPeriod(): LimitedPeriod {
    const passedMs = this.#clock.monotonicMs() - this.#startMonotonicMs;
    const { values, unlistedAtMost } = this.#read(maxReported);
    const period = {
      startMs: this.#startMs,
      seconds: passedMs / 1000,
      values: values.map((value) => ({
        ...value,
        count: value.count + this.#missed,
        error: value.error + this.#missed,
      })),
      unlistedAtMost: unlistedAtMost + this.#missed,
    };
    if (passedMs >= periodMs) {
      this.#sketch.clear();
      this.#missed = 0;
      this.#sampling.restart();
      this.#startMs = this.#clock.wallMs();
      this.#startMonotonicMs = this.#clock.monotonicMs();
    }
    return period;
  }

  /** Everything since the last call, for the primary. */
  drainShare(): LimitedShare {
    const share = {
      requests: this.#requests - this.#sharedRequests,
      failures: this.drainFailures(),
      ...this.#read(mostShared),
    };
    this.#sharedRequests = this.#requests;
    this.#sketch.clear();
    this.#sampling.restart();
    return share;
  }

  /** The values with the highest counts, at most `most` of them. */
  #read(most: number): Omit<LimitedPeriod, 'startMs' | 'seconds'> {
    const values = this.#sketch.top(most + 1);
    // The first omitted value bounds all others.
    const left = values.length > most ? (values.pop()?.count ?? 0) : 0;
    const unlisted = Math.max(left, this.#sketch.least);
    return {
      values: values.map(widen),
      unlistedAtMost: unlisted + this.#sampling.missedOf(unlisted),
    };
  }

  /** Adds the counts of another process. */
  addShare(share: LimitedShare): void {
    this.#requests += share.requests;
    for (const [domain, count] of share.failures) this.#addFailures(domain, count);
    this.#missed += share.unlistedAtMost;
    for (const { key, item, count, error } of share.values) {
      // `drainPeriod` adds `#missed` to the count and the error of each value: this part of both is in it already.
      const missed = Math.min(count, share.unlistedAtMost);
      const [more, unsure] = [count - missed, Math.max(0, error - missed)];
      if (more > 0 && !this.#sketch.count(key, more, unsure))
        this.#sketch.insert(key, item, more, unsure);
    }
  }
}

/**
 * The keys of the entries nearly always follow from the rule; the values differ. The metric key may contain a value as
 * well.
 */
function toKey(metricKey: string, entries: readonly Entry[]): string {
  let key = metricKey;
  for (let index = 0; index < entries.length && index < maxEntries; index++) {
    const value = entries[index]?.value ?? '';
    key += `\n${value.length > maxLength ? value.slice(0, maxLength) : value}`;
  }
  return toMapKey(key);
}

/** Adds the bounds of the deviation to a count of samples. */
function widen<Item>(counted: Counted<Item>): Counted<Item> {
  if (counted.variance === 0) return counted;
  const off = deviationOf(counted.variance);
  const count = counted.count + off;
  return { ...counted, count, error: Math.min(count, counted.error + 2 * off), variance: 0 };
}

function cutEntry({ key, value }: Entry): Entry {
  return { key: cut(key), value: cut(value) };
}

function cut(text: string): string {
  return owned(text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text);
}
