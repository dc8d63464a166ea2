// Finds the rule that the counts of a metric key belong to. A metric key is a rule's name, followed by values of
// requests or the window of a list of limits where the rule counts these apart. Pure.
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import type { RuleSeries } from '../fleet/rule-rates.ts';
import { placedRules, type RuleRow, rowsOf } from './rule-rows.ts';

export interface RuleOwners {
  /** Undefined where the rules in force have none for it. */
  find(metricKey: string): RuleRow | undefined;
}

const known = new WeakMap<readonly RuleDocument[], RuleOwners>();

/** The owners in these documents; made once. */
export function ruleOwners(documents: readonly RuleDocument[]): RuleOwners {
  const before = known.get(documents);
  if (before !== undefined) return before;
  const rows = [...placedRules(documents)].flatMap(([domain, rules]) => rowsOf(domain, rules));
  const owners = createRuleOwners(rows);
  known.set(documents, owners);
  return owners;
}

export function createRuleOwners(rows: readonly RuleRow[]): RuleOwners {
  const byName = new Map(rows.map((row) => [row.rule, row]));
  // Workers may name thousands of keys, each long and with an end after every character.
  const lengths = [...new Set(rows.map(({ rule }) => rule.length))].sort((a, b) => b - a);
  return {
    /** The longest known name that the key begins with, up to a `.` or `_`. */
    find(metricKey) {
      for (const end of lengths) {
        const isEnd = end === metricKey.length || metricKey[end] === '.' || metricKey[end] === '_';
        const row = isEnd ? byName.get(metricKey.slice(0, end)) : undefined;
        if (row !== undefined) return row;
      }
      return undefined;
    },
  };
}

/** Under the names of their rules; what belongs to no rule stays under its metric key. */
export function nameRules(all: readonly RuleSeries[], owners: RuleOwners): RuleSeries[] {
  return all.map((series) => ({ ...series, rule: owners.find(series.rule)?.rule ?? series.rule }));
}

export function isInShadowMode(row: RuleRow | undefined): boolean {
  return row?.modes.includes('shadow_mode') === true;
}
