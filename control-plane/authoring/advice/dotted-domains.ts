// Finds domains with dots: the labels of Prometheus are taken from the parts of a statistic's name, which dots separate.
import { createRuleAdvice, type PlacedRule } from '../../../shared/rules/lookup/placed-rule.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';

/** At most one note for a domain, at its first rule. */
export function findDottedDomain(rules: readonly PlacedRule[]): Problem[] {
  const [first] = rules;
  if (first === undefined || !first.document.domain.includes('.')) return [];
  const { document } = first;
  const [label = '', ...rest] = document.domain.split('.');
  const message = `the domain has dots, so the labels of its statistics in Prometheus fall apart: domain="${toExcerpt(label)}", key1="${toExcerpt(rest[0] ?? '')}"`;
  const hint = `name it '${toExcerpt(document.domain.replaceAll('.', '-'))}', in Envoy too, or map its statistics with PULLMETRICS_MAPPER_YAML`;
  const advice = createRuleAdvice('dotted-domain', first, undefined, message, hint);
  return [{ ...advice, path: 'domain', ...document.position }];
}
