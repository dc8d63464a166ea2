// Explains why no rule matches a descriptor, and which rule was most likely intended: for pages and commands that
// report unmatched traffic. Decisions never use it.

import { runAtOnce } from '../../in-slices.ts';
import { didYouMean, nearestWord } from '../../nearest-word.ts';
import { toExcerpt } from '../../text-excerpt.ts';
import type { LocatedRule } from './located-rule.ts';
import {
  findingCandidates,
  findingPossibleRules,
  levelBelow,
  type NamedRule,
  type PossibleRules,
  type RuleLevel,
  type SoughtEntry,
  toNamed,
} from './possible-rules.ts';

export interface NoMatch {
  /** How many entries matched before the lookup ended. */
  readonly depth: number;
  /** The rule that comes nearest; undefined when none resembles the descriptor. */
  readonly nearest: NamedRule | undefined;
  /** A sentence without a final full stop. */
  readonly reason: string;
  /** The text to write instead; undefined if it is unknown. */
  readonly hint: string | undefined;
}

/** Limit of the rules and entries that are examined for other orders of entries. */
const maxOrderChecks = 5_000;
/** Limit of the rules that are examined elsewhere in the tree. */
const maxChecks = 20_000;
/** Limit of the words that a misspelled one is compared with. */
const maxWords = 5_000;
const maxWordsShown = 5;
/** Rules examined between two steps: this takes well below a millisecond. */
const checksAtOnce = 500;

/** `rules` is the top level of the domain. Undefined when a rule matches the descriptor, or may. */
export function explainNoMatch(
  domain: string,
  rules: readonly LocatedRule[],
  entries: readonly SoughtEntry[],
): NoMatch | undefined {
  return runAtOnce(explainingNoMatch(domain, rules, entries));
}

/** `explainNoMatch` in steps. */
export function* explainingNoMatch(
  domain: string,
  rules: readonly LocatedRule[],
  entries: readonly SoughtEntry[],
): Generator<void, NoMatch | undefined> {
  const top = { name: domain, rules };
  const possible = yield* findingPossibleRules(top, entries);
  if (possible.matched.length > 0) return undefined;
  const { depth } = possible;
  return { ...(yield* findReason(top, entries, possible)), depth };
}

type Reason = Omit<NoMatch, 'depth'>;

