// Finds rules for one value whose requests escape the limits below the rule for the other values: the search never
// backtracks (behaviour: lookup-order).
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

/** Each rule is compared with its neighbours: a level of many thousands would take minutes. */
const maxComparisons = 1_000_000;

/** One warning for each rule that silently frees its value from deeper limits. */
export function findFreedValues(rules: readonly LocatedRule[]): Problem[] {
  const problems: Problem[] = [];
  let comparisons = 0;

  /** The rule that would match the value if `rule` did not exist. */
  function findNeighbour(rule: LocatedRule, level: Level): LocatedRule | undefined {
    for (const { of: wide, wildcard } of level.wildcards) {
      if (++comparisons > maxComparisons) return undefined;
      if (wide !== rule && matchesWildcard(wildcard, rule.composite)) return wide;
    }
    return level.open.get(rule.descriptor.key);
  }

  /** The first rule with a limit below `neighbour` whose requests match no rule below `rule`. */
  function findLost(rule: LocatedRule, neighbour: LocatedRule): LocatedRule | undefined {
    if (neighbour.children.length === 0) return undefined;
    const level = toLevel(rule.children);
    for (const child of neighbour.children) {
      const own = level.exact.get(child.composite) ?? findNeighbour(child, level);
      if (++comparisons > maxComparisons) return undefined;
      if (own === undefined) {
        const lost = findLimit(child);
        if (lost !== undefined) return lost;
        continue;
      }
      const lost = isLimited(child) && !isSettled(own) ? child : findLost(own, child);
      if (lost !== undefined) return lost;
    }
    return undefined;
  }

  function visit(rules: readonly LocatedRule[]): void {
    const level = toLevel(rules);
    for (const rule of rules) {
      const neighbour =
        rule.descriptor.value === '' || isExemption(rule) ? undefined : findNeighbour(rule, level);
      const lost = neighbour && findLost(rule, neighbour);
      if (lost !== undefined) problems.push(describe(rule, lost));
      visit(rule.children);
    }
  }

  visit(rules);
  return problems;
}

interface Level {
  readonly exact: ReadonlyMap<string, LocatedRule>;
  /** In the order of the configuration. */
  readonly wildcards: readonly { readonly of: LocatedRule; readonly wildcard: Wildcard }[];
  /** The rules for any value, by key. */
  readonly open: ReadonlyMap<string, LocatedRule>;
}

function toLevel(rules: readonly LocatedRule[]): Level {
  const isOpen = (rule: LocatedRule) => !rule.isWildcard && rule.descriptor.value === '';
  return {
    exact: new Map(rules.map((rule) => [rule.composite, rule])),
    wildcards: rules
      .filter(({ isWildcard }) => isWildcard)
      .map((of) => ({ of, wildcard: parseWildcard(of.composite) })),
    open: new Map(rules.filter(isOpen).map((rule) => [rule.descriptor.key, rule])),
  };
}

/** A rule that declares itself unlimited, with no limit below it: its value is meant to be free. */
function isExemption({ descriptor, children }: LocatedRule): boolean {
  return children.length === 0 && descriptor.rateLimit?.unlimited !== false;
}

function isLimited({ descriptor }: LocatedRule): boolean {
  return descriptor.rateLimit?.unlimited === false;
}

/** A rule with a limit, or one that declares itself unlimited. */
function isSettled(rule: LocatedRule): boolean {
  return rule.descriptor.rateLimit !== undefined || isExemption(rule);
}

function findLimit(rule: LocatedRule): LocatedRule | undefined {
  if (isLimited(rule)) return rule;
  for (const child of rule.children) {
    const found = findLimit(child);
    if (found !== undefined) return found;
  }
  return undefined;
}

function describe(rule: LocatedRule, lost: LocatedRule): Problem {
  const shown = toExcerpt(rule.composite);
  const deeper = toExcerpt(lost.composite);
  const message = `requests of '${shown}' are freed of the limit of '${deeper}' at ${toPositionText(lost)}, which its neighbours have: the lookup never backtracks from this rule`;
  const hint = `repeat '${deeper}' in the descriptors of this rule, with rate_limit: {unlimited: true} if it is meant to be free`;
  return createRuleAdvice('freed-value', rule, 'value', message, hint);
}
