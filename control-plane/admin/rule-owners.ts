// Finds the rule that the counts of a metric key belong to. A metric key is a rule's name, followed by values of
// requests or the window of a list of limits where the rule counts these apart. Pure.
import {
  sanitizeMetricName,
  toMetricKey,
  toSegment,
  toSharedPart,
} from '../../shared/rules/lookup/metric-key.ts';
import type { PlacedRule } from '../../shared/rules/lookup/placed-rule.ts';
import { toSegments } from '../../shared/rules/lookup/rule-limit.ts';
import type { RuleDescriptor, RuleDocument } from '../../shared/rules/rule-document.ts';
import type { RuleSeries } from '../fleet/rule-rates.ts';
import { placedRules, type RuleRow, rowsOf } from './rule-rows.ts';

export interface RuleOwners {
  /** Undefined where the rules in force have none for it. */
  find(metricKey: string): RuleRow | undefined;
  /** The window of the limit, such as `minute`, where the key is of one limit of a list, whose hits the key of the rule
   * has as well. */
  limitOf(metricKey: string): string | undefined;
}

/** A rule as workers count it. */
interface CountedRule {
  readonly row: RuleRow;
  /** Its metric keys without values of requests, by the settings that a worker may have. */
  readonly names: readonly string[];
  /** Of the limits of its list, the last segments of their metric keys. */
  readonly segments: readonly string[];
}

const known = new WeakMap<readonly RuleDocument[], RuleOwners>();

/** The owners in these documents; made once. */
export function ruleOwners(documents: readonly RuleDocument[]): RuleOwners {
  const before = known.get(documents);
  if (before !== undefined) return before;
  const owners = createRuleOwners([...placedRules(documents)].flatMap(countedRules));
  known.set(documents, owners);
  return owners;
}

function countedRules([domain, rules]: readonly [
  domain: string,
  rules: readonly PlacedRule[],
]): CountedRule[] {
  const rows = rowsOf(domain, rules);
  // In the order of the rows: a parent before its children.
  return lineagesOf(rules, []).flatMap((lineage, index) => {
    const row = rows[index];
    const last = lineage.at(-1);
    return row && last ? { row, names: namesOf(domain, lineage), segments: segmentsOf(last) } : [];
  });
}

function lineagesOf(
  rules: readonly PlacedRule[],
  above: readonly RuleDescriptor[],
): (readonly RuleDescriptor[])[] {
  return rules.flatMap(({ descriptor, children }) => {
    const lineage = [...above, descriptor];
    return [lineage, ...lineagesOf(children, lineage)];
  });
}

/** A shared counter is named without its `*`. */
function namesOf(domain: string, lineage: readonly RuleDescriptor[]): string[] {
  const segments = lineage.map(({ key, value, shareThreshold }) =>
    toSegment(key, shareThreshold ? toSharedPart(value) : value),
  );
  return [false, true].map((sanitizeDots) =>
    sanitizeMetricName(toMetricKey(domain, segments, sanitizeDots)),
  );
}

function segmentsOf({ rateLimit, furtherLimits }: RuleDescriptor): readonly string[] {
  return rateLimit === undefined || furtherLimits.length === 0
    ? []
    : toSegments([rateLimit, ...furtherLimits]);
}

export function createRuleOwners(rules: readonly CountedRule[]): RuleOwners {
  const byName = new Map(rules.map((rule) => [rule.row.rule, rule]));
  for (const rule of rules) {
    for (const name of rule.names) if (!byName.has(name)) byName.set(name, rule);
  }
  // Workers may name thousands of keys, each long and with an end after every character.
  const lengths = [...new Set([...byName.keys()].map((name) => name.length))].sort((a, b) => b - a);

  /** The longest known name that the key begins with, up to a `.` or `_`. */
  function find(metricKey: string): CountedRule | undefined {
    for (const end of lengths) {
      const isEnd = end === metricKey.length || metricKey[end] === '.' || metricKey[end] === '_';
      const rule = isEnd ? byName.get(metricKey.slice(0, end)) : undefined;
      if (rule !== undefined) return rule;
    }
    return undefined;
  }

  return {
    find: (metricKey) => find(metricKey)?.row,
    limitOf: (metricKey) =>
      byName.has(metricKey)
        ? undefined
        : find(metricKey)?.segments.find((segment) => metricKey.endsWith(`.${segment}`)),
  };
}

/** Whether a metric key is of this domain: a longer domain may begin with its name and a dot. */
export function createIsOfDomain(
  domain: string,
  documents: readonly RuleDocument[],
): (metricKey: string) => boolean {
  const longer = documents
    .map((each) => `${each.domain}.`)
    .filter((start) => start.startsWith(`${domain}.`) && start !== `${domain}.`);
  return (key) => key.startsWith(`${domain}.`) && !longer.some((start) => key.startsWith(start));
}

/** Under the names of their rules, without what single limits of a list count of the same hits; what belongs to no rule
 * stays under its metric key. */
export function nameRules(all: readonly RuleSeries[], owners: RuleOwners): RuleSeries[] {
  return all
    .filter(({ rule }) => owners.limitOf(rule) === undefined)
    .map((series) => ({ ...series, rule: owners.find(series.rule)?.rule ?? series.rule }));
}

export function isInShadowMode(row: RuleRow | undefined): boolean {
  return row?.modes.includes('shadow_mode') === true;
}
