// The statistics of calls to a memory cache (behaviour: statistic-names).
import type { Counter, Metrics } from '../../metrics.ts';

export interface MemcachedMetrics {
  /** Decisions whose counters were read, and decisions where reading failed. */
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
  readonly callDuration: Metrics['storeCallDuration'];
}

export function createMemcachedMetrics(metrics: Metrics): MemcachedMetrics {
  const counter = (name: string, code?: string) =>
    metrics.counter(`ratelimit.memcache.${name}`, code === undefined ? undefined : { code });
  return {
    multigetSuccess: counter('multiget', 'success'),
    multigetError: counter('multiget', 'error'),
    keysRequested: counter('keys_requested'),
    keysFound: counter('keys_found'),
    incrementSuccess: counter('increment', 'success'),
    incrementMiss: counter('increment', 'miss'),
    incrementError: counter('increment', 'error'),
    addSuccess: counter('add', 'success'),
    addNotStored: counter('add', 'not_stored'),
    addError: counter('add', 'error'),
    callDuration: metrics.storeCallDuration,
  };
}
