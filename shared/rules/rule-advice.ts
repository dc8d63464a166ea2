// Finds what is legal in rules but probably not meant, across all documents. For people who check or
// publish rules; workers skip it.

import { createProblemList } from './document-reporter.ts';
import { findEndedRules } from './ended-rules.ts';
import { placeRules } from './placed-rule.ts';
import type { Problem } from './problem.ts';
import type { RuleDocument } from './rule-document.ts';
import { documentsAt } from './rule-end.ts';
import { findShadowModeOnly } from './shadow-mode-only.ts';
import { findUnboundedMetrics } from './unbounded-metrics.ts';
import { findUnreachableRules } from './unreachable-rules.ts';
import { findWorkerOnlyFields } from './worker-only-fields.ts';

/** Warnings, bounded in number as in `ProblemList`. Documents of one domain are taken as merged. `nowMs`:
 * wall time, by which rules have ended. */
export function adviseOnRules(documents: readonly RuleDocument[], nowMs = Date.now()): Problem[] {
  const list = createProblemList('(all documents)');
  // A rule that ends may repeat one that does not.
  const lasting = placeRules(documentsAt(documents, Number.POSITIVE_INFINITY));
  for (const [domain, rules] of placeRules(documents)) {
    for (const find of [findUnreachableRules, findUnboundedMetrics]) {
      find(lasting.get(domain) ?? []).forEach(list.add);
    }
    findWorkerOnlyFields(rules).forEach(list.add);
    findEndedRules(rules, nowMs).forEach(list.add);
  }
  findShadowModeOnly([...lasting.values()].flat()).forEach(list.add);
  return list.toProblems();
}
