// Finds limits that a policy does not allow, each with its position. policy-guard.ts judges changes.
import { runAtOnce } from '../../../shared/in-slices.ts';
import { groupByDomain } from '../../../shared/rules/file-order.ts';
import {
  createRuleAdvice,
  type LocatedRule,
  locateDocuments,
} from '../../../shared/rules/lookup/located-rule.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import type { RateLimitBlock, RuleDocument } from '../../../shared/rules/rule-document.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { matchesGlob } from '../glob.ts';
import { type Bound, type DomainPolicy, type Policy, policyFile } from './policy-file.ts';

export interface Violation {
  /** Equal for the same violation of the same rule, wherever the rule is in the files. */
  readonly identity: string;
  /** The owners in the policy, who can approve the violation. */
  readonly owners: readonly string[] | undefined;
  /** A warning. */
  readonly problem: Problem;
}

export function findViolations(
  policy: Policy,
  documents: readonly RuleDocument[],
): readonly Violation[] {
  return runAtOnce(findingViolations(policy, documents));
}

/** Like `findViolations`, in steps. */
export function* findingViolations(
  policy: Policy,
  documents: readonly RuleDocument[],
): Generator<void, readonly Violation[]> {
  if (policy.policies.length === 0) return [];
  const found: Violation[] = [];
  for (const [domain, group] of groupByDomain(documents)) {
    const policies = yield* policiesOf(policy, domain);
    if (policies.length > 0) yield* visit(yield* locateDocuments(group), [domain], policies, found);
    yield;
  }
  return found;
}

/** In steps. */
export function* policiesOf(
  { policies }: Policy,
  domain: string,
): Generator<void, readonly DomainPolicy[]> {
  const found: DomainPolicy[] = [];
  for (const policy of policies) {
    for (const pattern of policy.domains) {
      yield;
      if (!matchesGlob(pattern, domain)) continue;
      found.push(policy);
      break;
    }
  }
  return found;
}

/** The policy's file and line. */
export function positionOf({ line }: Pick<DomainPolicy, 'line'>): string {
  return line === undefined ? policyFile : `${policyFile}:${line}`;
}

function* visit(
  rules: readonly LocatedRule[],
  above: readonly string[],
  policies: readonly DomainPolicy[],
  found: Violation[],
): Generator<void, void> {
  for (const rule of rules) {
    yield;
    const names = [...above, rule.composite];
    const { rateLimit, furtherLimits } = rule.descriptor;
    const limits = rateLimit === undefined ? [] : [rateLimit, ...furtherLimits];
    for (const policy of policies) {
      for (const limit of limits) {
        for (const message of describeViolations(policy, rule, limit)) {
          const problem = createRuleAdvice('policy', rule, undefined, message, hint(policy));
          found.push({
            identity: JSON.stringify([names, message]),
            owners: policy.owners,
            problem,
          });
        }
      }
    }
    if (rule.children.length > 0) yield* visit(rule.children, names, policies, found);
  }
}

function hint(policy: DomainPolicy): string {
  return `the policy is at ${positionOf(policy)}`;
}

function describeViolations(
  policy: DomainPolicy,
  { descriptor }: LocatedRule,
  limit: RateLimitBlock,
): readonly string[] {
  const missing = policy.require.filter((field) =>
    field === 'name' ? limit.name === '' : !hasMetadata(descriptor.metadata, field),
  );
  return [
    ...missing.map((field) => `the policy requires ${toExcerpt(field)}, which the limit lacks`),
    ...(limit.unlimited
      ? policy.allowsUnlimited
        ? []
        : ['the policy forbids unlimited']
      : policy.bounds.flatMap((bound) => describeBound(bound, limit))),
  ];
}

function hasMetadata(metadata: object | undefined, field: string): boolean {
  const key = field.slice('metadata.'.length);
  return metadata !== undefined && Object.hasOwn(metadata, key);
}

function describeBound(
  { unit, least, most }: Bound,
  { unit: counted, requestsPerUnit, unitMultiplier, burst }: RateLimitBlock,
): readonly string[] {
  if (unit !== undefined && unit !== counted) return [];
  const forOne = requestsPerUnit / unitMultiplier;
  const shown = `${Number(forOne.toFixed(3))} for one ${counted}`;
  if (forOne < least) return [`the limit is ${shown}, and the policy requires at least ${least}`];
  if (forOne > most) return [`the limit is ${shown}, and the policy allows at most ${most}`];
  if (burst === undefined || burst / unitMultiplier <= most) return [];
  const allowed = `${most} for one ${counted}`;
  return [`the burst is ${burst}, and the policy allows at most ${allowed}`];
}
