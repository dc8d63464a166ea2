// Finds rules that no request reaches, because an earlier rule matches all of their requests (behaviour: lookup-order;
// the first wildcard that fits, then the rule without a value).

import {
  createRuleAdvice,
  type LocatedRule,
  toPositionText,
} from '../../../shared/rules/lookup/located-rule.ts';
import {
  matchesWildcard,
  parseWildcard,
  type Wildcard,
} from '../../../shared/rules/lookup/wildcard.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';

/**
 * Limit of comparisons: every wildcard is compared with those before it, and a level of thousands would
 * take minutes.
 */
const maxComparisons = 5_000_000;

interface ParsedWildcard {
  readonly rule: LocatedRule;
  readonly wildcard: Wildcard;
}

/** One warning for each rule that can never match; its children get none. */
export function findUnreachableRules(rules: readonly LocatedRule[]): Problem[] {
  const problems: Problem[] = [];
  let comparisons = 0;

  /** The first of the leading `count` wildcards that matches every text of `pattern`. */
  function findCover(
    wildcards: readonly ParsedWildcard[],
    count: number,
    pattern: string,
  ): LocatedRule | undefined {
    comparisons += count;
    if (comparisons > maxComparisons) return undefined;
    for (let index = 0; index < count; index++) {
      const { rule, wildcard } = wildcards[index] as ParsedWildcard;
      // Only a star matches the pattern's own star, so what matches the pattern matches all its texts.
      if (matchesWildcard(wildcard, pattern)) return rule;
    }
    return undefined;
  }

  function visitLevel(level: readonly LocatedRule[]): void {
    const wildcards = level
      .filter((rule) => rule.isWildcard)
      .map((rule) => ({ rule, wildcard: parseWildcard(rule.composite) }));
    const reached = new Set(level);
    wildcards.forEach(({ rule }, index) => {
      const cover = findCover(wildcards, index, rule.composite);
      if (cover === undefined) return;
      reached.delete(rule);
      const message = `this rule can never match: every value of '${shown(rule)}' is taken by '${shown(cover)}' before it`;
      const hint = `move it before the rule at ${toPositionText(cover)}, or remove it`;
      problems.push(createRuleAdvice('unreachable-rule', rule, undefined, message, hint));
    });
    for (const rule of level) {
      const { key, value } = rule.descriptor;
      if (rule.isWildcard || value !== '') continue;
      const cover = findCover(wildcards, wildcards.length, `${key}_*`);
      if (cover === undefined) continue;
      reached.delete(rule);
      const message = `this rule can never match: every value of '${shown(rule)}' is taken by the wildcard '${shown(cover)}'`;
      const hint = `remove it, or the rule at ${toPositionText(cover)}: a wildcard goes before a rule without a value`;
      problems.push(createRuleAdvice('unreachable-rule', rule, undefined, message, hint));
    }
    for (const rule of reached) visitLevel(rule.children);
  }

  visitLevel(rules);
  return problems;
}

function shown({ composite }: LocatedRule): string {
  return toExcerpt(composite);
}
