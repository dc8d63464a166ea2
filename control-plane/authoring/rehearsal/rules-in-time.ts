// The rules of documents at a given time: rules that end exist only before their end (behaviour: rules-that-end).
import type { LocatedRule } from '../../../shared/rules/lookup/located-rule.ts';
import { locateRules } from '../../../shared/rules/lookup/located-rule.ts';
import type { RuleSet } from '../../../shared/rules/rule.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { documentsAt, nextEndOf } from '../../../shared/rules/rule-end.ts';
import {
  type BuildResult,
  buildRuleSet,
  type RuleSetOptions,
} from '../../../shared/rules/rule-set.ts';

export interface RulesNow {
  readonly ruleSet: RuleSet;
  /** The top level of each domain, with the positions of the rules. */
  readonly located: ReadonlyMap<string, readonly LocatedRule[]>;
}

export type RulesNowResult =
  | { readonly ok: true; readonly rules: RulesNow }
  | Extract<BuildResult, { ok: false }>;

/** Returns the same object until a rule ends, so that callers can cache what they derived from it. */
export type RulesInTime = (nowMs: number) => RulesNowResult;

export function createRulesInTime(
  documents: readonly RuleDocument[],
  options: RuleSetOptions,
): RulesInTime {
  let known: RulesNowResult | undefined;
  let fromMs = 0;
  let untilMs = 0;
  return (nowMs) => {
    if (known !== undefined && nowMs >= fromMs && nowMs < untilMs) return known;
    const built = buildRuleSet(documents, options, nowMs);
    if (built.ok) {
      const located = locateRules(documentsAt(documents, nowMs));
      known = { ok: true, rules: { ruleSet: built.ruleSet, located } };
    } else known = built;
    const hasEnds = nextEndOf(documents, Number.NEGATIVE_INFINITY) !== undefined;
    fromMs = hasEnds ? nowMs : Number.NEGATIVE_INFINITY;
    untilMs = nextEndOf(documents, nowMs) ?? Number.POSITIVE_INFINITY;
    return known;
  };
}
