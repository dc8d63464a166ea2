// The order of a bucket's entries: a bucket has none, rules need one (behaviour: quota-service).
import type { Entry, Nesting } from '../rule.ts';
import type { Level, LevelRule } from './level.ts';

interface NestedRule extends LevelRule {
  readonly limit: object | undefined;
  readonly children: readonly this[];
}

/** Entries can be ordered in many ways: 2,000 tries are far more than authors' rules need. */
const maxTries = 2_000;

/**
 * Finds the order that leads to a rule with a limit for all entries, the first one in configuration order; if none
 * does, the order that leads to a rule without a limit and without rules below. `levelOf` returns the rules below one;
 * `rules` are those of the top level in configuration order.
 */
export function findNesting<Rule extends NestedRule & { readonly level: Level<Rule> | undefined }>(
  root: Level<Rule>,
  rules: readonly Rule[],
  entries: readonly Entry[],
): Nesting | undefined {
  let tries = 0;
  const found: Entry[][] = [];
  let exempting: Entry[] | undefined;

  function search(
    level: Level<Rule>,
    siblings: readonly Rule[],
    path: readonly Entry[],
    left: readonly Entry[],
  ): void {
    const fitting: { readonly entry: Entry; readonly rule: Rule }[] = [];
    for (const entry of left) {
      if (++tries > maxTries) return;
      const rule = level.find(entry.key, entry.value);
      if (rule !== undefined) fitting.push({ entry, rule });
    }
    if (fitting.length > 1) {
      fitting.sort((a, b) => siblings.indexOf(a.rule) - siblings.indexOf(b.rule));
    }
    for (const { entry, rule } of fitting) {
      const next = [...path, entry];
      if (left.length > 1) {
        const rest = left.filter((other) => other !== entry);
        if (rule.level !== undefined) search(rule.level, rule.children, next, rest);
      } else if (rule.limit !== undefined) found.push(next);
      else if (rule.level === undefined) exempting ??= next;
      // Only the existence of a second one matters.
      if (found.length > 1) return;
    }
  }

  search(root, rules, [], entries);
  const first = found[0] ?? exempting;
  return first && { entries: first, isAmbiguous: found.length > 1 };
}
