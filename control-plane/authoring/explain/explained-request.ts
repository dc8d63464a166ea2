// Explains a whole request: each descriptor's lookup, which rules replace others, and the counter keys in use now.
import {
  createWindows,
  toCounterKey,
  toKeyEnding,
  type Window,
} from '../../../shared/counting/counter-key.ts';
import type { LocatedRule } from '../../../shared/rules/lookup/located-rule.ts';
import { explainingNoMatch, type NoMatch } from '../../../shared/rules/lookup/nearest-rule.ts';
import { createDomainTree } from '../../../shared/rules/lookup/rule-tree.ts';
import type { Entry, Limit, Match } from '../../../shared/rules/rule.ts';
import type { RuleDescriptor } from '../../../shared/rules/rule-document.ts';
import { findingSharers } from '../meeting-counters.ts';
import { explainingLookup, type LookupExplanation } from './lookup-explanation.ts';

export interface ExplainedDescriptor {
  readonly entries: readonly Entry[];
  readonly lookup: LookupExplanation;
  /** Undefined when no rule with a limit matches. */
  readonly matched: MatchedRule | undefined;
  /** When the first rule on the way to the match that has an end ends; wall time in milliseconds. */
  readonly untilMs: number | undefined;
  /** Set where no rule matches the descriptor, not even an exemption. */
  readonly noMatch: NoMatch | undefined;
}

export interface MatchedRule {
  readonly rule: LocatedRule;
  readonly limit: Limit;
  /** Indexes (from 0) of the descriptors whose rules replace this one, so that it does not apply. */
  readonly replacedBy: readonly number[];
  /** Rules whose requests, with other values, are counted under the same key. */
  readonly sharers: readonly LocatedRule[];
  /** One for each limit of the rule; empty where nothing is counted: unlimited, or replaced. */
  readonly counted: readonly CountedHits[];
}

export interface CountedHits {
  readonly limit: Limit;
  readonly cacheKey: string;
  readonly metricKey: string;
  readonly window: Window;
}

/** Weeks from Thursday and months of 30 days, a worker's defaults; both can be set there
 * (behaviour: windows). */
const windowAt = createWindows({ weekResetDay: 4, calendarMonths: false });

interface Lookup {
  readonly entries: readonly Entry[];
  readonly lookup: LookupExplanation;
  readonly match: Match | undefined;
}

/** `rules` is the top level of the domain, without rules that had ended at `nowMs` (wall time). In steps. */
export function* explainRequest(
  domain: string,
  rules: readonly LocatedRule[],
  descriptors: readonly (readonly Entry[])[],
  nowMs: number,
): Generator<void, ExplainedDescriptor[]> {
  const lookups: Lookup[] = [];
  for (const entries of descriptors) {
    const lookup = yield* explainingLookup(rules, entries);
    lookups.push({ entries, lookup, match: yield* findMatch(domain, lookup, entries) });
    yield;
  }
  const explained: ExplainedDescriptor[] = [];
  for (const each of lookups) explained.push(yield* explainDescriptor(each));
  return explained;

  function* explainDescriptor({
    entries,
    lookup,
    match,
  }: Lookup): Generator<void, ExplainedDescriptor> {
    const untilMs = findEnd(lookup);
    if (lookup.rule === undefined || match === undefined) {
      const noMatch = yield* explainingNoMatch(domain, rules, entries);
      return { entries, lookup, matched: undefined, untilMs, noMatch };
    }
    const { limit } = match;
    const replacedBy = limit.unlimited
      ? []
      : lookups.flatMap((other, number) =>
          other.match?.limit.replaces.includes(limit.name) ? [number] : [],
        );
    const isCounted = limit.unit !== undefined && replacedBy.length === 0;
    const counted = isCounted
      ? (match.parts ?? [match]).map((part) => toCounted(domain, entries, part, nowMs))
      : [];
    const all = { domain, rules };
    const sharers = isCounted ? yield* findingSharers(all, entries, lookup.rule) : [];
    const matched = { rule: lookup.rule, limit, replacedBy, sharers, counted };
    return { entries, lookup, matched, untilMs, noMatch: undefined };
  }
}

/** Matches as a worker does, but in a tree of only the rules on the descriptor's path: a tree of all rules takes long
 * to build. */
function* findMatch(
  domain: string,
  { levels, rule }: LookupExplanation,
  entries: readonly Entry[],
): Generator<void, Match | undefined> {
  if (rule === undefined) return undefined;
  const way = levels.flatMap(({ chosen }) => chosen?.rule.descriptor ?? []);
  const list = way.reduceRight<readonly RuleDescriptor[]>(
    (descriptors, descriptor) => [{ ...descriptor, descriptors }],
    [],
  );
  const { rules } = yield* createDomainTree(domain, [list], false);
  return rules.match(entries);
}

function findEnd({ levels }: LookupExplanation): number | undefined {
  const ends = levels.flatMap(({ chosen }) => chosen?.rule.descriptor.untilMs ?? []);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

function toCounted(
  domain: string,
  entries: readonly Entry[],
  { limit, metricKey, sharedValues }: Match,
  nowMs: number,
): CountedHits {
  const window = windowAt(limit.unit ?? 'second', limit.unitMultiplier, Math.floor(nowMs / 1000));
  const ending = toKeyEnding(limit, window);
  const cacheKey = toCounterKey('', domain, entries, sharedValues, ending);
  return { limit, cacheKey, metricKey, window };
}
