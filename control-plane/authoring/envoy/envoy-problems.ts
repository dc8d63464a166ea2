// Compares an Envoy configuration with rules: descriptors that no rule matches, and rules that no descriptor reaches.
// At run time both are silent: the request passes.

import { runAtOnce } from '../../../shared/in-slices.ts';
import { didYouMean, nearestWord } from '../../../shared/nearest-word.ts';
import { toLimiter } from '../../../shared/rules/limit-shape.ts';
import {
  createRuleAdvice,
  type LocatedRule,
  locateRules,
  toPositionText,
} from '../../../shared/rules/lookup/located-rule.ts';
import { explainNoMatch, toText } from '../../../shared/rules/lookup/nearest-rule.ts';
import {
  findingPossibleRules,
  type SoughtEntry,
} from '../../../shared/rules/lookup/possible-rules.ts';
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import { Reporter } from '../../../shared/rules/problem/reporter.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { parseYamlTree } from '../../../shared/rules/yaml/yaml-tree.ts';
import type { RulesFile } from '../../../shared/rules-file.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { ActionEntry } from './envoy-action.ts';
import { type AskedDescriptor, type EnvoyFile, readEnvoyQuestions } from './envoy-config.ts';

export interface EnvoyCheckOptions {
  /** Whether a descriptor without a limit is an error. */
  readonly isStrict: boolean;
}

/** Limit of optional entries that are tried in all combinations. */
const maxOptional = 4;
/** Limit of entries of a bucket that are tried in all orders. */
const maxOrdered = 5;
/** Limit of unmatched descriptors that are explained; more are not shown anyway. */
const maxExplained = 200;

export function findEnvoyProblems(
  documents: readonly RuleDocument[],
  files: readonly RulesFile[],
  { isStrict }: EnvoyCheckOptions,
): Problem[] {
  const located = locateRules(documents);
  const parsed: EnvoyFile[] = [];
  const reporters = files.map(({ path, text }) => {
    const { root, reporter } = parseYamlTree(text, path);
    if (root !== undefined && !reporter.hasErrors) parsed.push({ root, reporter });
    return reporter;
  });
  const areAllRead = parsed.length === files.length;
  const { domains, descriptors, unsent, isComplete } = readEnvoyQuestions(parsed);
  const report = isStrict ? 'error' : 'advise';
  const asked = new Set(domains.map(({ domain }) => domain));

  for (const { domain, reporter, offset } of domains) {
    if (located.has(domain)) continue;
    const guess = nearestWord(domain, [...located.keys()]);
    const message = `there are no rules for domain '${toExcerpt(domain)}', so its requests are not limited`;
    reporter[report]('envoy-unknown-domain', offset, '', message, didYouMean(guess));
  }
  for (const { reporter, offset, message, hint } of unsent) {
    reporter[report]('envoy-never-sent', offset, '', message, hint);
  }
  const reached = new Set<LocatedRule>();
  const known = new Map<string, boolean>();
  let unmatched = 0;
  for (const descriptor of descriptors) {
    const rules = located.get(descriptor.domain);
    if (rules === undefined) continue;
    const identity = JSON.stringify([
      descriptor.domain,
      descriptor.cost,
      descriptor.isBucket,
      descriptor.entries.map(({ key, value, isOptional }) => [key, value ?? null, isOptional]),
    ]);
    let isReported = known.get(identity);
    if (isReported === undefined) {
      isReported = reachRules(descriptor, rules, reached);
      known.set(identity, isReported);
    }
    if (isReported || descriptor.hasOwnLimit) continue;
    reportNoRule(descriptor, ++unmatched <= maxExplained ? rules : undefined, report);
  }
  const reporter = new Reporter('(all documents)');
  if (areAllRead && isComplete) {
    for (const [domain, rules] of located) {
      if (asked.has(domain)) reportUnreached(rules, reached, reporter);
      else reportUnasked(domain, documents, reporter);
    }
  }
  return [...reporters.flatMap((one) => one.toProblems()), ...reporter.toProblems()];
}

/** Records the rules that match the descriptor; false when none does. */
function reachRules(
  descriptor: AskedDescriptor,
  rules: readonly LocatedRule[],
  reached: Set<LocatedRule>,
): boolean {
  const { domain, entries, isBucket, hasOwnLimit } = descriptor;
  const matched = new Set<LocatedRule>();
  for (const variant of isBucket ? toOrders(entries) : toVariants(entries)) {
    for (const { rule } of runAtOnce(findingPossibleRules({ name: domain, rules }, variant))
      .matched)
      matched.add(rule);
  }
  for (const rule of matched) {
    reached.add(rule);
    if (!hasOwnLimit) noteCost(descriptor, rule);
  }
  return matched.size > 0;
}

