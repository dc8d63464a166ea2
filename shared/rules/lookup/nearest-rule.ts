// Why no rule matches a descriptor, and which rule was most likely meant: for pages and commands that
// report unmatched traffic. Never used by a decision.
import { didYouMean, nearestWord } from '../../nearest-word.ts';
import { toExcerpt } from '../../text-excerpt.ts';
import type { PlacedRule } from './placed-rule.ts';
import {
  childrenOf,
  findCandidates,
  findPossibleRules,
  type NamedRule,
  type PossibleRules,
  type SoughtEntry,
} from './possible-rules.ts';

export interface NoMatch {
  /** How many entries matched before the lookup ended. */
  readonly depth: number;
  /** The rule that comes nearest; undefined when none resembles the descriptor. */
  readonly nearest: NamedRule | undefined;
  /** A sentence without a final full stop. */
  readonly reason: string;
  /** The text to write instead; undefined where it cannot be known. */
  readonly hint: string | undefined;
}

/** Limit of rules and entries when other orders of entries are tried. */
const maxOrderLooks = 5_000;
/** Limit of rules that are searched elsewhere in the tree. */
const maxLooks = 20_000;
/** Limit of words that a misspelled one is compared with. */
const maxWords = 5_000;
const maxWordsShown = 5;

/** `rules` is the top level of the domain. Undefined when a rule matches the descriptor, or may. */
export function explainNoMatch(
  domain: string,
  rules: readonly PlacedRule[],
  entries: readonly SoughtEntry[],
): NoMatch | undefined {
  const possible = findPossibleRules(domain, rules, entries);
  if (possible.matched.length > 0) return undefined;
  const { depth } = possible;
  return { ...findReason(domain, rules, entries, possible), depth };
}

type Reason = Omit<NoMatch, 'depth'>;

function findReason(
  domain: string,
  rules: readonly PlacedRule[],
  entries: readonly SoughtEntry[],
  { depth, reached }: PossibleRules,
): Reason {
  if (entries.length === 0) {
    return { nearest: undefined, reason: 'the descriptor has no entries', hint: undefined };
  }
  const reordered = depth < entries.length ? findReordered(domain, rules, entries) : undefined;
  if (reordered !== undefined) {
    const order = reordered.entries.map(({ key }) => `(${toExcerpt(key)})`).join('');
    return {
      nearest: reordered.rule,
      reason: `rule ${nameOf(reordered.rule)} has these entries in another order`,
      hint: `the order counts: send ${order}`,
    };
  }
  const holder = reached.find(({ rule }) => rule.children.length > 0);
  if (depth === entries.length) return explainTooFew(holder ?? reached[0]);
  if (depth > 0 && holder === undefined) return explainTooMany(reached[0], entries, depth);
  const level =
    depth === 0
      ? childrenOf(domain, rules)
      : reached.flatMap(({ rule, name }) => childrenOf(name, rule.children));
  const entry = entries[depth] as SoughtEntry;
  const before =
    holder === undefined ? '' : `rule ${nameOf(holder)} matches ${toFirst(depth)}, but `;
  return (
    explainValue(level, entry, before) ??
    explainKey(level, entry, before, holder) ??
    explainSurplus(domain, rules, entries, depth) ??
    explainElsewhere(domain, rules, entry) ??
    explainUnlike(level, entry, before, holder)
  );
}

function explainTooFew(holder: NamedRule | undefined): Reason {
  const names = listWords((holder?.rule.children ?? []).map(({ descriptor }) => descriptor.key));
  return {
    nearest: holder,
    reason: `rule ${holder && nameOf(holder)} has no limit of its own, only rules below it, which are for descriptors with more entries`,
    hint: `give the rule a rate_limit, or send one of these keys as well: ${names}`,
  };
}

function explainTooMany(
  last: NamedRule | undefined,
  entries: readonly SoughtEntry[],
  depth: number,
): Reason {
  const surplus = entries.slice(depth).map(toText).join('');
  return {
    nearest: last,
    reason: `rule ${last && nameOf(last)} matches ${toFirst(depth)}, but has no rules below it, and a rule is only for descriptors with as many entries as it has levels`,
    hint: `leave out ${surplus}, or give the rule descriptors for it`,
  };
}

/** Rules with the same key are for other values. */
function explainValue(
  level: readonly NamedRule[],
  { key, value }: SoughtEntry,
  before: string,
): Reason | undefined {
  const others = level.filter(({ rule }) => rule.descriptor.key === key).slice(0, maxWords);
  const [first] = others;
  if (first === undefined || value === undefined) return undefined;
  const values = others.map(({ rule }) => rule.descriptor.value);
  const guess = nearestWord(value, values);
  const nearest = others.find(({ rule }) => rule.descriptor.value === guess) ?? first;
  const reason = `${before}no rule ${before === '' ? '' : 'below it '}has the value '${toExcerpt(value)}' for the key '${toExcerpt(key)}'`;
  if (guess === undefined) return { nearest, reason, hint: `there is ${listWords(values)}` };
  const isCase = guess.toLowerCase() === value.toLowerCase();
  const why = isCase ? ' Upper and lower case are not the same' : '';
  return { nearest, reason, hint: `${didYouMean(guess)}${why}` };
}

