// The options of decisions, from the worker's settings.
import { storeKinds } from './counters/store-kinds.ts';
import type { ClientFieldOptions } from './decision/client-fields.ts';
import type { HeaderOptions } from './decision/response-headers.ts';
import type { DecisionOptions } from './decision/should-rate-limit.ts';
import type { WorkerSettings } from './settings.ts';

export function toDecisionOptions(settings: WorkerSettings): DecisionOptions {
  const { limits, counting, store, stats } = settings;
  return {
    weekResetDay: limits.weekResetDay,
    calendarMonths: limits.calendarMonth,
    cacheKeyPrefix: counting.keyPrefix,
    storesLongKeys: storeKinds[counting.backend].storesLongKeys(settings),
    storeTimeoutMs: store.timeoutMs,
    nearLimitRatio: limits.nearLimitRatio,
    shadowMode: limits.shadowMode,
    quotaMode: limits.quotaMode,
    // If it has no effect, the start logs that.
    stopIncrementWhenOver: storeKinds[counting.backend].countsBeforeAnswer
      ? limits.stopIncrementWhenOverLimit
      : 'false',
    sanitizeMetricDots: stats.sanitizeDots,
    dynamicMetadata: limits.responseDynamicMetadata,
    headers: toHeaderOptions(settings.headers),
    clientFields: toClientFieldOptions(settings.headers),
  };
}

function toHeaderOptions({ response, request }: WorkerSettings['headers']): HeaderOptions {
  return {
    response: response.enabled ? response : undefined,
    request: request.enabled ? request : undefined,
    perUnit: response.perUnit ? response : undefined,
    shadowed: request.shadowed === '' ? undefined : { key: request.shadowed, value: 'true' },
  };
}

function toClientFieldOptions({
  clientFields,
}: WorkerSettings['headers']): ClientFieldOptions | undefined {
  const { retryAfter, rateLimit, policy } = clientFields;
  return retryAfter || rateLimit || policy ? clientFields : undefined;
}
