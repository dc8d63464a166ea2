// Explains a whole request: each descriptor's lookup, which rules replace others, and the keys under which
// hits are counted now.
import {
  createWindows,
  toCounterKey,
  toKeyEnding,
  type Window,
} from '../../shared/counting/counter-key.ts';
import { explainNoMatch, type NoMatch } from '../../shared/rules/lookup/nearest-rule.ts';
import type { PlacedRule } from '../../shared/rules/lookup/placed-rule.ts';
import { findingSharers } from '../../shared/rules/meeting-counters.ts';
import type { DomainRules, Entry, Limit, Match } from '../../shared/rules/rule.ts';
import { explainLookup, type LookupExplanation } from './lookup-explanation.ts';

export interface ExplainedDescriptor {
  readonly entries: readonly Entry[];
  readonly lookup: LookupExplanation;
  /** Undefined when no rule with a limit matches. */
  readonly matched: MatchedRule | undefined;
  /** When a rule on the way to the match ends, the first one of them; wall time in milliseconds. */
  readonly untilMs: number | undefined;
  /** Set where no rule matches the descriptor, not even as an exemption. */
  readonly noMatch: NoMatch | undefined;
}

export interface MatchedRule {
  readonly rule: PlacedRule;
  readonly limit: Limit;
  /** Numbers (from 0) of the descriptors whose rules replace this one, so that it does not apply. */
  readonly replacedBy: readonly number[];
  /** Rules by which requests with other values are counted under the same key. */
  readonly sharers: readonly PlacedRule[];
  /** For each limit of the rule; empty where nothing is counted: unlimited, or replaced. */
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

/** `rules` is the top level of the domain, without what has ended at `nowMs`, wall time. In steps. */
export function* explainRequest(
  rules: readonly PlacedRule[],
  domainRules: DomainRules,
  descriptors: readonly (readonly Entry[])[],
  nowMs: number,
): Generator<void, ExplainedDescriptor[]> {
  const matches = descriptors.map((entries) => domainRules.match(entries));
  const explained: ExplainedDescriptor[] = [];
  for (const [index, entries] of descriptors.entries()) {
    explained.push(yield* explainDescriptor(entries, index));
    yield;
  }
  return explained;

  function* explainDescriptor(
    entries: readonly Entry[],
    index: number,
  ): Generator<void, ExplainedDescriptor> {
    const lookup = explainLookup(rules, entries);
    yield;
    const untilMs = findEnd(lookup);
    const match = matches[index];
    if (lookup.rule === undefined || match === undefined) {
      const noMatch = explainNoMatch(domainRules.domain, rules, entries);
      return { entries, lookup, matched: undefined, untilMs, noMatch };
    }
    const { limit } = match;
    const replacedBy = limit.unlimited
      ? []
      : matches.flatMap((other, number) =>
          other?.limit.replaces.includes(limit.name) ? [number] : [],
        );
    const isCounted = limit.unit !== undefined && replacedBy.length === 0;
    const counted = isCounted
      ? (match.parts ?? [match]).map((part) => toCounted(domainRules.domain, entries, part, nowMs))
      : [];
    const all = { domain: domainRules.domain, rules };
    const sharers = isCounted ? yield* findingSharers(all, entries, lookup.rule) : [];
    const matched = { rule: lookup.rule, limit, replacedBy, sharers, counted };
    return { entries, lookup, matched, untilMs, noMatch: undefined };
  }
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
