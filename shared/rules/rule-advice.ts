// Finds what is legal in rules but probably not meant, across all documents. For people who check or
// publish rules; workers skip it.

import { createProblemList } from './document-reporter.ts';
import { placeRules } from './placed-rule.ts';
import type { Problem } from './problem.ts';
import type { RuleDocument } from './rule-document.ts';
import { findShadowModeOnly } from './shadow-mode-only.ts';
import { findUnboundedMetrics } from './unbounded-metrics.ts';
import { findUnreachableRules } from './unreachable-rules.ts';
import { findWorkerOnlyFields } from './worker-only-fields.ts';

/** Warnings, bounded in number as in `ProblemList`. Documents of one domain are taken as merged. */
export function adviseOnRules(documents: readonly RuleDocument[]): Problem[] {
  const list = createProblemList('(all documents)');
  const domains = [...placeRules(documents).values()];
  for (const rules of domains) {
    for (const find of [findUnreachableRules, findUnboundedMetrics, findWorkerOnlyFields]) {
      find(rules).forEach(list.add);
    }
  }
  findShadowModeOnly(domains.flat()).forEach(list.add);
  return list.toProblems();
}
