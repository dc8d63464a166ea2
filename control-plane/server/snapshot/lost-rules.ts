// The rules that a revision removes from domains that it retains, by the names under which workers count their hits:
// later hits of these names match no rule, which is harmless where the removal is intended (rollout/facts.ts). Pure.
import { sanitizeMetricName } from '../../../shared/rules/lookup/metric-key.ts';
import { toSegments } from '../../../shared/rules/lookup/rule-limit.ts';
import type { RuleDescriptor } from '../../../shared/rules/rule-document.ts';
import type { CheckedDomainRules, CheckedRules } from '../../authoring/checked-rules.ts';

/** What happens to the hits of a metric key. `listed`: the key is of one removed limit of a list, whose hits its rule
 * counts too. */
export type Fate = 'kept' | 'gone' | 'listed';

export class LostRules {
  /** Whether the domain gains no rule in place of the lost ones; a renamed rule, whose new name may be misspelt, is
   * such a replacement. */
  readonly isPure: boolean;
  readonly #domain: string;
  readonly #fates: ReadonlyMap<string, Fate>;

  constructor(domain: string, isPure: boolean, fates: ReadonlyMap<string, Fate>) {
    this.isPure = isPure;
    this.#domain = domain;
    this.#fates = fates;
  }

  /** Returns the fate of the longest known name that the metric key of this domain begins with. */
  fateOf(metricKey: string): Fate {
    return findFate(this.#fates, toCountedName(this.#domain, metricKey));
  }
}

function findFate(fates: ReadonlyMap<string, Fate>, name: string): Fate {
  for (let end = name.length; end > 0; end = name.lastIndexOf('_', end - 1)) {
    const fate = fates.get(name.slice(0, end));
    if (fate !== undefined) return fate;
  }
  return 'kept';
}

/** Finds the domains that lose rules, by their sanitized names. In steps. */
export function* findingLostRules(
  before: CheckedRules,
  after: CheckedRules,
): Generator<void, ReadonlyMap<string, LostRules>> {
  const found = new Map<string, LostRules>();
  for (const [domain, rules] of before.domains) {
    yield;
    const now = after.domains.get(domain);
    if (now === undefined || now === rules) continue;
    const lost = yield* findingLostOf(domain, rules, now);
    if (lost !== undefined) found.set(sanitizeMetricName(domain), lost);
  }
  return found;
}

function* findingLostOf(
  domain: string,
  before: CheckedDomainRules,
  after: CheckedDomainRules,
): Generator<void, LostRules | undefined> {
  const retained = new Set<string>();
  for (const { name } of after.named()) {
    retained.add(toCountedName(domain, name));
    yield;
  }
  const had = new Set<string>();
  const fates = new Map<string, Fate>();
  for (const { name, rule } of before.named()) {
    yield;
    const counted = toCountedName(domain, name);
    had.add(counted);
    if (retained.has(counted)) continue;
    fates.set(counted, 'gone');
    for (const segment of toListed(rule)) fates.set(`${counted}_${segment}`, 'listed');
  }
  if (fates.size === 0) return undefined;
  let isPure = true;
  for (const name of retained) {
    yield;
    isPure &&= had.has(name);
    // The name begins with that of a removed rule.
    if (findFate(fates, name) !== 'kept') fates.set(name, 'kept');
  }
  return new LostRules(domain, isPure, fates);
}

/** The last segments of the metric keys of the rule's limits, where it has several limits. */
function toListed({ rateLimit, furtherLimits }: RuleDescriptor): readonly string[] {
  return rateLimit && furtherLimits.length > 0 ? toSegments([rateLimit, ...furtherLimits]) : [];
}

/** The name without its domain, because workers may count with `_` in place of dots, and without the `*` of a shared
 * counter. */
function toCountedName(domain: string, name: string): string {
  return sanitizeMetricName(name.slice(domain.length + 1))
    .replaceAll('.', '_')
    .replaceAll('*', '');
}