/** A request with more hits than a limit ever admits is always refused. */
function noteCost({ cost, reporter, offset }: AskedDescriptor, rule: LocatedRule): void {
  const { rateLimit, furtherLimits } = rule.descriptor;
  for (const limit of rateLimit === undefined ? [] : [rateLimit, ...furtherLimits]) {
    const most = toLimiter(limit)?.capacity ?? limit.requestsPerUnit;
    // A limit of 0 is refusing on purpose.
    if (limit.unlimited || most === 0 || !(cost > most)) continue;
    const message = `each of these requests has ${cost} hits, and the rule at ${toPositionText(rule)} admits at most ${most} at once: it always refuses them`;
    reporter.advise('envoy-cost', offset, '', message, 'raise the limit or its burst');
    return;
  }
}

/** With and without the entries that a request may lack. */
function toVariants(entries: readonly ActionEntry[]): (readonly SoughtEntry[])[] {
  const optional = entries.filter(({ isOptional }) => isOptional);
  if (optional.length > maxOptional) {
    return [entries, entries.filter(({ isOptional }) => !isOptional)];
  }
  return Array.from({ length: 2 ** optional.length }, (_, bits) =>
    entries.filter((entry) => {
      const index = optional.indexOf(entry);
      return index === -1 || (bits & (1 << index)) === 0;
    }),
  ).filter(({ length }) => length > 0);
}

/** In every order; in the given order only for buckets with more entries than the rules have levels. */
function toOrders(entries: readonly ActionEntry[]): readonly (readonly SoughtEntry[])[] {
  if (entries.length > maxOrdered) return [entries];
  if (entries.length <= 1) return [entries];
  return entries.flatMap((first) =>
    toOrders(entries.filter((entry) => entry !== first)).map((rest) => [first, ...rest]),
  );
}

function reportNoRule(
  { domain, entries, isBucket, reporter, offset }: AskedDescriptor,
  rules: readonly LocatedRule[] | undefined,
  report: 'error' | 'advise',
): void {
  const shown = toExcerpt(entries.map(toText).join(''), 200);
  const what = isBucket ? `the bucket ${shown}, in any order` : shown;
  const message = `no rule of domain '${toExcerpt(domain)}' matches ${what}`;
  const explained = isBucket ? undefined : rules && explainNoMatch(domain, rules, entries);
  if (explained === undefined) {
    reporter[report]('envoy-no-rule', offset, '', message);
    return;
  }
  const { nearest, reason, depth } = explained;
  const position = nearest && toPositionText(nearest.rule);
  const toRule = position && `the nearest rule is at ${position}`;
  const hint =
    explained.hint && position ? `${explained.hint} (${position})` : (explained.hint ?? toRule);
  const at = entries[depth]?.offset ?? offset;
  reporter[report]('envoy-no-rule', at, '', `${message}: ${reason}`, hint);
}

/** The topmost unreached rules: their children are not reported as well. */
function reportUnreached(
  rules: readonly LocatedRule[],
  reached: ReadonlySet<LocatedRule>,
  reporter: Reporter,
): void {
  const leadsOn = (rule: LocatedRule): boolean => reached.has(rule) || rule.children.some(leadsOn);
  for (const rule of rules) {
    const isOnTheWay = leadsOn(rule);
    const isEnd = rule.descriptor.rateLimit !== undefined || rule.children.length === 0;
    if (!isOnTheWay || (isEnd && !reached.has(rule))) {
      const below = isOnTheWay || rule.children.length === 0 ? '' : ', nor those below it';
      const message = `no Envoy action can reach this rule${below}`;
      const hint = 'add an action with its keys in this order, or remove the rule';
      reporter.add(createRuleAdvice('envoy-unreached-rule', rule, undefined, message, hint));
    }
    if (isOnTheWay) reportUnreached(rule.children, reached, reporter);
  }
}

function reportUnasked(
  domain: string,
  documents: readonly RuleDocument[],
  reporter: Reporter,
): void {
  const document = documents.find((each) => each.domain === domain);
  const message = `no Envoy configuration asks about domain '${toExcerpt(domain)}'`;
  const hint = "it is named as 'domain' of a rate limit filter";
  const problem = problemOf('warning', 'envoy-unasked-domain', document?.file ?? '', message, hint);
  reporter.add({ ...problem, path: 'domain', ...document?.position });
}
