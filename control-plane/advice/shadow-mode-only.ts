// Finds configurations whose limits are all in shadow mode: legal, and probably left over from a trial.
import { createRuleAdvice, type PlacedRule } from '../../shared/rules/lookup/placed-rule.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';

/** At most one warning, at the first limit. `rules`: the top levels of all domains. */
export function findShadowModeOnly(rules: readonly PlacedRule[]): Problem[] {
  const limits = rules.flatMap(listLimits);
  const [first] = limits;
  if (first === undefined || !limits.every(({ descriptor }) => descriptor.shadowMode)) return [];
  const message = 'every limit is in shadow mode, so nobody is ever refused';
  const hint = 'remove shadow_mode where a limit should refuse';
  return [createRuleAdvice('shadow-mode-only', first, 'shadow_mode', message, hint)];
}

/** An unlimited rule refuses nobody in any mode. */
function listLimits(rule: PlacedRule): PlacedRule[] {
  const { rateLimit } = rule.descriptor;
  const isLimit = rateLimit !== undefined && !rateLimit.unlimited;
  return [...(isLimit ? [rule] : []), ...rule.children.flatMap(listLimits)];
}
