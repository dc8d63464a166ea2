// The rules that a revision takes out of domains which it keeps, by the names under which workers count their hits: what
// comes for them finds no rule any more, which is no harm where it is intended (rollout/facts.ts). Pure.
import { sanitizeMetricName } from '../../../shared/rules/lookup/metric-key.ts';
import { toSegments } from '../../../shared/rules/lookup/rule-limit.ts';
import type { RuleDescriptor } from '../../../shared/rules/rule-document.ts';
import type { CheckedDomainRules, CheckedRules } from '../../authoring/checked-rules.ts';

/** What becomes of the hits of a metric key. `listed`: those of one limit of a list that is gone, which its rule counts too. */
export type Fate = 'kept' | 'gone' | 'listed';

export class LostRules {
  /** Whether the domain gets no rule in their place: the new name of a rule, which may be misspelt, is one. */
  readonly isPure: boolean;
  readonly #domain: string;
  readonly #fates: ReadonlyMap<string, Fate>;

  constructor(domain: string, isPure: boolean, fates: ReadonlyMap<string, Fate>) {
    this.isPure = isPure;
    this.#domain = domain;
    this.#fates = fates;
  }

  /** Of a metric key of the domain: that of the longest name that it begins with. */
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

/** By the sanitized names of domains, those that lose rules. In steps. */
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
  const kept = new Set<string>();
  for (const { name } of after.named()) {
    kept.add(toCountedName(domain, name));
    yield;
  }
  const had = new Set<string>();
  const fates = new Map<string, Fate>();
  for (const { name, rule } of before.named()) {
    yield;
    const counted = toCountedName(domain, name);
    had.add(counted);
    if (kept.has(counted)) continue;
    fates.set(counted, 'gone');
    for (const segment of toListed(rule)) fates.set(`${counted}_${segment}`, 'listed');
  }
  if (fates.size === 0) return undefined;
  let isPure = true;
  for (const name of kept) {
    yield;
    isPure &&= had.has(name);
    // It begins with the name of one that is gone.
    if (findFate(fates, name) !== 'kept') fates.set(name, 'kept');
  }
  return new LostRules(domain, isPure, fates);
}

/** The last segments of the metric keys of its limits, where it has several. */
function toListed({ rateLimit, furtherLimits }: RuleDescriptor): readonly string[] {
  return rateLimit && furtherLimits.length > 0 ? toSegments([rateLimit, ...furtherLimits]) : [];
}

/** Without its domain: workers may count with `_` in place of dots, and without the `*` of a shared counter. */
function toCountedName(domain: string, name: string): string {
  return sanitizeMetricName(name.slice(domain.length + 1))
    .replaceAll('.', '_')
    .replaceAll('*', '');
}
