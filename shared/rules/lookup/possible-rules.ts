// Finds the rules that a descriptor can match when some of its values are unknown, as where a proxy takes them
// from requests. With all values known it equals the lookup of rule-tree.ts, but scans whole levels.
import { inOrder } from './level.ts';
import type { PlacedRule } from './placed-rule.ts';
import { parseWildcard } from './wildcard.ts';

/** An entry to search. */
export interface SoughtEntry {
  readonly key: string;
  /** Undefined: any value. */
  readonly value: string | undefined;
}

/** A rule with its place. */
export interface NamedRule {
  readonly rule: PlacedRule;
  /** The domain and the names of all levels, joined by dots. */
  readonly name: string;
}

export interface PossibleRules {
  /** How many of the entries some rule matches. */
  readonly depth: number;
  /** The rules that match the last of these; none when `depth` is 0. */
  readonly reached: readonly NamedRule[];
  /** The rules among them with a limit, or without anything below them, when all entries are taken. */
  readonly matched: readonly NamedRule[];
}

export function findPossibleRules(
  domain: string,
  rules: readonly PlacedRule[],
  entries: readonly SoughtEntry[],
): PossibleRules {
  let reached: readonly NamedRule[] = [];
  let depth = 0;
  let levels = [childrenOf(domain, rules)];
  for (const entry of entries) {
    // At most the rules of the level: each has one parent.
    const next = levels.flatMap((level) => findCandidates(level, entry));
    if (next.length === 0) return { depth, reached, matched: [] };
    reached = next;
    depth++;
    levels = reached.map(({ rule, name }) => childrenOf(name, rule.children));
  }
  const isEnd = ({ rule: { descriptor, children } }: NamedRule) =>
    descriptor.rateLimit !== undefined || children.length === 0;
  return { depth, reached, matched: reached.filter(isEnd) };
}

export function childrenOf(name: string, children: readonly PlacedRule[]): NamedRule[] {
  return children.map((rule) => ({ rule, name: `${name}.${rule.composite}` }));
}

/** The rules of a level that an entry can match. */
export function findCandidates(level: readonly NamedRule[], entry: SoughtEntry): NamedRule[] {
  const { key, value } = entry;
  if (value === undefined) return level.filter(({ rule }) => mayTake(rule, key));
  const [found] = inOrder(
    level.map(({ rule }) => rule),
    key,
    value,
  );
  return level.filter(({ rule }) => rule === found?.rule);
}

/** Whether the rule matches some value of the key. */
function mayTake({ composite, isWildcard }: PlacedRule, key: string): boolean {
  const beginning = `${key}_`;
  if (composite === key || composite.startsWith(beginning)) return true;
  if (!isWildcard) return false;
  // The parts before the first star must agree; the rest can be anything.
  const { prefix } = parseWildcard(composite);
  return beginning.startsWith(prefix) || prefix.startsWith(beginning);
}
