// Valid rules, without the lookup of decisions: that takes twice the memory of the documents, and a control plane,
// which holds several revisions at a time, needs it only briefly and for some of them.
import { runAtOnce } from '../../shared/in-slices.ts';
import { createDomainTree } from '../../shared/rules/lookup/rule-tree.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';
import type { DomainRules } from '../../shared/rules/rule.ts';
import {
  type RuleDescriptor,
  type RuleDocument,
  toCompositeKey,
} from '../../shared/rules/rule-document.ts';
import { DomainsBuilder, type RuleSetOptions } from '../../shared/rules/rule-set.ts';

/** Immutable: a change of configuration creates a new value, in which an unchanged domain is the same object. */
export interface CheckedRules {
  /** Domains that some document defines, by name. */
  readonly domains: ReadonlyMap<string, CheckedDomainRules>;
  readonly limitCount: number;
}

export type CheckResult =
  | { readonly ok: true; readonly rules: CheckedRules; readonly warnings: readonly Problem[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export type RuleCheckOptions = Omit<RuleSetOptions, 'sanitizeMetricDots'>;

export function checkRules(
  documents: readonly RuleDocument[],
  options: RuleCheckOptions,
  nowMs = Date.now(),
): CheckResult {
  return runAtOnce(new RulesChecker(options).check(documents, nowMs));
}

/** Checks one set of rules after another. */
export class RulesChecker {
  readonly #builder: DomainsBuilder<CheckedDomainRules>;

  constructor(options: RuleCheckOptions) {
    const all = { ...options, sanitizeMetricDots: false };
    this.#builder = new DomainsBuilder(all, CheckedDomainRules.create);
  }

  /** Reports the same problems as RuleSetBuilder. */
  *check(documents: readonly RuleDocument[], nowMs: number): Generator<void, CheckResult> {
    const built = yield* this.#builder.build(documents, nowMs);
    if (!built.ok) return built;
    const domains = new Map<string, CheckedDomainRules>();
    let limitCount = 0;
    for (const [name, { made }] of built.domains) {
      if (domains.size % domainsAtOnce === domainsAtOnce - 1) yield;
      domains.set(name, made);
      limitCount += made.limitCount;
    }
    return { ok: true, rules: Object.freeze({ domains, limitCount }), warnings: built.warnings };
  }
}

/** Domains between two yields: well below a millisecond. */
const domainsAtOnce = 500;
const rulesAtOnce = 500;

/** The rules of one domain, without those that had ended when they were checked. */
export class CheckedDomainRules {
  readonly limitCount: number;
  /** The number of names that `limitNames` yields. */
  readonly limitNameCount: number;
  readonly #domain: string;
  readonly #lists: readonly (readonly RuleDescriptor[])[];
  #lookup: WeakRef<DomainRules> | undefined;

  private constructor(
    domain: string,
    lists: readonly (readonly RuleDescriptor[])[],
    { limits, names }: { readonly limits: number; readonly names: number },
  ) {
    this.#domain = domain;
    this.#lists = lists;
    this.limitCount = limits;
    this.limitNameCount = names;
  }

  static *create(
    this: void,
    domain: string,
    current: readonly RuleDocument[],
  ): Generator<void, CheckedDomainRules> {
    const lists = current.map(({ descriptors }) => descriptors);
    let [seen, limits, names] = [0, 0, 0];
    for (const list of lists) {
      for (const each of walkRules(list, domain)) {
        if (++seen % rulesAtOnce === 0) yield;
        if (each.rule.rateLimit !== undefined) limits++;
        if (isLasting(each)) names++;
      }
    }
    return new CheckedDomainRules(domain, lists, { limits, names });
  }

  /** The names (domain and keys) of limits that can refuse a request and do not end: each once, parents before
   * children. A limit that gets an end is being phased out. */
  *limitNames(): Generator<string, void> {
    for (const each of this.named()) if (isLasting(each)) yield each.name;
  }

  /** All rules, a parent before its children. */
  *named(): Generator<NamedDescriptor, void> {
    for (const list of this.#lists) yield* walkRules(list, this.#domain);
  }

  /** In steps; created again once no caller references it. */
  *lookup(): Generator<void, DomainRules> {
    const known = this.#lookup?.deref();
    if (known !== undefined) return known;
    const { rules } = yield* createDomainTree(this.#domain, this.#lists, false);
    this.#lookup = new WeakRef(rules);
    return rules;
  }
}

interface NamedDescriptor {
  /** Domain and composite keys, joined by dots. */
  readonly name: string;
  readonly rule: RuleDescriptor;
  /** The rule itself or one of its ancestors ends. */
  readonly ends: boolean;
}

function isLasting({ rule: { rateLimit }, ends }: NamedDescriptor): boolean {
  return !ends && rateLimit !== undefined && !rateLimit.unlimited;
}

/** Parents before their children. */
function* walkRules(
  list: readonly RuleDescriptor[],
  parentName: string,
  isEnding = false,
): Generator<NamedDescriptor, void> {
  for (const rule of list) {
    const name = `${parentName}.${toCompositeKey(rule.key, rule.value)}`;
    const ends = isEnding || rule.untilMs !== undefined;
    yield { name, rule, ends };
    if (rule.descriptors.length > 0) yield* walkRules(rule.descriptors, name, ends);
  }
}
