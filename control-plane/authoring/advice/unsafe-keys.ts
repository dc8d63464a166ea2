// Finds rules whose counter keys memcached may reject, because they contain values from requests.
import {
  createRuleAdvice,
  type LocatedRule,
  locateRules,
} from '../../../shared/rules/lookup/located-rule.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';

const hint =
  'set MEMCACHE_LONG_KEYS=hash on the workers to count it, which is wise unless workers of the reference count in the same nodes';

/** At most one note, at the first such rule: a setting fixes it for all. */
export function findUnsafeKeys(documents: readonly RuleDocument[]): Problem[] {
  const first = [...locateRules(documents).values()].flat().flatMap(listOpen)[0];
  if (first === undefined) return [];
  const { key } = first.descriptor;
  const message = `a memory cache accepts keys of at most 250 bytes without blanks: a request with a long or blank value of '${key}' fails, and Envoy lets it pass by default`;
  return [createRuleAdvice('memory-cache-keys', first, 'key', message, hint)];
}

/** The rules that accept any value, or any value that fits a pattern. */
function listOpen(rule: LocatedRule): LocatedRule[] {
  const { value, shareThreshold, rateLimit } = rule.descriptor;
  const isOpen = value === '' || (rule.isWildcard && !shareThreshold);
  const isUsed = rule.children.length > 0 || (rateLimit !== undefined && !rateLimit.unlimited);
  return [...(isOpen && isUsed ? [rule] : []), ...rule.children.flatMap(listOpen)];
}
