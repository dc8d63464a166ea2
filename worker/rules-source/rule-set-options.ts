// How a worker builds its rules, by its settings.
import type { RuleSetOptions } from '../../shared/rules/rule-set.ts';
import { storeKinds } from '../counters/store-kinds.ts';
import type { WorkerSettings } from '../settings.ts';

export function toRuleSetOptions({
  config,
  stats,
  counting,
}: Pick<WorkerSettings, 'config' | 'stats' | 'counting'>): RuleSetOptions {
  return {
    mergeDomains: config.mergeDomains,
    sanitizeMetricDots: stats.sanitizeDots,
    fixedWindowsOnly: !storeKinds[counting.backend].limiters,
  };
}
