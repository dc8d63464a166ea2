// Finds the rules that a descriptor can match when some of its values are unknown, for example because a proxy fills
// them in from requests. With all values known the result is that of rule-tree.ts, but whole levels are scanned.
import { findingInOrder } from './level.ts';
import type { LocatedRule } from './located-rule.ts';
import { parseWildcard } from './wildcard.ts';

/** An entry to search. */
export interface SoughtEntry {
  readonly key: string;
  /** Undefined stands for any value. */
  readonly value: string | undefined;
}

/** A rule with its place. */
export interface NamedRule {
  readonly rule: LocatedRule;
  /** The domain and the names of all levels, joined by dots. */
  readonly name: string;
}

export interface PossibleRules {
  /** How many of the entries can be matched. */
  readonly depth: number;
  /** The rules that match the last matched entry; none when `depth` is 0. */
  readonly reached: readonly NamedRule[];
  /**
   * The rules among `reached` that end the lookup, once all entries are matched: with a limit, or without rules below.
   */
  readonly matched: readonly NamedRule[];
}

/** The rules below another one, or of a domain. */
export interface RuleLevel {
  /** The name of what they are below, as in NamedRule. */
  readonly name: string;
  readonly rules: readonly LocatedRule[];
}

/** Finds them in steps. */
export function* findingPossibleRules(
  top: RuleLevel,
  entries: readonly SoughtEntry[],
): Generator<void, PossibleRules> {
  let reached: readonly NamedRule[] = [];
  let depth = 0;
  let levels: readonly RuleLevel[] = [top];
  for (const entry of entries) {
    // At most one level's rules: each has one parent.
    const next: NamedRule[] = [];
    for (const level of levels) {
      for (const found of yield* findingCandidates(level, entry)) next.push(found);
    }
    if (next.length === 0) return { depth, reached, matched: [] };
    reached = next;
    depth++;
    levels = reached.map(levelBelow);
  }
  const isEnd = ({ rule: { descriptor, children } }: NamedRule) =>
    descriptor.rateLimit !== undefined || children.length === 0;
  return { depth, reached, matched: reached.filter(isEnd) };
}

export function levelBelow({ rule, name }: NamedRule): RuleLevel {
  return { name, rules: rule.children };
}

export function toNamed({ name }: RuleLevel, rule: LocatedRule): NamedRule {
  return { rule, name: `${name}.${rule.composite}` };
}

/** The rules of a level that an entry can match, in steps. */
export function* findingCandidates(
  level: RuleLevel,
  { key, value }: SoughtEntry,
): Generator<void, NamedRule[]> {
  if (value !== undefined) {
    const [found] = yield* findingInOrder(level.rules, key, value);
    return found === undefined ? [] : [toNamed(level, found.rule)];
  }
  const found: NamedRule[] = [];
  for (const [index, rule] of level.rules.entries()) {
    if (index % rulesAtOnce === 0) yield;
    if (canAccept(rule, key)) found.push(toNamed(level, rule));
  }
  return found;
}

/** Rules examined between two steps: this takes well below a millisecond. */
const rulesAtOnce = 500;

/** Whether the rule matches some value of the key. */
function canAccept({ composite, isWildcard }: LocatedRule, key: string): boolean {
  const beginning = `${key}_`;
  if (composite === key || composite.startsWith(beginning)) return true;
  if (!isWildcard) return false;
  // The parts before the first star must agree; the rest can be anything.
  const { prefix } = parseWildcard(composite);
  return beginning.startsWith(prefix) || prefix.startsWith(beginning);
}
