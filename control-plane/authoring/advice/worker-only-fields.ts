// Finds documents that only our own workers read completely, because the public RateLimitConfig message
// lacks some of their fields (behaviour: fields-of-our-own).

import { createRuleAdvice, type LocatedRule } from '../../../shared/rules/lookup/located-rule.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { listExtensions } from '../../../shared/rules/wire/resource-fields.ts';
import { listOf } from '../../../shared/rules/yaml/map-reader.ts';

const hint =
  'a management server sends them to Ratelane workers only; other workers get the document without them';
const endHint =
  'a management server sends rules with until only to Ratelane workers that can end them; other workers get the document without these rules';

/** One warning for each document, at the first such field. */
export function findWorkerOnlyFields(rules: readonly LocatedRule[]): Problem[] {
  const found = new Map<RuleDocument, { first: LocatedRule; count: number; fields: Set<string> }>();

  function visit(rule: LocatedRule): void {
    const fields = listExtensions(rule.descriptor);
    if (fields.length > 0) {
      const entry = found.get(rule.document) ?? { first: rule, count: 0, fields: new Set() };
      entry.count++;
      for (const field of fields) entry.fields.add(field);
      found.set(rule.document, entry);
    }
    rule.children.forEach(visit);
  }

  rules.forEach(visit);
  return [...found.values()].map(({ first, count, fields }) => {
    const names = listOf([...fields].sort());
    const rest = count === 1 ? '' : `, here and on ${count - 1} more`;
    const message = `over xDS this document needs Ratelane workers: it uses ${names}${rest}, which the public configuration message lacks`;
    const [field] = listExtensions(first.descriptor);
    const who = fields.has('until') ? endHint : hint;
    return createRuleAdvice('worker-only-field', first, field, message, who);
  });
}
