// Finds the limits that no test reaches.
import { compareFiles } from '../../../../shared/rules/file-order.ts';
import {
  type LocatedRule,
  locateRules,
  toPositionText,
} from '../../../../shared/rules/lookup/located-rule.ts';
import type { RuleDocument } from '../../../../shared/rules/rule-document.ts';

export interface CoveredLimit {
  /** The domain and the rule of each level, joined by dots. */
  readonly name: string;
  /** `file:line:column`. */
  readonly place: string;
  readonly isReached: boolean;
}

export interface Coverage {
  /** Adds the rules of a test; the same rules can be added again. */
  add(documents: readonly RuleDocument[]): void;
  reached(rule: LocatedRule): void;
  /** All limits, ordered by file and line. */
  limits(): readonly CoveredLimit[];
}

export function createCoverage(): Coverage {
  const limits = new Map<string, { readonly name: string; readonly rule: LocatedRule }>();
  const positions = new Set<string>();

  function addAll(rules: readonly LocatedRule[], prefix: string): void {
    for (const rule of rules) {
      const name = `${prefix}.${rule.composite}`;
      if (rule.descriptor.rateLimit !== undefined) limits.set(toPositionText(rule), { name, rule });
      addAll(rule.children, name);
    }
  }

  return {
    add(documents) {
      for (const [domain, rules] of locateRules(documents)) addAll(rules, domain);
    },
    reached(rule) {
      positions.add(toPositionText(rule));
    },
    limits: () =>
      [...limits]
        .sort(([, { rule: a }], [, { rule: b }]) => compareRules(a, b))
        .map(([place, { name }]) => ({ name, place, isReached: positions.has(place) })),
  };
}

function compareRules(a: LocatedRule, b: LocatedRule): number {
  if (a.document.file !== b.document.file) return compareFiles(a.document.file, b.document.file);
  return (a.descriptor.position?.line ?? 0) - (b.descriptor.position?.line ?? 0);
}
