// The hits of one descriptor with a limit: on which counters, and how many on each (behaviour: counter-keys,
// over-limit-cache, limit-lists).
import { hash } from 'node:crypto';
import {
  toCounterKey,
  toKeyEnding,
  type Window,
  type WindowAt,
} from '../../shared/counting/counter-key.ts';
import { owned } from '../../shared/owned-text.ts';
import { type Limiter, windowSecondsOf } from '../../shared/rules/limit-shape.ts';
import type { Entry, Limit, Match } from '../../shared/rules/rule.ts';
import type { Unit } from '../../shared/rules/unit.ts';
import type { AnsweringMode } from '../counters/failure/failure-mode.ts';
import {
  type Hit,
  type LimiterHit,
  type LimiterWindow,
  toLimiterHit,
  toMapKey,
} from '../counters/store.ts';
import type { Metrics, RuleStats } from '../metrics.ts';
import type { DecisionTrail } from './decision-trail.ts';
import type { RateLimitRequest, RequestDescriptor } from './message.ts';
import type { OverLimitCache } from './over-limit-cache.ts';

/** The state of one descriptor between matching and answering. */
export interface RuleHit extends Hit {
  readonly match: Match;
  readonly stats: RuleStats;
  readonly window: Window;
  /** `removals` of the local cache at the start of the decision. */
  readonly removalsBefore: number;
  /**
   * Replaces the store's answer: `cache` when the local cache has the counter as over its limit, so that the store is
   * not asked; else the answer to the store's failure.
   */
  fallback: 'cache' | AnsweringMode | undefined;
}

export interface PrepareHitsDeps {
  readonly overLimitCache: OverLimitCache | undefined;
  readonly metrics: Pick<Metrics, 'ruleStats'>;
  readonly trail: DecisionTrail | undefined;
  readonly windowAt: WindowAt;
  readonly cacheKeyPrefix: string;
  /** Whether stores receive every key unchanged, however long. */
  readonly storesLongKeys: boolean;
  readonly calendarMonths: boolean;
}

/** An object, because passing a time with fractions as a number would allocate one at each call. */
export interface Arrived {
  readonly request: RateLimitRequest;
  /** On the monotonic clock. */
  readonly receivedMs: number;
}

export interface PrepareHits {
  /** The hit of the descriptor at `index` on its only limit. */
  prepare(arrived: Arrived, index: number, match: Match, nowSeconds: number): RuleHit;
  /** One hit for each limit of a list. */
  prepareList(
    arrived: Arrived,
    index: number,
    match: Match,
    parts: readonly Match[],
    nowSeconds: number,
  ): readonly RuleHit[];
}

/** The largest number that a counter can hold: hits of this number or more are over every limit. */
const maxHitsAddend = 2n ** 63n - 1n;

/** A descriptor's own number, even 0, takes precedence over the request's, where 0 means 1. */
function hitsAddend(request: RateLimitRequest, descriptor: RequestDescriptor): number | bigint {
  const addend = descriptor.hitsAddend ?? Math.max(1, request.hitsAddend);
  return addend > maxHitsAddend ? maxHitsAddend : addend;
}

