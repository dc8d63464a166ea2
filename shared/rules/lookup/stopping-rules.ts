// Finds the rules that keep other limits of a request from being counted although they refuse nothing, where
// STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is `true`: both a worker that starts with it and `check` report them.
import type { Problem } from '../problem/problem.ts';
import type { RuleDocument } from '../rule-document.ts';
import { createRuleAdvice, type PlacedRule, placeRules } from './placed-rule.ts';

const consequence =
  'and STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is true: once it is over its limit, the other limits of the same requests are not counted, so that they admit everything';
const hint =
  'set it to enforced, so that only what refuses a request keeps its others from being counted';

/** One warning for each rule in shadow mode, and for each quota, which refuses only together with the others. */
export function findStoppingRules(documents: readonly RuleDocument[]): Problem[] {
  return [...placeRules(documents).values()].flat().flatMap(visit);
}

function visit(rule: PlacedRule): Problem[] {
  const { key, rateLimit, shadowMode, quotaMode } = rule.descriptor;
  const mode = shadowMode ? 'shadow_mode' : quotaMode ? 'quota_mode' : undefined;
  const below = rule.children.flatMap(visit);
  if (mode === undefined || rateLimit === undefined || rateLimit.unlimited) return below;
  const text = `the rule for key '${key}' has ${mode}, ${consequence}`;
  return [createRuleAdvice('stops-others', rule, mode, text, hint), ...below];
}
