// The statistics of calls to a memory cache (reference-behaviour 6.1), their `code` tags encoded in
// the names (6.4).
import type { Counter, Metrics } from '../../metrics/metric.ts';

export interface MemcachedMetrics {
  /** Decisions whose counters were read, and those of which some could not be. */
  readonly multigetSuccess: Counter;
  readonly multigetError: Counter;
  readonly keysRequested: Counter;
  readonly keysFound: Counter;
  readonly incrementSuccess: Counter;
  readonly incrementMiss: Counter;
  readonly incrementError: Counter;
  readonly addSuccess: Counter;
  readonly addNotStored: Counter;
  readonly addError: Counter;
}

export function createMemcachedMetrics(metrics: Metrics): MemcachedMetrics {
  const counter = (name: string) => metrics.counter(`ratelimit.memcache.${name}`);
  return {
    multigetSuccess: counter('multiget.__code=success'),
    multigetError: counter('multiget.__code=error'),
    keysRequested: counter('keys_requested'),
    keysFound: counter('keys_found'),
    incrementSuccess: counter('increment.__code=success'),
    incrementMiss: counter('increment.__code=miss'),
    incrementError: counter('increment.__code=error'),
    addSuccess: counter('add.__code=success'),
    addNotStored: counter('add.__code=not_stored'),
    addError: counter('add.__code=error'),
  };
}
