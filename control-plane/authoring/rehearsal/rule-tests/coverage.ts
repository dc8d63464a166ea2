// Finds the limits that no test reaches.
import { compareFiles } from '../../../../shared/rules/file-order.ts';
import {
  type PlacedRule,
  placeRules,
  toPlaceText,
} from '../../../../shared/rules/lookup/placed-rule.ts';
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
  reached(rule: PlacedRule): void;
  /** All limits, ordered by file and line. */
  limits(): readonly CoveredLimit[];
}

export function createCoverage(): Coverage {
  const limits = new Map<string, { readonly name: string; readonly rule: PlacedRule }>();
  const places = new Set<string>();

  function addAll(rules: readonly PlacedRule[], prefix: string): void {
    for (const rule of rules) {
      const name = `${prefix}.${rule.composite}`;
      if (rule.descriptor.rateLimit !== undefined) limits.set(toPlaceText(rule), { name, rule });
      addAll(rule.children, name);
    }
  }

  return {
    add(documents) {
      for (const [domain, rules] of placeRules(documents)) addAll(rules, domain);
    },
    reached(rule) {
      places.add(toPlaceText(rule));
    },
    limits: () =>
      [...limits]
        .sort(([, { rule: a }], [, { rule: b }]) => compareRules(a, b))
        .map(([place, { name }]) => ({ name, place, isReached: places.has(place) })),
  };
}

function compareRules(a: PlacedRule, b: PlacedRule): number {
  if (a.document.file !== b.document.file) return compareFiles(a.document.file, b.document.file);
  return (a.descriptor.position?.line ?? 0) - (b.descriptor.position?.line ?? 0);
}
