// The rules of documents as they are now: without those that have ended since they were built
// (behaviour: rules-that-end). Pure.
import { didYouMean, nearestWord } from '../../shared/nearest-word.ts';
import {
  type CheckedDomainRules,
  type CheckedRules,
  RulesChecker,
} from '../../shared/rules/checked-rules.ts';
import type { PlacedRule } from '../../shared/rules/lookup/placed-rule.ts';
import type { DomainRules } from '../../shared/rules/rule.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { findDocumentsAt } from '../../shared/rules/rule-end.ts';
import { placingRules } from './rule-rows.ts';

export interface RulesNow {
  /** The top level. */
  readonly placed: readonly PlacedRule[];
  readonly rules: DomainRules;
}

export interface RulesOfDocuments {
  readonly documents: readonly RuleDocument[];
  /** Made of them, at some time; undefined where that is not known. */
  readonly ruleSet: CheckedRules | undefined;
}

/** By the state of the documents and the domain: a large domain takes a while to build. */
const known = new WeakMap<readonly RuleDocument[], Map<string, CheckedDomainRules>>();

/** Of one domain of documents without errors; undefined where they do not have it. `nowMs`: wall time. In
 * steps. */
export function* findRulesNow(
  { documents, ruleSet }: RulesOfDocuments,
  domain: string,
  nowMs: number,
): Generator<void, RulesNow | undefined> {
  const current = yield* findDocumentsAt(documents, nowMs);
  const placed = (yield* placingRules(current)).get(domain);
  if (placed === undefined) return undefined;
  // Where no rule ever ends, the rules are as they were.
  const rulesBefore = current === documents ? ruleSet?.domains.get(domain) : undefined;
  if (rulesBefore !== undefined) return { placed, rules: yield* rulesBefore.lookup() };
  const built = known.get(current) ?? new Map<string, CheckedDomainRules>();
  known.set(current, built);
  const rules = built.get(domain) ?? (yield* build(current, domain, nowMs));
  if (rules === undefined) return undefined;
  built.set(domain, rules);
  return { placed, rules: yield* rules.lookup() };
}

/** For people. `known`: the names of the domains that there are. */
export function toUnknownDomainText(domain: string, known: Iterable<string>): string {
  const hint = didYouMean(nearestWord(domain, [...known]), '; ') ?? '';
  return `there are no rules for domain ${domain}${hint}`;
}

function* build(
  documents: readonly RuleDocument[],
  domain: string,
  nowMs: number,
): Generator<void, CheckedDomainRules | undefined> {
  const own = documents.filter((document) => document.domain === domain);
  const checked = yield* new RulesChecker({ mergeDomains: true }).check(own, nowMs);
  return checked.ok ? checked.rules.domains.get(domain) : undefined;
}