function* findReason(
  top: RuleLevel,
  entries: readonly SoughtEntry[],
  { depth, reached }: PossibleRules,
): Generator<void, Reason> {
  if (entries.length === 0) {
    return { nearest: undefined, reason: 'the descriptor has no entries', hint: undefined };
  }
  const reordered = depth < entries.length ? yield* findReordered(top, entries) : undefined;
  if (reordered !== undefined) {
    const order = reordered.entries.map(({ key }) => `(${toExcerpt(key)})`).join('');
    return {
      nearest: reordered.rule,
      reason: `rule ${nameOf(reordered.rule)} has these entries in a different order`,
      hint: `the order counts: send ${order}`,
    };
  }
  const holder = reached.find(({ rule }) => rule.children.length > 0);
  if (depth === entries.length) return explainTooFew(holder ?? reached[0]);
  if (depth > 0 && holder === undefined) return explainTooMany(reached[0], entries, depth);
  const levels = depth === 0 ? [top] : reached.map(levelBelow);
  const entry = entries[depth] as SoughtEntry;
  const before =
    holder === undefined ? '' : `rule ${nameOf(holder)} matches ${toFirst(depth)}, but `;
  return (
    (yield* explainValue(levels, entry, before)) ??
    (yield* explainKey(levels, entry, before, holder)) ??
    (yield* explainSurplus(top, entries, depth)) ??
    (yield* explainElsewhere(top, entry)) ??
    explainUnlike(levels, entry, before, holder)
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

/** Explains a value: rules with the same key are for other values. */
function* explainValue(
  levels: readonly RuleLevel[],
  { key, value }: SoughtEntry,
  before: string,
): Generator<void, Reason | undefined> {
  const others = yield* filterRules(levels, ({ descriptor }) => descriptor.key === key);
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

/** Explains a key: a rule has a key of which this one may be a misspelling. */
function* explainKey(
  levels: readonly RuleLevel[],
  { key }: SoughtEntry,
  before: string,
  holder: NamedRule | undefined,
): Generator<void, Reason | undefined> {
  yield;
  const guess = nearestWord(key, keysOf(levels));
  if (guess === undefined) return undefined;
  const [nearest] = yield* filterRules(levels, ({ descriptor }) => descriptor.key === guess);
  return { nearest, reason: withoutKey(key, before, holder), hint: didYouMean(guess) };
}

/** Explains a surplus entry, somewhere in the middle. */
function* explainSurplus(
  top: RuleLevel,
  entries: readonly SoughtEntry[],
  depth: number,
): Generator<void, Reason | undefined> {
  if (entries.length === 1) return undefined;
  for (let dropped = depth; dropped >= 0; dropped--) {
    const rest = entries.filter((_, index) => index !== dropped);
    const [rule] = (yield* findingPossibleRules(top, rest)).matched;
    if (rule === undefined) continue;
    return {
      nearest: rule,
      reason: `rule ${nameOf(rule)} has all entries but ${toText(entries[dropped] as SoughtEntry)}`,
      hint: 'leave that entry out, or add a level for it to the rules',
    };
  }
  return undefined;
}

/** Explains a key that exists below another one. */
function* explainElsewhere(
  top: RuleLevel,
  { key }: SoughtEntry,
): Generator<void, Reason | undefined> {
  const toOpen = (level: RuleLevel, parents: readonly string[]) =>
    level.rules.slice(0, maxChecks + 1).map((rule) => ({ named: toNamed(level, rule), parents }));
  const open = toOpen(top, []);
  for (let index = 0; index < open.length && index < maxChecks; index++) {
    if (index % checksAtOnce === 0) yield;
    const { named, parents } = open[index] as (typeof open)[number];
    const { rule } = named;
    if (rule.descriptor.key === key) {
      const position =
        parents.length === 0
          ? 'is at the top level'
          : `is for descriptors that have ${parents.join('')} before it`;
      return { nearest: named, reason: `rule ${nameOf(named)} ${position}`, hint: undefined };
    }
    if (open.length > maxChecks) continue;
    const below = [...parents, `(${toExcerpt(rule.descriptor.key)})`];
    for (const child of toOpen(levelBelow(named), below)) open.push(child);
  }
  return undefined;
}

function explainUnlike(
  levels: readonly RuleLevel[],
  { key }: SoughtEntry,
  before: string,
  holder: NamedRule | undefined,
): Reason {
  const keys = keysOf(levels);
  const hint = keys.length === 0 ? undefined : `the keys there are ${listWords(keys)}`;
  return { nearest: holder, reason: withoutKey(key, before, holder), hint };
}

function withoutKey(key: string, before: string, holder: NamedRule | undefined): string {
  const below = holder === undefined ? '' : 'below it ';
  return `${before}no rule ${below}has the key '${toExcerpt(key)}'`;
}

interface Reordered {
  readonly rule: NamedRule;
  readonly entries: readonly SoughtEntry[];
}

/** Finds the first order of the entries that leads to a rule. */
function* findReordered(
  top: RuleLevel,
  entries: readonly SoughtEntry[],
): Generator<void, Reordered | undefined> {
  let checks = 0;
  function* visit(
    level: RuleLevel,
    left: readonly SoughtEntry[],
    chosen: readonly SoughtEntry[],
  ): Generator<void, Reordered | undefined> {
    for (const [index, entry] of left.entries()) {
      checks += level.rules.length + left.length;
      if (checks > maxOrderChecks) return undefined;
      const rest = left.filter((_, at) => at !== index);
      for (const found of yield* findingCandidates(level, entry)) {
        const order = [...chosen, entry];
        if (rest.length === 0) {
          if (found.rule.descriptor.rateLimit !== undefined) return { rule: found, entries: order };
          continue;
        }
        const deeper = yield* visit(levelBelow(found), rest, order);
        if (deeper !== undefined) return deeper;
      }
    }
    return undefined;
  }
  return yield* visit(top, entries, []);
}

/** The first matching rules, in steps. */
function* filterRules(
  levels: readonly RuleLevel[],
  isWanted: (rule: LocatedRule) => boolean,
): Generator<void, NamedRule[]> {
  const found: NamedRule[] = [];
  for (const level of levels) {
    for (const [index, rule] of level.rules.entries()) {
      if (index % checksAtOnce === checksAtOnce - 1) yield;
      if (!isWanted(rule)) continue;
      found.push(toNamed(level, rule));
      if (found.length === maxWords) return found;
    }
  }
  return found;
}

function keysOf(levels: readonly RuleLevel[]): string[] {
  const keys = new Set<string>();
  let left = maxWords;
  for (const { rules } of levels) {
    for (const { descriptor } of rules.slice(0, left)) keys.add(descriptor.key);
    left -= Math.min(left, rules.length);
  }
  return [...keys];
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
