// Finds rules that create a statistic for each value in requests (behaviour: metric-keys). At run time the metrics
// bound their number.
import { createRuleAdvice, type LocatedRule } from '../../../shared/rules/lookup/located-rule.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';

const hint =
  'remove it, list the values, or use share_threshold with a value that ends in *; workers keep RUNTIME_METRIC_NAMES_MAX such names apart and count the rest under one';

/** One warning for each detailed_metric or value_to_metric that has no bound. */
export function findUnboundedMetrics(rules: readonly LocatedRule[]): Problem[] {
  const problems: Problem[] = [];

  const warn = (rule: LocatedRule, flag: Flag, open: LocatedRule) =>
    problems.push(createRuleAdvice('unbounded-metric', rule, flag, describe(flag, open), hint));

  function visit(rule: LocatedRule, above: readonly LocatedRule[]): void {
    const lineage = [...above, rule];
    const { detailedMetric, valueToMetric } = rule.descriptor;
    const open = detailedMetric && isCounted(rule) ? lineage.find(hasOpenValues) : undefined;
    if (open !== undefined) warn(rule, 'detailed_metric', open);
    if (valueToMetric && hasOpenValues(rule) && namesStatistics(rule)) {
      warn(rule, 'value_to_metric', rule);
    }
    for (const child of rule.children) visit(child, lineage);
  }

  for (const rule of rules) visit(rule, []);
  return problems;
}

type Flag = 'detailed_metric' | 'value_to_metric';

function describe(flag: Flag, { descriptor }: LocatedRule): string {
  const values = descriptor.value === '' ? 'any value' : 'any value that matches its pattern';
  return `${flag} makes a statistic of each value that requests bring: key '${descriptor.key}' is for ${values}`;
}

/** True when the values in the statistics' names do not come from the configuration. */
function hasOpenValues({ descriptor, isWildcard }: LocatedRule): boolean {
  if (descriptor.value === '') return true;
  // The name of a shared pattern includes only the part before its star.
  return isWildcard && !(descriptor.shareThreshold && !descriptor.key.includes('*'));
}

function isCounted({ descriptor }: LocatedRule): boolean {
  return descriptor.rateLimit !== undefined && !descriptor.rateLimit.unlimited;
}

/** A limit with detailed_metric has its own name, whatever the rules above it. */
function namesStatistics(rule: LocatedRule): boolean {
  const isNamed = isCounted(rule) && !rule.descriptor.detailedMetric;
  return isNamed || rule.children.some(namesStatistics);
}