export function createPrepareHits(deps: PrepareHitsDeps): PrepareHits {
  const { overLimitCache, metrics, trail, windowAt } = deps;
  const counterKeys = createCounterKeys(deps.cacheKeyPrefix);
  const limiterWindows = new WeakMap<Limiter, LimiterWindow>();

  const prepare = (
    { request, receivedMs }: Arrived,
    index: number,
    match: Match,
    nowSeconds: number,
  ): RuleHit => {
    const descriptor = request.descriptors[index] as RequestDescriptor;
    const addend = hitsAddend(request, descriptor);
    const hits = Number(addend);
    const stats = metrics.ruleStats(match.metricKey, match.metricKeyIsStatic, match.listedAs);
    // A limit that is not unlimited has a unit: the checks of rules and limit-in-request.ts ensure it.
    const unit = match.limit.unit ?? 'second';
    const { limiter, unitMultiplier } = match.limit;
    const window = windowAt(unit, unitMultiplier, nowSeconds);
    const fullKey = counterKeys.of(request.domain, descriptor, match, window);
    const mapKey = toMapKey(fullKey);
    const key =
      deps.storesLongKeys || fullKey.length <= surelyShort
        ? fullKey
        : toStoredKey(deps.cacheKeyPrefix, fullKey, mapKey);
    const refund = descriptor.isNegativeHits;
    (refund ? stats.totalNegativeHits : stats.totalHits).add(hits);
    const { requestsPerUnit } = match.limit;
    const limit = limiter === undefined ? requestsPerUnit : limiter.capacity;
    const isKnownOver =
      overLimitCache !== undefined &&
      !refund &&
      (limiter === undefined || isFound(limiter, hits)) &&
      overLimitCache.has(mapKey, requestsPerUnit, limit, receivedMs) &&
      // A refund before these hits may bring their counter back within its limit.
      (index === 0 ||
        !request.descriptors.slice(0, index).some(({ isNegativeHits }) => isNegativeHits));
    const limiterHit =
      limiter === undefined
        ? undefined
        : toLimiterHit(toLimiterWindow(limiter, { unit, unitMultiplier }, window), hits);
    if (isKnownOver) {
      trail?.knownOver(key, match);
      if (limiterHit !== undefined) {
        closeUntil(limiterHit, hits, overLimitCache.until(mapKey) - receivedMs);
      }
    }
    return {
      key,
      mapKey,
      hits,
      exactHits: typeof addend === 'bigint' ? addend : undefined,
      refund,
      limit,
      windowSeconds: window.seconds,
      unit,
      descriptorIndex: index,
      stopsOthers: 'alone',
      after: -1,
      limiter: limiterHit,
      lease: match.limit.lease,
      match,
      stats,
      window,
      removalsBefore: overLimitCache?.removals ?? 0,
      fallback: isKnownOver ? 'cache' : undefined,
    };
  };

  /** Returns the same object while the window lasts: stores cache texts by its identity. */
  const toLimiterWindow = (
    limiter: Limiter,
    { unit, unitMultiplier }: { readonly unit: Unit; readonly unitMultiplier: number },
    window: Window,
  ): LimiterWindow => {
    const known = limiterWindows.get(limiter);
    if (known?.windowStart === window.start) return known;
    // A bucket has no windows: a rate that differed by month would make a wait into a shorter month too short.
    const isBucket = limiter.algorithm === 'token_bucket';
    const isEven = isBucket || unit !== 'month' || !deps.calendarMonths;
    const limiterWindow = {
      ...limiter,
      windowStart: window.start,
      windowSeconds: isBucket ? windowSecondsOf({ unit, unitMultiplier }) : window.seconds,
      isEven,
      nextSeconds: isEven
        ? undefined
        : windowAt(unit, unitMultiplier, window.start + window.seconds).seconds,
    };
    limiterWindows.set(limiter, limiterWindow);
    return limiterWindow;
  };

  const prepareList: PrepareHits['prepareList'] = (arrived, index, match, parts, nowSeconds) => {
    const list = parts.map((part) => prepare(arrived, index, part, nowSeconds));
    const [{ hits, refund } = { hits: 0, refund: false }] = list;
    // The rule itself counts once.
    const stats = metrics.ruleStats(match.metricKey, match.metricKeyIsStatic, undefined);
    (refund ? stats.totalNegativeHits : stats.totalHits).add(hits);
    return list;
  };

  return { prepare, prepareList };
}

/** The most bytes of a counter key in a store. Callers choose how long their values are. */
const maxKeyBytes = 1_024;
/** A UTF-16 unit has at most 3 bytes. */
const surelyShort = Math.floor(maxKeyBytes / 3);

/** Never equals another counter's key: those have a `_` after the prefix. */
function toStoredKey(prefix: string, key: string, mapKey: string): string {
  if (mapKey !== key) return prefix + mapKey;
  return Buffer.byteLength(key) > maxKeyBytes ? prefix + hash('sha256', key) : key;
}

/**
 * Whether the local cache can answer for these hits. It has the time when a single hit is admitted, which is not enough
 * for more hits on a sliding window; and counted hits over the limit must reach the store.
 */
function isFound({ algorithm, countsOver }: Limiter, hits: number): boolean {
  return hits > 0 && !countsOver && (hits === 1 || algorithm === 'token_bucket');
}

