// Finds rules of two domains whose hits can be counted under one key in the store. A counter's key is the domain, keys
// and values joined by `_` without escaping (counter-key.ts), so key `eu_user` of domain `shop` and key `user` of
// domain `shop_eu` collide. The format cannot change, since other services on the store use the same keys: only a
// warning helps.

import { toExcerpt } from '../text-excerpt.ts';
import type { DocumentsByDomain } from './file-order.ts';
import { createRuleAdvice, type RulePosition, toPositionText } from './lookup/located-rule.ts';
import type { Problem } from './problem/problem.ts';
import type { RuleDescriptor, RuleDocument } from './rule-document.ts';

/** Limit of characters compared in total; the rest is not examined. */
export const maxSteps = 5_000_000;

/** Characters compared between two yields: this takes well below a millisecond. */
const stepsAtOnce = 5_000;
const rulesAtOnce = 100;
const domainsAtOnce = 500;

/** Longest counter key examined; no author writes a longer one by mistake, and it would cost memory. */
export const maxSymbols = 1_000;

/** A counter's key without the window: its characters, with undefined for any text. */
export type Symbols = readonly (string | undefined)[];

/**
 * One warning for each pair of domains, at the rule of the domain with the longer name. Yields so that the thread can
 * serve other callers.
 */
export function* findSharedCounters(domains: DocumentsByDomain): Generator<void, Problem[]> {
  const pairs: { readonly shorter: string; readonly longer: string }[] = [];
  const counted = new Map<string, CountedRule[]>();
  let seen = 0;
  for (const longer of domains.keys()) {
    if (++seen % domainsAtOnce === 0) yield;
    for (const shorter of prefixesOf(longer)) {
      if (!domains.has(shorter)) continue;
      pairs.push({ shorter, longer });
      for (const domain of [shorter, longer]) {
        if (counted.has(domain)) continue;
        counted.set(domain, yield* listCountedRules(domain, domains.get(domain) ?? []));
      }
    }
  }
  let steps = 0;

  function* findPair(left: readonly CountedRule[], right: readonly CountedRule[], lead: string) {
    let pauseAt = steps + stepsAtOnce;
    for (const one of left) {
      if (++steps > maxSteps) return undefined;
      if (steps > pauseAt) {
        yield;
        pauseAt = steps + stepsAtOnce;
      }
      if (!agree(one.lead, lead)) continue;
      for (const other of right) {
        if (++steps > maxSteps) return undefined;
        if (steps > pauseAt) {
          yield;
          pauseAt = steps + stepsAtOnce;
        }
        if (!agree(one.lead, other.lead)) continue;
        steps += one.symbols.length * other.symbols.length;
        if (steps <= maxSteps && canBeEqual(one.symbols, other.symbols)) return { one, other };
      }
    }
    return undefined;
  }

  const found: Problem[] = [];
  for (const { shorter, longer } of pairs) {
    const [left = [], right = []] = [counted.get(shorter), counted.get(longer)];
    const pair = yield* findPair(left, right, `${longer}_`);
    if (pair !== undefined) found.push(createWarning(pair.one.rule, pair.other.rule));
  }
  return found;
}

function createWarning(one: RulePosition, other: RulePosition): Problem {
  const message = `this rule of domain '${toExcerpt(other.document.domain)}' and one of domain '${toExcerpt(one.document.domain)}' can count under one key, and use up each other's limit`;
  const hint = `the other one is at ${toPositionText(one)}; rename a key or a domain so that they differ in more than where a '_' stands`;
  return createRuleAdvice('shared-counter', other, undefined, message, hint);
}

/** The prefixes of the name that end before an `_`. */
function prefixesOf(name: string): string[] {
  const prefixes: string[] = [];
  for (let at = name.indexOf('_', 1); at !== -1; at = name.indexOf('_', at + 1)) {
    prefixes.push(name.slice(0, at));
  }
  return prefixes;
}

interface CountedRule {
  readonly rule: RulePosition;
  /** The beginning of the counter's key, up to the first value that is not fixed. */
  readonly lead: string;
  readonly symbols: Symbols;
}

function* listCountedRules(
  domain: string,
  documents: readonly RuleDocument[],
): Generator<void, CountedRule[]> {
  const found: CountedRule[] = [];
  let seen = 0;
  function* visit(
    document: RuleDocument,
    descriptors: readonly RuleDescriptor[],
    listPath: string,
    before: readonly (string | undefined)[],
  ): Generator<void, void> {
    for (const [index, descriptor] of descriptors.entries()) {
      if (++seen % rulesAtOnce === 0) yield;
      const { rateLimit } = descriptor;
      const symbols = toSymbols(before, descriptor);
      if (symbols === undefined) continue;
      const path = `${listPath}[${index}]`;
      if (rateLimit !== undefined && !rateLimit.unlimited) {
        const any = symbols.indexOf(undefined);
        const lead = symbols.slice(0, any === -1 ? undefined : any).join('');
        found.push({ rule: { document, descriptor, path }, lead, symbols });
      }
      yield* visit(document, descriptor.descriptors, `${path}.descriptors`, symbols);
    }
  }
  for (const document of documents) {
    yield* visit(document, document.descriptors, 'descriptors', [...`${domain}_`]);
  }
  return found;
}

/** `before` has the symbols of the levels above. Undefined if there are more than `maxSymbols`. */
export function toSymbols(
  before: Symbols,
  { key, value, shareThreshold }: Pick<RuleDescriptor, 'key' | 'value' | 'shareThreshold'>,
): Symbols | undefined {
  // A symbol is one or two UTF-16 code units. The symbols of a value of megabytes are not made.
  if (key.length + value.length > 2 * maxSymbols) return undefined;
  // A shared wildcard is counted under the pattern itself.
  const isAny = value === '' || (value.includes('*') && !shareThreshold);
  const symbols = [...before, ...`${key}_`, ...(isAny ? [undefined] : value), '_'];
  return symbols.length > maxSymbols ? undefined : symbols;
}

export function agree(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}

/** Whether both can represent the same text. */
export function canBeEqual(
  left: readonly (string | undefined)[],
  right: readonly (string | undefined)[],
): boolean {
  /** The numbers of symbols of `right` that can represent the same text as the symbols of `left` so far. */
  let reached = [0];
  for (const symbol of left) {
    const next = new Set<number>();
    for (const at of withSkipped(reached, right)) {
      if (symbol === undefined) for (let end = at; end <= right.length; end++) next.add(end);
      else if (at < right.length && right[at] === undefined) next.add(at);
      else if (right[at] === symbol) next.add(at + 1);
      // All later positions are reachable from the first.
      if (symbol === undefined) break;
    }
    if (next.size === 0) return false;
    reached = [...next].sort((a, b) => a - b);
  }
  return withSkipped(reached, right).has(right.length);
}

/** Any text includes the empty one. */
function withSkipped(
  reached: readonly number[],
  symbols: readonly (string | undefined)[],
): Set<number> {
  const all = new Set(reached);
  for (const at of all) if (at < symbols.length && symbols[at] === undefined) all.add(at + 1);
  return all;
}
