// Finds rules that have ended: they have no effect any more, and only fill the file.
import { createRuleAdvice, type PlacedRule } from '../../shared/rules/lookup/placed-rule.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';
import { toTimeText } from '../../shared/rules/rule-end.ts';

/** A note for each, but not for those below it: a good document stays good when time passes. */
export function findEndedRules(rules: readonly PlacedRule[], nowMs: number): Problem[] {
  return rules.flatMap((rule) => {
    const { untilMs } = rule.descriptor;
    if (untilMs === undefined || untilMs > nowMs) return findEndedRules(rule.children, nowMs);
    const message = `this rule ended at ${toTimeText(untilMs)}, it has no effect`;
    return [createRuleAdvice('ended-rule', rule, 'until', message, 'remove it')];
  });
}
