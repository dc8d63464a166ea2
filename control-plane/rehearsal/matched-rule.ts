// Finds the rule of the documents that a decision has matched: its name and its place.

import type { PlacedRule } from '../../shared/rules/lookup/placed-rule.ts';
import type { Entry, Limit, Match } from '../../shared/rules/rule.ts';
import { explainLookup } from '../explain/lookup-explanation.ts';
import type { RulesNow } from './rules-in-time.ts';

export interface MatchedRule {
  /** The domain, and the rule of each level, joined by dots, as `/rlconfig` has it. */
  readonly name: string;
  readonly rule: PlacedRule;
}

/** Finds each rule once, however many requests it matches. */
export interface RuleFinder {
  /** Undefined for a limit that came with the request. */
  find(domain: string, entries: readonly Entry[], match: Match): MatchedRule | undefined;
}

export function createRuleFinder(rules: () => RulesNow): RuleFinder {
  const known = new WeakMap<Limit, MatchedRule>();
  return {
    find(domain, entries, match) {
      const before = known.get(match.limit);
      if (before !== undefined) return before;
      const { levels, rule } = explainLookup(rules().placed.get(domain) ?? [], entries);
      if (rule === undefined) return undefined;
      const path = levels.flatMap(({ chosen }) => chosen?.rule.composite ?? []);
      const found = { name: [domain, ...path].join('.'), rule };
      known.set(match.limit, found);
      return found;
    },
  };
}
