// Which rule the counts of a metric key belong to. A metric key is a rule's name, followed by values of
// requests or the window of a list of limits where the rule counts these apart.
import type { RuleRow } from '../../admin/rule-rows.ts';

export interface RuleSeries {
  readonly rule: string;
  /** Per second, in slots of five seconds, the oldest first. */
  readonly hits: readonly number[];
  readonly overLimit: readonly number[];
  readonly nearLimit: readonly number[];
}

/** The series of each rule that has any; what belongs to no rule is left out. */
export function matchRates(
  rules: readonly RuleRow[],
  all: readonly RuleSeries[],
): ReadonlyMap<string, RuleSeries> {
  const known = new Set(rules.map(({ rule }) => rule));
  const found = new Map<string, RuleSeries>();
  for (const series of all) {
    const rule = ownerOf(series.rule, known);
    if (rule === undefined) continue;
    const before = found.get(rule);
    found.set(rule, before === undefined ? series : add(before, series));
  }
  return found;
}

/** The longest known name that the key begins with, up to a `.` or `_`. */
function ownerOf(metricKey: string, known: ReadonlySet<string>): string | undefined {
  for (let end = metricKey.length; end > 0; end--) {
    const isEnd = end === metricKey.length || metricKey[end] === '.' || metricKey[end] === '_';
    if (isEnd && known.has(metricKey.slice(0, end))) return metricKey.slice(0, end);
  }
  return undefined;
}

function add(a: RuleSeries, b: RuleSeries): RuleSeries {
  const sum = (x: readonly number[], y: readonly number[]) =>
    x.map((value, index) => value + (y[index] ?? 0));
  return {
    rule: a.rule,
    hits: sum(a.hits, b.hits),
    overLimit: sum(a.overLimit, b.overLimit),
    nearLimit: sum(a.nearLimit, b.nearLimit),
  };
}

export function averageOf(series: readonly number[] | undefined): number {
  if (series === undefined || series.length === 0) return 0;
  return series.reduce((sum, value) => sum + value, 0) / series.length;
}
