// Values with `*`, which stands for any characters or none, and the lookup among the wildcards of one level of rules:
// the first match in configuration order applies. In a long list, only wildcards are tried whose text before the first
// `*` is a prefix of the given text.
import { sortInSteps } from '../../sorted-in-steps.ts';
import { type TextMap, withRoom } from './text-map.ts';

/** A parsed pattern. */
export interface Wildcard {
  readonly prefix: string;
  /** Literals between two stars, in order. */
  readonly middles: readonly string[];
  readonly suffix: string;
  readonly literalLength: number;
}

/** `pattern` contains at least one `*`. */
export function parseWildcard(pattern: string): Wildcard {
  const parts = pattern.split('*');
  return {
    prefix: parts[0] ?? '',
    middles: parts.slice(1, -1).filter((part) => part !== ''),
    suffix: parts.at(-1) ?? '',
    literalLength: pattern.length - (parts.length - 1),
  };
}

/** Whether the pattern matches the whole text. */
export function matchesWildcard(wildcard: Wildcard, text: string): boolean {
  return text.startsWith(wildcard.prefix) && matchesAfterPrefix(wildcard, text);
}

/**
 * Matches a text that begins with the prefix. The leftmost position for each literal always suffices to find an
 * existing match, so there is no backtracking, and a hostile text costs one pass.
 */
function matchesAfterPrefix(wildcard: Wildcard, text: string): boolean {
  const { prefix, middles, suffix, literalLength } = wildcard;
  if (text.length < literalLength || !text.endsWith(suffix)) return false;
  const end = text.length - suffix.length;
  let at = prefix.length;
  for (const middle of middles) {
    const found = text.indexOf(middle, at);
    if (found === -1) return false;
    at = found + middle.length;
    if (at > end) return false;
  }
  return true;
}

/** How many wildcards are read between two yields: this takes well below a millisecond. */
const wildcardsAtOnce = 500;
/** Up to this many wildcards are all tried: finding prefixes would take as many comparisons. */
const fewEnough = 8;

/** Returns the first match in the given order. */
export type FindWildcard<Rule> = (text: string) => Rule | undefined;

export interface WildcardRule<Rule> {
  readonly rule: Rule;
  readonly wildcard: Wildcard;
}

interface Ordered<Rule> extends WildcardRule<Rule> {
  /** The position in the configuration. */
  readonly order: number;
}

/** All wildcards with the same text before their first star. */
interface Group<Rule> {
  readonly prefix: string;
  /** The members in configuration order. */
  readonly members: Ordered<Rule>[];
  /** The group with the longest proper prefix of this one. */
  parent: Group<Rule> | undefined;
}

/**
 * Undefined without wildcards. Sorting takes time, and the list as much memory again as the rules. Yields so that the
 * thread can serve other callers.
 */
export function* createWildcardList<Rule>(
  wildcards: readonly WildcardRule<Rule>[],
): Generator<void, FindWildcard<Rule> | undefined> {
  if (wildcards.length === 0) return undefined;
  if (wildcards.length <= fewEnough) {
    return (text) => wildcards.find(({ wildcard }) => matchesWildcard(wildcard, text))?.rule;
  }
  const groups = yield* toGroups(wildcards);
  return (text) => {
    let best: Ordered<Rule> | undefined;
    for (let group = longestPrefixOf(groups, text); group !== undefined; group = group.parent) {
      best = firstMatch(group.members, text, best?.order ?? wildcards.length) ?? best;
    }
    return best?.rule;
  };
}

/** The first member that precedes `end` in the configuration and matches a text with the group's prefix. */
function firstMatch<Rule>(
  members: readonly Ordered<Rule>[],
  text: string,
  end: number,
): Ordered<Rule> | undefined {
  for (const member of members) {
    if (member.order >= end) return undefined;
    if (matchesAfterPrefix(member.wildcard, text)) return member;
  }
  return undefined;
}

/** Groups the wildcards, sorted by prefix. */
function* toGroups<Rule>(
  wildcards: readonly WildcardRule<Rule>[],
): Generator<void, readonly Group<Rule>[]> {
  const groups: Group<Rule>[] = [];
  let byPrefix: TextMap<Group<Rule>> = new Map();
  for (const [order, { rule, wildcard }] of wildcards.entries()) {
    if (order % wildcardsAtOnce === wildcardsAtOnce - 1) yield;
    const { prefix } = wildcard;
    const located = { rule, wildcard, order };
    const known = byPrefix.get(prefix);
    if (known !== undefined) {
      known.members.push(located);
      continue;
    }
    const group = { prefix, members: [located], parent: undefined };
    groups.push(group);
    byPrefix = withRoom(byPrefix);
    byPrefix.set(prefix, group);
  }
  const sorted = yield* sortInSteps(groups, (a, b) => (a.prefix < b.prefix ? -1 : 1));
  let before: Group<Rule> | undefined;
  for (const [index, group] of sorted.entries()) {
    if (index % wildcardsAtOnce === wildcardsAtOnce - 1) yield;
    while (before !== undefined && !group.prefix.startsWith(before.prefix)) before = before.parent;
    group.parent = before;
    before = group;
  }
  return sorted;
}

/**
 * The group of the longest prefix that `text` begins with. Everything sorted between that prefix and the
 * text also begins with it, so it is the last group before the text or one of its parents.
 */
function longestPrefixOf<Rule>(
  sorted: readonly Group<Rule>[],
  text: string,
): Group<Rule> | undefined {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as Group<Rule>).prefix <= text) low = middle + 1;
    else high = middle;
  }
  let group = sorted[low - 1];
  if (group === undefined) return undefined;
  const common = commonLength(group.prefix, text);
  while (group !== undefined && group.prefix.length > common) group = group.parent;
  return group;
}

function commonLength(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  let at = 0;
  while (at < end && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  return at;
}
