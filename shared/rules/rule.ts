// The model of a rule in force, as the decision sees it.
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
  /** Ends the keys of its counters, where these must differ from those of a plain fixed window. */
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
  /** `<domain>.<segments>`, the name under which the hits are counted in the statistics. */
  readonly metricKey: string;
  /** False when `metricKey` holds values from the request, so that its number must be bounded. */
  readonly metricKeyIsStatic: boolean;
  /**
   * Per entry, the pattern (with its `*`) that stands in the cache key in place of the value
   * because of share_threshold; undefined when no entry is shared.
   */
  readonly sharedValues: readonly (string | undefined)[] | undefined;
  /** Of a rule with a list of limits: one for each, which count apart. `limit` is then the first one. */
  readonly parts: readonly Match[] | undefined;
  /** Of one of these limits: the last segment of its metric key, such as `minute`. */
  readonly listedAs: string | undefined;
}

/** The lookup of one entry of a descriptor. */
export interface LookupStep {
  /** The names that are searched, until one is found. */
  readonly tried: readonly string[];
  readonly hasLimit: boolean;
}

/** The entries of a bucket, which have no order, in an order that rules nest in. */
export interface Nesting {
  readonly entries: readonly Entry[];
  /** Whether rules with a limit nest in several of its orders. */
  readonly isAmbiguous: boolean;
}

/** One domain's rules. */
export interface DomainRules {
  readonly domain: string;
  /** The rule for this descriptor (behaviour: lookup-order), or undefined: no limit applies. */
  match(entries: readonly Entry[]): Match | undefined;
  /** Whether a rule without a limit and without rules below it takes this descriptor: it was meant
   * to have no limit. For descriptors that `match` finds nothing for. */
  exempts(entries: readonly Entry[]): boolean;
  /** The order in which a rule takes these entries; undefined where none takes all of them. */
  nest(entries: readonly Entry[]): Nesting | undefined;
  /** How `match` gets there, up to the entry at which it ends: for explanations, at some cost. */
  traceLookup(entries: readonly Entry[]): LookupStep[];
}

/** All rules in force. Immutable: a change of configuration makes a new one. */
export interface RuleSet {
  /** By name: those that some document defines. */
  readonly domains: ReadonlyMap<string, DomainRules>;
  readonly limitCount: number;
  /**
   * Made when they are read: one line per rule with a rate_limit block, in configuration order, a parent before its
   * children (`/rlconfig`; behaviour: debug-pages).
   */
  describe(): Iterable<string>;
  /** The lines that the log has at debug of a load: each domain and each descriptor (behaviour: log-lines). */
  trail(): string[];
}
