// Finds the rule that the counts of a metric key are attributed to. A metric key is a rule's name, followed by values
// of requests or the window of one limit of a list, if the rule counts these separately. Pure.
import { MadeOnce } from '../../../shared/made-once.ts';
import {
  sanitizeMetricName,
  toMetricKey,
  toSegment,
  toSharedPart,
} from '../../../shared/rules/lookup/metric-key.ts';
import { toSegments } from '../../../shared/rules/lookup/rule-limit.ts';
import type { RuleDescriptor, RuleDocument } from '../../../shared/rules/rule-document.ts';
import { maxNameLength } from '../fleet/limits.ts';
import type { RuleSeries } from '../fleet/rule-rates.ts';
import { type ListedRule, lineageOf, listRules, locatingRules } from './rule-rows.ts';

export interface RuleOwners {
  /** Undefined if the rules in force have none for it. */
  find(metricKey: string): ListedRule | undefined;
  /** The rule's name, or the metric key without one. */
  nameOf(metricKey: string): string;
  /** The window of the limit, such as `minute`, if the key is of one limit of a list; the rule's own key includes its
   * hits. */
  limitOf(metricKey: string): string | undefined;
}

/** No metric key of a rule with a longer name is counted: it would lack one `*` for each level of the rule at most. */
const longestReported = 2 * maxNameLength;

/** Rules, or metric keys, per step. */
const rulesAtOnce = 50;

const ownersByDocuments = new MadeOnce<readonly RuleDocument[], RuleOwners>();

/** The owners in these documents; built once. In steps. */
export function findingRuleOwners(documents: readonly RuleDocument[]): Generator<void, RuleOwners> {
  return ownersByDocuments.of(documents, () => creatingRuleOwners(documents));
}

function* creatingRuleOwners(documents: readonly RuleDocument[]): Generator<void, RuleOwners> {
  const located = yield* locatingRules(documents);
  const byName = new Map<string, ListedRule>();
  let seen = 0;
  // A rule's name takes precedence over the metric key of another rule.
  for (const namesOf of [nameOf, metricNamesOf]) {
    for (const [domain, rules] of located) {
      for (const rule of listRules(domain, rules)) {
        if (++seen % rulesAtOnce === 0) yield;
        if (rule.name.length > longestReported) continue;
        for (const name of namesOf(domain, rule)) if (!byName.has(name)) byName.set(name, rule);
      }
    }
  }
  // Workers may report thousands of keys, each long and with a separator after every character.
  const lengths = new Set<number>();
  for (const name of byName.keys()) lengths.add(name.length);
  const longestFirst = [...lengths].sort((a, b) => b - a);

  /** The longest known name that the key begins with, up to a `.` or `_`. */
  function find(metricKey: string): ListedRule | undefined {
    for (const end of longestFirst) {
      const isEnd = end === metricKey.length || metricKey[end] === '.' || metricKey[end] === '_';
      const rule = isEnd ? byName.get(metricKey.slice(0, end)) : undefined;
      if (rule !== undefined) return rule;
    }
    return undefined;
  }

  return {
    find,
    nameOf: (metricKey) => find(metricKey)?.name ?? metricKey,
    limitOf(metricKey) {
      if (byName.has(metricKey)) return undefined;
      const segments = segmentsOf(find(metricKey)?.located.descriptor);
      return segments.find((segment) => metricKey.endsWith(`.${segment}`));
    },
  };
}

function nameOf(_domain: string, { name }: ListedRule): string[] {
  return [name];
}

/** The rule's metric keys without values of requests, for each combination of worker settings. A shared counter is
 * named without its `*`. */
function metricNamesOf(domain: string, rule: ListedRule): string[] {
  const segments = lineageOf(rule).map(({ key, value, shareThreshold }) =>
    toSegment(key, shareThreshold ? toSharedPart(value) : value),
  );
  return [false, true].map((sanitizeDots) =>
    sanitizeMetricName(toMetricKey(domain, segments, sanitizeDots)),
  );
}

/** The last segments of the metric keys of a list's limits. */
function segmentsOf(descriptor: RuleDescriptor | undefined): readonly string[] {
  const { rateLimit, furtherLimits = [] } = descriptor ?? {};
  return rateLimit === undefined || furtherLimits.length === 0
    ? []
    : toSegments([rateLimit, ...furtherLimits]);
}

/** Whether a metric key is of this domain: a longer domain name may begin with this one and a dot. */
export function createIsOfDomain(
  domain: string,
  documents: readonly RuleDocument[],
): (metricKey: string) => boolean {
  const longer = documents
    .map((each) => `${each.domain}.`)
    .filter((start) => start.startsWith(`${domain}.`) && start !== `${domain}.`);
  return (key) => key.startsWith(`${domain}.`) && !longer.some((start) => key.startsWith(start));
}

/** Replaces metric keys by the names of their rules, and omits single limits of a list, whose hits the rule includes;
 * keys without a rule stay. In steps. */
export function* namingRules(
  all: readonly RuleSeries[],
  owners: RuleOwners,
): Generator<void, RuleSeries[]> {
  const named: RuleSeries[] = [];
  for (const [index, series] of all.entries()) {
    if (index % rulesAtOnce === rulesAtOnce - 1) yield;
    if (owners.limitOf(series.rule) !== undefined) continue;
    named.push({ ...series, rule: owners.nameOf(series.rule) });
  }
  return named;
}
