// Finds legal but probably unintended parts of rules, across all documents. Shown to users who check or publish rules;
// workers skip it.
import { runAtOnce } from '../../../shared/in-slices.ts';
import { groupByDomain } from '../../../shared/rules/file-order.ts';
import {
  createRuleAdvice,
  type LocatedRule,
  locateDocuments,
} from '../../../shared/rules/lookup/located-rule.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { Reporter } from '../../../shared/rules/problem/reporter.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { documentsAt, toTimeText } from '../../../shared/rules/rule-end.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { findMeetingCounters } from '../meeting-counters.ts';
import { findFreedValues } from './freed-values.ts';
import { findUnboundedMetrics } from './unbounded-metrics.ts';
import { findUnreachableRules } from './unreachable-rules.ts';
import { findWorkerOnlyFields } from './worker-only-fields.ts';

/** Warnings, bounded in number as in `Reporter`. Documents of one domain are treated as merged. `nowMs`: the wall time
 * that decides which rules have ended. */
export function adviseOnRules(documents: readonly RuleDocument[], nowMs = Date.now()): Problem[] {
  return runAtOnce(advisingOnRules(documents, nowMs));
}

/** Like `adviseOnRules`, as a generator that yields after each domain. */
export function* advisingOnRules(
  documents: readonly RuleDocument[],
  nowMs: number,
): Generator<void, Problem[]> {
  const reporter = new Reporter('(all documents)');
  // A rule that ends may repeat one that does not.
  const lastingByDomain = groupByDomain(documentsAt(documents, Number.POSITIVE_INFINITY));
  const shadowed = new ShadowModeOnly();
  // One domain at a time: placed rules take more memory than their documents.
  for (const [domain, group] of groupByDomain(documents)) {
    const rules = runAtOnce(locateDocuments(group));
    const lastingGroup = lastingByDomain.get(domain) ?? [];
    const lasting = areSame(group, lastingGroup) ? rules : runAtOnce(locateDocuments(lastingGroup));
    for (const find of [findUnreachableRules, findFreedValues, findUnboundedMetrics]) {
      reporter.addAll(find(lasting));
    }
    reporter.addAll(findDottedDomain(rules));
    reporter.addAll(findMeetingCounters(domain, lasting));
    reporter.addAll(findWorkerOnlyFields(rules));
    reporter.addAll(findEndedRules(rules, nowMs));
    shadowed.check(lasting);
    yield;
  }
  reporter.addAll(shadowed.toProblems());
  return reporter.toProblems();
}

function areSame(a: readonly RuleDocument[], b: readonly RuleDocument[]): boolean {
  return a.length === b.length && a.every((document, index) => document === b[index]);
}

/** A domain with dots: Prometheus labels are made from the parts of a statistic's name, which dots separate. At most
 * one note, at the first rule. */
function findDottedDomain(rules: readonly LocatedRule[]): Problem[] {
  const [first] = rules;
  if (first === undefined || !first.document.domain.includes('.')) return [];
  const { document } = first;
  const [label = '', ...rest] = document.domain.split('.');
  const message = `the domain has dots, so the labels of its statistics in Prometheus fall apart: domain="${toExcerpt(label)}", key1="${toExcerpt(rest[0] ?? '')}"`;
  const hint = `name it '${toExcerpt(document.domain.replaceAll('.', '-'))}', in Envoy too, or map its statistics with PULLMETRICS_MAPPER_YAML`;
  const advice = createRuleAdvice('dotted-domain', first, undefined, message, hint);
  return [{ ...advice, path: 'domain', ...document.position }];
}

/** Rules that have ended have no effect and only clutter the file. Each gets a note, its children do not: a good
 * document must stay good as time passes. */
function findEndedRules(rules: readonly LocatedRule[], nowMs: number): Problem[] {
  return rules.flatMap((rule) => {
    const { untilMs } = rule.descriptor;
    if (untilMs === undefined || untilMs > nowMs) return findEndedRules(rule.children, nowMs);
    const message = `this rule ended at ${toTimeText(untilMs)}, it has no effect`;
    return [createRuleAdvice('ended-rule', rule, 'until', message, 'remove it')];
  });
}

/** If every limit is in shadow mode, this is legal but probably left over from a trial: at most one warning, at the
 * first limit. */
class ShadowModeOnly {
  #first: LocatedRule | undefined;
  #isRefuted = false;

  /** `rules` is one level. An unlimited rule refuses no request in any mode. */
  check(rules: readonly LocatedRule[]): void {
    for (const rule of rules) {
      if (this.#isRefuted) return;
      const { rateLimit, shadowMode } = rule.descriptor;
      if (rateLimit !== undefined && !rateLimit.unlimited) {
        this.#first ??= rule;
        this.#isRefuted = !shadowMode;
      }
      this.check(rule.children);
    }
  }

  toProblems(): Problem[] {
    if (this.#first === undefined || this.#isRefuted) return [];
    const message = 'every limit is in shadow mode, so no request is ever refused';
    const hint = 'remove shadow_mode where a limit should refuse';
    return [createRuleAdvice('shadow-mode-only', this.#first, 'shadow_mode', message, hint)];
  }
}

/** The given problems, with keys that have no effect at their position as errors. A worker ignores such keys, as the
 * reference does; authors must be warned, since the file reads as if a limit were enforced (or not) when the opposite
 * is true. */
export function refuseMisplacedKeys(problems: readonly Problem[]): Problem[] {
  return problems.map((problem) =>
    problem.rule === 'misplaced-key' ? { ...problem, severity: 'error' } : problem,
  );
}
