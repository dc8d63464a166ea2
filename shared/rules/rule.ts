// The model of a rule in force, for decisions.
import type { Limiter, LimitShape } from './limit-shape.ts';
import type { LimitModes } from './rule-keys.ts';

/** One key/value pair of a request's descriptor; the value may be empty. */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** The limit of a rule. Immutable. */
export interface Limit extends LimitModes, LimitShape {
  /** Undefined for a fixed window. */
  readonly limiter: Limiter | undefined;
  /** Ends the keys of the limit's counters, where these must differ from those of a plain fixed window. */
  readonly counterTag: string;
  readonly unlimited: boolean;
  /** '' when the rule has no name. */
  readonly name: string;
  /** Names of the rules that this one replaces. */
  readonly replaces: readonly string[];
  /** Free-form data for dynamic metadata; undefined when the rule has none. */
  readonly metadata: JsonObject | undefined;
}

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** The rule that a request's descriptor matched, and how. */
export interface Match {
  readonly limit: Limit;
  /** `<domain>.<segments>`, under which the hits are counted in the statistics. */
  readonly metricKey: string;
  /** False when `metricKey` contains values of the request: the number of such keys must be bounded. */
  readonly metricKeyIsStatic: boolean;
  /**
   * For each entry, the pattern (with its `*`) that replaces the value in the cache key because of share_threshold;
   * undefined when no entry is shared.
   */
  readonly sharedValues: readonly (string | undefined)[] | undefined;
  /**
   * For a rule with a list of limits: one match for each of them, counted separately. `limit` is then the first one.
   */
  readonly parts: readonly Match[] | undefined;
  /** For one of these limits: the last segment of its metric key, such as `minute`. */
  readonly listedAs: string | undefined;
}

/** The lookup of one entry of a descriptor. */
export interface LookupStep {
  /** The names that are searched, up to the one that is found. */
  readonly tried: readonly string[];
  readonly hasLimit: boolean;
}

/** The entries of a bucket, which are unordered, in an order in which rules nest. */
export interface Nesting {
  readonly entries: readonly Entry[];
  /** Whether rules with a limit nest in several orders of the entries. */
  readonly isAmbiguous: boolean;
}

/** One domain's rules. */
export interface DomainRules {
  readonly domain: string;
  /** The rule for this descriptor (behaviour: lookup-order); undefined when no limit applies. */
  match(entries: readonly Entry[]): Match | undefined;
  /**
   * Whether a rule without a limit and without rules below matches this descriptor, which thus is intentionally
   * unlimited. For descriptors for which `match` finds nothing.
   */
  exempts(entries: readonly Entry[]): boolean;
  /** The order in which rules match all of these entries; undefined if no rules do. */
  nest(entries: readonly Entry[]): Nesting | undefined;
  /** The steps of `match`, up to the entry at which it ends. Slower than `match`: for explanations. */
  traceLookup(entries: readonly Entry[]): LookupStep[];
}

/** All rules in force. Immutable: each change of the configuration makes a new one. */
export interface RuleSet {
  /** The domains that any document defines, by name. */
  readonly domains: ReadonlyMap<string, DomainRules>;
  readonly limitCount: number;
  /**
   * One line for each rule with a rate_limit block, made while they are read, in configuration order, a parent before
   * its children (`/rlconfig`; behaviour: debug-pages).
   */
  describe(): Iterable<string>;
  /** The lines that a load logs at debug: each domain and each descriptor (behaviour: log-lines). */
  trail(): string[];
}