/** Sets the answer to these hits on a limiter that admits a single hit after `ms` milliseconds. */
function closeUntil(limiter: LimiterHit, hits: number, ms: number): void {
  const { limit, capacity, windowSeconds } = limiter.window;
  const furtherMs = hits === 1 ? 0 : ((hits - 1) * windowSeconds * 1000) / limit;
  const seconds = Math.max(1, Math.ceil((ms + furtherMs) / 1000));
  limiter.resetSeconds = hits > capacity || limit === 0 ? Number.POSITIVE_INFINITY : seconds;
  limiter.waitSeconds = limiter.resetSeconds;
}

/**
 * Caches counter keys. Repeated requests, such as those of a caller far over its limit, get the same string again:
 * neither the string nor its hash, which every lookup needs, is computed again.
 */
export interface CounterKeys {
  /** As `toCounterKey`, for the match of one of the domain's descriptors. */
  of(domain: string, descriptor: HashedEntries, match: Match, window: Window): string;
}

type HashedEntries = Pick<RequestDescriptor, 'entries' | 'hash'>;

interface Known {
  /** The limit of one rule in one rule set: it therefore also identifies the domain. */
  readonly limit: Limit;
  readonly window: Window;
  readonly key: string;
  /** The index at which the entries of the key end. */
  readonly end: number;
}

const underscore = 0x5f;

/** A power of two. */
const slots = 1024;
/** Bounds the memory, together with `slots`: 1 MB when every key has a character beyond Latin-1. */
const longestKnown = 512;

export function createCounterKeys(prefix: string): CounterKeys {
  /**
   * The hash of the last request in each slot. Comparing it reads no string, and a key is stored only when it was
   * requested twice in a row, so many callers with few requests each cost almost nothing.
   */
  const lastHashes = new Int32Array(slots);
  const known = new Array<Known | undefined>(slots).fill(undefined);
  return {
    of(domain, { entries, hash = hashEntries(entries) }, { limit, sharedValues }, window) {
      const slot = hash & (slots - 1);
      if (lastHashes[slot] !== hash) {
        lastHashes[slot] = hash;
        return toCounterKey(prefix, domain, entries, sharedValues, toKeyEnding(limit, window));
      }
      const before = known[slot];
      if (
        before !== undefined &&
        before.limit === limit &&
        before.window === window &&
        spells(before, prefix.length + domain.length + 1, entries)
      ) {
        return before.key;
      }
      const ending = toKeyEnding(limit, window);
      const key = toCounterKey(prefix, domain, entries, sharedValues, ending);
      if (sharedValues === undefined && key.length <= longestKnown) {
        const end = key.length - `${ending}`.length;
        const ownedKey = owned(key);
        known[slot] = { limit, window, key: ownedKey, end };
        return ownedKey;
      }
      return key;
    },
  };
}

/**
 * Whether the key has exactly these entries from `start` to its window. The entries themselves are not stored for
 * comparison: a substring can retain the whole request in memory.
 */
function spells({ key, end }: Known, start: number, entries: readonly Entry[]): boolean {
  let at = start;
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry;
    if (!hasAt(key, at, entry.key)) return false;
    at += entry.key.length + 1;
    if (!hasAt(key, at, entry.value)) return false;
    at += entry.value.length + 1;
  }
  return at === end;
}

/** Whether `text` and an underscore are at this index. */
function hasAt(key: string, at: number, text: string): boolean {
  const end = at + text.length;
  if (end >= key.length || key.charCodeAt(end) !== underscore) return false;
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) !== key.charCodeAt(at + index)) return false;
  }
  return true;
}

/**
 * A hash of 32 bits over keys and values, in their order: it determines what is recorded, so it is the same on each
 * worker and in each release. The protobuf decoder computes it from the bytes at nearly no cost.
 */
export function hashEntries(entries: readonly Entry[]): number {
  let hash = 0;
  for (const { key, value } of entries) {
    hash = joinHashes(joinHashes(hash, hashText(key)), hashText(value));
  }
  return hash;
}

/** Hashes the length first, then the bytes of the UTF-8 form. */
function hashText(text: string): number {
  const bytes = Buffer.from(text);
  let hash = bytes.length;
  for (const byte of bytes) hash = (hash * 31 + byte) | 0;
  return hash;
}

export function joinHashes(hash: number, next: number): number {
  return Math.imul(hash, 0x0100_0193) ^ next;
}