/** A rule has a key that this one may be a typo of. */
function explainKey(
  level: readonly NamedRule[],
  { key }: SoughtEntry,
  before: string,
  holder: NamedRule | undefined,
): Reason | undefined {
  const guess = nearestWord(key, keysOf(level));
  if (guess === undefined) return undefined;
  const nearest = level.find(({ rule }) => rule.descriptor.key === guess);
  return { nearest, reason: withoutKey(key, before, holder), hint: didYouMean(guess) };
}

/** One entry too many, somewhere in the middle. */
function explainSurplus(
  domain: string,
  rules: readonly PlacedRule[],
  entries: readonly SoughtEntry[],
  depth: number,
): Reason | undefined {
  if (entries.length === 1) return undefined;
  for (let dropped = depth; dropped >= 0; dropped--) {
    const rest = entries.filter((_, index) => index !== dropped);
    const [rule] = findPossibleRules(domain, rules, rest).matched;
    if (rule === undefined) continue;
    return {
      nearest: rule,
      reason: `rule ${nameOf(rule)} has all entries but ${toText(entries[dropped] as SoughtEntry)}`,
      hint: 'leave that entry out, or add a level for it to the rules',
    };
  }
  return undefined;
}

/** The key exists, below another one. */
function explainElsewhere(
  domain: string,
  rules: readonly PlacedRule[],
  { key }: SoughtEntry,
): Reason | undefined {
  const open = childrenOf(domain, rules).map((named) => ({ named, parents: [] as string[] }));
  for (let index = 0; index < open.length && index < maxLooks; index++) {
    const { named, parents } = open[index] as (typeof open)[number];
    const { rule, name } = named;
    if (rule.descriptor.key === key) {
      const place =
        parents.length === 0
          ? 'stands at the top level'
          : `is for descriptors that have ${parents.join('')} before it`;
      return { nearest: named, reason: `rule ${nameOf(named)} ${place}`, hint: undefined };
    }
    if (open.length > maxLooks) continue;
    const below = [...parents, `(${toExcerpt(rule.descriptor.key)})`];
    for (const child of childrenOf(name, rule.children))
      open.push({ named: child, parents: below });
  }
  return undefined;
}

function explainUnlike(
  level: readonly NamedRule[],
  { key }: SoughtEntry,
  before: string,
  holder: NamedRule | undefined,
): Reason {
  const keys = keysOf(level);
  const hint = keys.length === 0 ? undefined : `the keys there are ${listWords(keys)}`;
  return { nearest: holder, reason: withoutKey(key, before, holder), hint };
}

function withoutKey(key: string, before: string, holder: NamedRule | undefined): string {
  const below = holder === undefined ? '' : 'below it ';
  return `${before}no rule ${below}has the key '${toExcerpt(key)}'`;
}

/** The first order of the entries that leads to a rule. */
function findReordered(
  domain: string,
  rules: readonly PlacedRule[],
  entries: readonly SoughtEntry[],
): { readonly rule: NamedRule; readonly entries: readonly SoughtEntry[] } | undefined {
  let looks = 0;
  const visit = (
    level: readonly NamedRule[],
    left: readonly SoughtEntry[],
    taken: readonly SoughtEntry[],
  ): { rule: NamedRule; entries: readonly SoughtEntry[] } | undefined => {
    for (const [index, entry] of left.entries()) {
      looks += level.length + left.length;
      if (looks > maxOrderLooks) return undefined;
      const rest = left.filter((_, at) => at !== index);
      for (const found of findCandidates(level, entry)) {
        const order = [...taken, entry];
        if (rest.length === 0) {
          if (found.rule.descriptor.rateLimit !== undefined) return { rule: found, entries: order };
          continue;
        }
        const deeper = visit(childrenOf(found.name, found.rule.children), rest, order);
        if (deeper !== undefined) return deeper;
      }
    }
    return undefined;
  };
  return visit(childrenOf(domain, rules), entries, []);
}

function keysOf(level: readonly NamedRule[]): string[] {
  return [...new Set(level.slice(0, maxWords).map(({ rule }) => rule.descriptor.key))];
}

function nameOf({ name }: NamedRule): string {
  return toExcerpt(name, 200);
}

/** `(key=value)`, or `(key)` when the value is not known. */
export function toText({ key, value }: SoughtEntry): string {
  return `(${toExcerpt(key)}${value === undefined ? '' : `=${toExcerpt(value)}`})`;
}

function toFirst(count: number): string {
  return count === 1 ? 'the first entry' : `the first ${count} entries`;
}

function listWords(words: readonly string[]): string {
  const all = [...new Set(words)];
  const shown = all.slice(0, maxWordsShown).map((word) => `'${toExcerpt(word)}'`);
  const more = all.length > maxWordsShown ? ` and ${all.length - maxWordsShown} more` : '';
  return shown.join(', ') + more;
}
