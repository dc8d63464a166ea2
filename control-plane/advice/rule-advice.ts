// Finds parts of rules that are legal but probably not meant, across all documents. People who check or publish
// rules see it; workers skip it.

import { placeRules } from '../../shared/rules/lookup/placed-rule.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';
import { Reporter } from '../../shared/rules/problem/reporter.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { documentsAt } from '../../shared/rules/rule-end.ts';
import { findEndedRules } from './ended-rules.ts';
import { findShadowModeOnly } from './shadow-mode-only.ts';
import { findUnboundedMetrics } from './unbounded-metrics.ts';
import { findUnreachableRules } from './unreachable-rules.ts';
import { findWorkerOnlyFields } from './worker-only-fields.ts';

/** Warnings, bounded in number as in `Reporter`. Documents of one domain are taken as merged. `nowMs`:
 * wall time, by which rules have ended. */
export function adviseOnRules(documents: readonly RuleDocument[], nowMs = Date.now()): Problem[] {
  const reporter = new Reporter('(all documents)');
  // A rule that ends may repeat one that does not.
  const lasting = placeRules(documentsAt(documents, Number.POSITIVE_INFINITY));
  for (const [domain, rules] of placeRules(documents)) {
    for (const find of [findUnreachableRules, findUnboundedMetrics]) {
      reporter.addAll(find(lasting.get(domain) ?? []));
    }
    reporter.addAll(findWorkerOnlyFields(rules));
    reporter.addAll(findEndedRules(rules, nowMs));
  }
  reporter.addAll(findShadowModeOnly([...lasting.values()].flat()));
  return reporter.toProblems();
}
