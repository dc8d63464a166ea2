// The rules of documents at the current time: without those that have ended (behaviour: rules-that-end). Pure.
import { didYouMean, nearestWord } from '../../../shared/nearest-word.ts';
import type { LocatedRule } from '../../../shared/rules/lookup/located-rule.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { findDocumentsAt } from '../../../shared/rules/rule-end.ts';
import { locatingRules } from './rule-rows.ts';

/** The top level of one domain; undefined if the documents do not have it. `nowMs`: wall time. In steps. */
export function* findRulesNow(
  documents: readonly RuleDocument[],
  domain: string,
  nowMs: number,
): Generator<void, readonly LocatedRule[] | undefined> {
  return (yield* locatingRules(yield* findDocumentsAt(documents, nowMs))).get(domain);
}

/** Human-readable. `known`: the names of the existing domains. */
export function toUnknownDomainText(domain: string, known: Iterable<string>): string {
  const hint = didYouMean(nearestWord(domain, [...known]), '; ') ?? '';
  return `there are no rules for domain ${domain}${hint}`;
}
