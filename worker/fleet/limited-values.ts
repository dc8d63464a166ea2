// Counts failed requests by domain, and finds the values that are limited most: counts requests answered OVER_LIMIT, and the descriptors that
// caused it, in periods of about a minute. Other requests cost nothing. Beyond so many a second only
// samples are counted, each for several, so that a flood costs no more.

import type { Clock } from '../../shared/clock.ts';
import { owned } from '../../shared/owned-text.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import { toMapKey } from '../counters/store.ts';
import type { RuleHit } from '../decision/hit.ts';
import { codes, type DescriptorStatus, type RateLimitRequest } from '../decision/message.ts';
import type { OverLimitObserver } from '../decision/should-rate-limit.ts';
import { type Counted, SpaceSaving } from './space-saving.ts';

/** A limited descriptor, its texts cut. */
export interface LimitedDescriptor {
  readonly domain: string;
  readonly metricKey: string;
  readonly metricKeyIsStatic: boolean;
  readonly entries: readonly Entry[];
}

/** Counts of another process of the worker since the last call. */
export interface LimitedShare {
  readonly requests: number;
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

export interface LimitedValues extends OverLimitObserver {
  /** Requests answered OVER_LIMIT since the start. */
  readonly requests: number;
  /** The current period. A finished one is reported once more, and the next one begins. */
  takePeriod(): LimitedPeriod;
  /** Failed requests since the last call, by domain, of the first 100. */
  takeFailures(): ReadonlyMap<string, number>;
  /** Everything since the last call, for the primary. */
  takeShare(): LimitedShare;
  /** Adds the counts of another process. */
  addShare(share: LimitedShare): void;
}

export const size = 1_000;
export const periodMs = 60_000;
/** Values in a report. */
export const maxReported = 50;
/** Requests of a second that are counted one by one; then so many samples, each for a few requests; all further
 * samples are for many. */
const singlesPerSecond = 1_000;
const fewPerSecond = 1_000;
const few = 8;
const many = 128;
/** How far a count by samples may be off, in standard deviations: further once in 10,000 times. */
const deviations = 4;
/** A value that would have had more samples than this has one, but for once in 10,000 times. */
const samplesMissed = 10;
/** Values that a process sends to the primary each second. */
const mostShared = 200;
/** In which requests fail, between two reports. */
const maxDomains = 100;
const maxEntries = 16;
const maxLength = 128;

/** `keepsValues` false: only requests are counted. */
export function createLimitedValues(
  clock: Clock,
  keepsValues: boolean,
  random = Math.random,
): LimitedValues {
  const sketch = new SpaceSaving<LimitedDescriptor>(size);
  let requests = 0;
  let sharedRequests = 0;
  let failures = new Map<string, number>();
  let startMs = clock.wallMs();
  let startMonotonicMs = clock.monotonicMs();
  /** How often a value may have been counted by other processes that did not list it. */
  let missed = 0;
  let second = 0;
  let countedThisSecond = 0;
  /** How many requests the next one that is counted stands for, and how many are passed over before it. */
  let weight = 1;
  let skip = 0;
  /** The largest weight in this period. */
  let largestWeight = 1;

  function read(most: number): Omit<LimitedPeriod, 'startMs' | 'seconds'> {
    const values = sketch.top(most + 1);
    // The first omitted one bounds all others.
    const left = values.length > most ? (values.pop()?.count ?? 0) : 0;
    const unlisted = Math.max(left, sketch.least);
    const unsampled =
      largestWeight === 1
        ? 0
        : samplesMissed * largestWeight +
          Math.ceil(deviations * Math.sqrt(unlisted * largestWeight));
    return { values: values.map(widen), unlistedAtMost: unlisted + unsampled };
  }

  /** Counts this request, and returns how many of the next ones are skipped. */
  function sample(
    request: RateLimitRequest,
    limited: readonly RuleHit[],
    statuses: readonly DescriptorStatus[],
    nowSeconds: number,
  ): void {
    if (!keepsValues) return;
    countLimited(request, limited, statuses);
    if (weight > largestWeight) largestWeight = weight;
    if (nowSeconds !== second) {
      second = nowSeconds;
      countedThisSecond = 0;
    }
    countedThisSecond++;
    weight = weightAfter(countedThisSecond);
    if (weight === 1) return;
    // Each with the same chance, not every 128th: requests may come in a pattern.
    skip = Math.floor(Math.log(1 - random()) / Math.log(1 - 1 / weight));
  }

  function countLimited(
    { domain, descriptors }: RateLimitRequest,
    limited: readonly RuleHit[],
    statuses: readonly DescriptorStatus[],
  ): void {
    const variance = weight * (weight - 1);
    let last = -1;
    for (const { descriptorIndex, match } of limited) {
      // The limits of a list are consecutive, and have one status.
      if (descriptorIndex === last || statuses[descriptorIndex]?.code !== codes.overLimit) continue;
      last = descriptorIndex;
      const entries = descriptors[descriptorIndex]?.entries ?? [];
      const key = toKey(match.metricKey, entries);
      if (sketch.count(key, weight, 0, variance)) continue;
      const { metricKey, metricKeyIsStatic } = match;
      const item = {
        domain: cut(domain),
        metricKey: metricKeyIsStatic ? metricKey : cut(metricKey),
        metricKeyIsStatic,
        entries: entries.slice(0, maxEntries).map(cutEntry),
      };
      sketch.insert(owned(key), item, weight, 0, variance);
    }
  }

  function addFailures(domain: string, count: number): void {
    const name = domain.length > maxLength ? cut(domain) : domain;
    const known = failures.get(name);
    if (known !== undefined) failures.set(name, known + count);
    else if (failures.size < maxDomains) failures.set(owned(name), count);
  }

  function takeFailures(): ReadonlyMap<string, number> {
    const taken = failures;
    failures = new Map();
    return taken;
  }

  return {
    get requests() {
      return requests;
    },
    overLimit(request, limited, statuses, nowSeconds) {
      requests++;
      // All that a flood pays for most requests.
      if (skip > 0) skip--;
      else sample(request, limited, statuses, nowSeconds);
    },
    failed: (domain) => addFailures(domain, 1),
    takeFailures,
    takePeriod() {
      const passedMs = clock.monotonicMs() - startMonotonicMs;
      const { values, unlistedAtMost } = read(maxReported);
      const period = {
        startMs,
        seconds: passedMs / 1000,
        values: values.map((value) => ({
          ...value,
          count: value.count + missed,
          error: value.error + missed,
        })),
        unlistedAtMost: unlistedAtMost + missed,
      };
      if (passedMs >= periodMs) {
        sketch.clear();
        missed = 0;
        largestWeight = 1;
        startMs = clock.wallMs();
        startMonotonicMs = clock.monotonicMs();
      }
      return period;
    },
    takeShare() {
      const share = {
        requests: requests - sharedRequests,
        failures: takeFailures(),
        ...read(mostShared),
      };
      sharedRequests = requests;
      sketch.clear();
      largestWeight = 1;
      return share;
    },
    addShare(share) {
      requests += share.requests;
      for (const [domain, count] of share.failures) addFailures(domain, count);
      missed += share.unlistedAtMost;
      for (const { key, item, count, error } of share.values) {
        // `missed` includes it already, as for all.
        const known = Math.min(count, share.unlistedAtMost);
        const [more, unsure] = [count - known, Math.max(0, error - known)];
        if (more > 0 && !sketch.count(key, more, unsure)) sketch.insert(key, item, more, unsure);
      }
    },
  };
}

function weightAfter(counted: number): number {
  if (counted <= singlesPerSecond) return 1;
  return counted <= singlesPerSecond + fewPerSecond ? few : many;
}

/** The keys of the entries nearly always follow from the rule; the values differ. The metric key may contain
 * a value, too. */
function toKey(metricKey: string, entries: readonly Entry[]): string {
  let key = metricKey;
  for (let index = 0; index < entries.length && index < maxEntries; index++) {
    const value = entries[index]?.value ?? '';
    key += `\n${value.length > maxLength ? value.slice(0, maxLength) : value}`;
  }
  return toMapKey(key);
}

/** A count by samples has the bounds of its deviation. */
function widen<Item>(counted: Counted<Item>): Counted<Item> {
  if (counted.variance === 0) return counted;
  const off = Math.ceil(deviations * Math.sqrt(counted.variance));
  const count = counted.count + off;
  return { ...counted, count, error: Math.min(count, counted.error + 2 * off), variance: 0 };
}

function cutEntry({ key, value }: Entry): Entry {
  return { key: cut(key), value: cut(value) };
}

function cut(text: string): string {
  return owned(text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text);
}
