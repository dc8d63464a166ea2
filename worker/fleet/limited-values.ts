// Finds the values that are limited most: counts requests answered OVER_LIMIT, and the descriptors that
// caused it, in periods of about a minute. Other requests cost nothing.

import type { Clock } from '../../shared/clock.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import { codes } from '../decision/message.ts';
import type { OverLimitObserver } from '../decision/over-limit-observer.ts';
import { type Counted, SpaceSaving } from './space-saving.ts';

/** A limited descriptor, with copies of its texts. */
export interface LimitedDescriptor {
  readonly domain: string;
  readonly metricKey: string;
  readonly metricKeyIsStatic: boolean;
  readonly entries: readonly Entry[];
}

/** Counts of another process of the worker since the last call. */
export interface LimitedShare {
  readonly requests: number;
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
  /** Everything since the last call, for the primary. */
  takeShare(): LimitedShare;
  /** Adds the counts of another process. */
  addShare(share: LimitedShare): void;
}

const size = 1_000;
const periodMs = 60_000;
/** Values in a report. */
const mostTold = 100;
/** Values that a process sends to the primary each second. */
const mostShared = 200;
const maxEntries = 16;
const maxLength = 128;

/** `keepsValues` false: only requests are counted. */
export function createLimitedValues(clock: Clock, keepsValues: boolean): LimitedValues {
  const sketch = new SpaceSaving<LimitedDescriptor>(size);
  let requests = 0;
  let sharedRequests = 0;
  let startMs = clock.wallMs();
  let startMonotonicMs = clock.monotonicMs();
  /** How often a value may have been counted by other processes that did not list it. */
  let missed = 0;

  function read(most: number): Omit<LimitedPeriod, 'startMs' | 'seconds'> {
    const values = sketch.top(most + 1);
    // The first omitted one bounds all others.
    const left = values.length > most ? (values.pop()?.count ?? 0) : 0;
    return { values, unlistedAtMost: Math.max(left, sketch.least) };
  }

  return {
    get requests() {
      return requests;
    },
    overLimit(request, limited, statuses) {
      requests++;
      if (!keepsValues) return;
      let last = -1;
      for (const { descriptorIndex, match } of limited) {
        // The limits of a list are consecutive, and have one status.
        if (descriptorIndex === last || statuses[descriptorIndex]?.code !== codes.overLimit)
          continue;
        last = descriptorIndex;
        const entries = request.descriptors[descriptorIndex]?.entries ?? [];
        const key = toKey(match.metricKey, entries);
        if (sketch.count(key)) continue;
        const { metricKey, metricKeyIsStatic } = match;
        sketch.insert(key, {
          domain: copy(request.domain),
          metricKey: metricKeyIsStatic ? metricKey : copy(metricKey),
          metricKeyIsStatic,
          entries: entries.slice(0, maxEntries).map(copyEntry),
        });
      }
    },
    takePeriod() {
      const passedMs = clock.monotonicMs() - startMonotonicMs;
      const { values, unlistedAtMost } = read(mostTold);
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
        startMs = clock.wallMs();
        startMonotonicMs = clock.monotonicMs();
      }
      return period;
    },
    takeShare() {
      const share = { requests: requests - sharedRequests, ...read(mostShared) };
      sharedRequests = requests;
      sketch.clear();
      return share;
    },
    addShare(share) {
      requests += share.requests;
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

/** The keys of the entries nearly always follow from the rule; the values differ. */
function toKey(metricKey: string, entries: readonly Entry[]): string {
  let key = metricKey;
  for (let index = 0; index < entries.length && index < maxEntries; index++) {
    const value = entries[index]?.value ?? '';
    key += `\n${value.length > maxLength ? value.slice(0, maxLength) : value}`;
  }
  return key;
}

function copyEntry({ key, value }: Entry): Entry {
  return { key: copy(key), value: copy(value) };
}

/** Copied through bytes, because a substring keeps the whole string in memory. */
function copy(text: string): string {
  return Buffer.from(
    text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text,
  ).toString();
}
