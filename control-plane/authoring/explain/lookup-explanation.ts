// Explains why a descriptor matches one rule and not another, level by level, in the order of the lookup (behaviour:
// lookup-order). rule-tree.ts has the lookup of decisions.
import { toCountText } from '../../../shared/count-text.ts';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { nearestWord } from '../../../shared/nearest-word.ts';
import { type FoundAs, findingInOrder } from '../../../shared/rules/lookup/level.ts';
import type { LocatedRule } from '../../../shared/rules/lookup/located-rule.ts';
import type { Entry } from '../../../shared/rules/rule.ts';

/** A candidate rule of a level for an entry. */
export interface Candidate {
  readonly rule: LocatedRule;
  /** Undefined for a rule that is for another key or value. */
  readonly kind: FoundAs | undefined;
  readonly isChosen: boolean;
  readonly reason: string;
}

export interface ExplainedLevel {
  readonly entry: Entry;
  /** In the order of the lookup, then the rules for other values of the key. */
  readonly candidates: readonly Candidate[];
  /** The number of rules of the level that are not listed. */
  readonly othersCount: number;
  /** The key that was most likely meant, when no rule has the entry's key. */
  readonly nearestKey: string | undefined;
  readonly chosen: Candidate | undefined;
}

export interface LookupExplanation {
  /** The levels up to the entry at which the lookup ended. */
  readonly levels: readonly ExplainedLevel[];
  /** The rule whose limit applies; it may be unlimited. */
  readonly rule: LocatedRule | undefined;
  /** One sentence. */
  readonly verdict: string;
}

/** Rules between two yields: well below a millisecond. */
const rulesAtOnce = 500;
/** The most keys that a misspelled one is compared with. */
const maxKeys = 5_000;
/** Limit of listed rules for other values; the rest is only counted. */
const maxOtherValues = 10;

/** `rules` is the top level of the domain. */
export function explainLookup(
  rules: readonly LocatedRule[],
  entries: readonly Entry[],
): LookupExplanation {
  return runAtOnce(explainingLookup(rules, entries));
}

/** Like `explainLookup`, in steps. */
export function* explainingLookup(
  rules: readonly LocatedRule[],
  entries: readonly Entry[],
): Generator<void, LookupExplanation> {
  const levels: ExplainedLevel[] = [];
  let level = rules;
  let rule: LocatedRule | undefined;
  for (const [index, entry] of entries.entries()) {
    if (rule !== undefined && level.length === 0) {
      const verdict = `no limit applies: ${toName(rule)} has no descriptors below it, and the request has ${toCountText(entries.length - index, 'more entry', 'more entries')}`;
      return { levels, rule: undefined, verdict: verdict + ignoredLimit(rule, index) };
    }
    const explained = yield* explainLevel(level, entry);
    levels.push(explained);
    rule = explained.chosen?.rule;
    if (rule === undefined) {
      const verdict = `no limit applies: no rule is for entry ${index + 1}, ${entry.key}=${entry.value}`;
      return { levels, rule: undefined, verdict };
    }
    level = rule.children;
  }
  if (rule === undefined) {
    return { levels, rule, verdict: 'no limit applies: the descriptor has no entries' };
  }
  if (rule.descriptor.rateLimit === undefined) {
    const reason =
      rule.children.length > 0
        ? 'it only holds the rules below it, which are for requests with more entries'
        : 'it has no rate_limit, which exempts the requests that match it';
    const chosen = levels.at(-1)?.chosen;
    const skipped = levels.at(-1)?.candidates.some((each) => each.kind && !each.isChosen);
    const rest = skipped && chosen?.kind !== 'key_only' ? '; no other rule is tried after it' : '';
    const verdict = `no limit applies: ${toName(rule)} is chosen, and ${reason}${rest}`;
    return { levels, rule: undefined, verdict };
  }
  return { levels, rule, verdict: `the limit of ${toName(rule)} applies` };
}

function* explainLevel(
  level: readonly LocatedRule[],
  entry: Entry,
): Generator<void, ExplainedLevel> {
  const tried: Candidate[] = [];
  const fitting = yield* findingInOrder(level, entry.key, entry.value);
  const [chosen] = fitting;
  for (const { rule, as } of fitting) {
    const isChosen = rule === chosen?.rule;
    const reason = isChosen ? chosenReasons[as](rule, entry) : passedReason(as, chosen?.as);
    tried.push({ rule, kind: as, isChosen, reason });
  }
  const isListed = new Set(tried.map(({ rule }) => rule));
  const sought = toSought(entry);
  for (const [index, rule] of level.entries()) {
    if (index % rulesAtOnce === rulesAtOnce - 1) yield;
    if (isListed.has(rule) || tried.length >= isListed.size + maxOtherValues) continue;
    const reason = otherReason(rule, sought);
    if (reason !== undefined) tried.push({ rule, kind: undefined, isChosen: false, reason });
  }
  return {
    entry,
    candidates: tried,
    othersCount: level.length - tried.length,
    nearestKey:
      tried.length === 0
        ? nearestWord(entry.key, [
            ...new Set(level.slice(0, maxKeys).map((rule) => rule.descriptor.key)),
          ])
        : undefined,
    chosen: tried.find(({ isChosen }) => isChosen),
  };
}

const chosenReasons: Readonly<Record<FoundAs, (rule: LocatedRule, entry: Entry) => string>> = {
  exact: exactReason,
  wildcard: () => 'the first wildcard that matches',
  key_only: () => 'for every value that no exact rule or wildcard matches',
};

/** Why a matching rule is not the one that applies. */
function passedReason(as: FoundAs, chosen: FoundAs | undefined): string {
  const winner = chosen === 'exact' ? 'the exact rule' : 'the wildcard';
  if (as === 'key_only') return `for every value, but ${winner} comes first`;
  if (chosen === 'exact') return 'matches, but the exact rule comes first';
  return 'matches, but an earlier wildcard that matches is chosen';
}

function exactReason({ descriptor, composite, isWildcard }: LocatedRule, entry: Entry): string {
  if (isWildcard) return 'the value is the text of the pattern itself';
  if (descriptor.key === entry.key) return 'key and value are equal';
  return `key and value, joined by '_', are equal: '${composite}'`;
}

/** An entry with its texts in lower case, which are compared with those of each rule. */
interface Sought {
  readonly entry: Entry;
  readonly key: string;
  readonly value: string;
  readonly composite: string;
}

function toSought(entry: Entry): Sought {
  const [key, value] = [entry.key.toLowerCase(), entry.value.toLowerCase()];
  return { entry, key, value, composite: `${key}_${value}` };
}

/** Why a rule does not match the entry; undefined when they have nothing in common. */
function otherReason(rule: LocatedRule, sought: Sought): string | undefined {
  const { key, value } = rule.descriptor;
  if (key === sought.entry.key) {
    if (value.toLowerCase() === sought.value) return 'differs in letter case';
    return rule.isWildcard ? 'the value does not match the pattern' : 'for another value';
  }
  if (rule.isWildcard && key.includes('*')) return 'key and value do not match the pattern';
  if (key.toLowerCase() === sought.key) return 'the key differs in letter case';
  return rule.composite.toLowerCase() === sought.composite ? 'differs in letter case' : undefined;
}

function ignoredLimit(rule: LocatedRule, depth: number): string {
  if (rule.descriptor.rateLimit === undefined) return '';
  return `; its own limit is for requests with ${toCountText(depth, 'entry', 'entries')}`;
}

function toName({ composite }: LocatedRule): string {
  return `'${composite}'`;
}
