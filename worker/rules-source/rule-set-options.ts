// The options with which a worker builds its rules, from its settings.
import type { RuleSetOptions } from '../../shared/rules/rule-set.ts';
import { storeKinds } from '../counters/store-kinds.ts';
import type { WorkerSettings } from '../settings.ts';

export function toRuleSetOptions({
  config,
  stats,
  limits,
  counting,
}: Pick<WorkerSettings, 'config' | 'stats' | 'limits' | 'counting'>): RuleSetOptions {
  const { limiters, countsBeforeAnswer } = storeKinds[counting.backend];
  return {
    mergeDomains: config.mergeDomains,
    sanitizeMetricDots: stats.sanitizeDots,
    fixedWindowsOnly: !limiters,
    warnsOfStops: limits.stopIncrementWhenOverLimit === 'true' && countsBeforeAnswer,
  };
}
