// The rules of one level, and the order in which an entry of a request finds one of them (behaviour: lookup-order).
// Only this module implements the order: `find` for decisions, `inOrder` for explanations.
import { runAtOnce } from '../../in-slices.ts';
import { type TextMap, withRoom } from './text-map.ts';
import {
  createWildcardList,
  type FindWildcard,
  matchesWildcard,
  parseWildcard,
  type Wildcard,
  type WildcardRule,
} from './wildcard.ts';

/** How an entry finds a rule, in the order of the lookup. */
export type FoundAs = 'exact' | 'wildcard' | 'key_only';

/** A rule that matches an entry, and how. */
export interface Fitting<Rule> {
  readonly rule: Rule;
  readonly as: FoundAs;
}

/** The kinds of matches as integers, for decisions. */
export const found = { exact: 0, wildcard: 1, keyOnly: 2 } as const;
export type Found = (typeof found)[keyof typeof found];

/** What a level needs of a rule. */
export interface LevelRule {
  readonly key: string;
  /** '' when the rule is for every value. */
  readonly value: string;
  /** The key, with `_` and the value if there is one. */
  readonly composite: string;
  /** The whole composite key as a pattern, if it contains a `*`. */
  readonly wildcard: Wildcard | undefined;
}

/** The rules that an entry with one key may match. */
interface KeyRules<Rule> {
  /** The rule whose composite key is this key. */
  keyOnly: Rule | undefined;
  /** By the entry's value: the rules whose composite key is this key, `_` and the value. */
  byValue: TextMap<Rule> | undefined;
}

/** How many rules are entered between two yields: this takes well below a millisecond. */
const rulesAtOnce = 100;
/** A composite key with more underscores than this is stored unsplit instead. */
const maxSplits = 32;

/**
 * A request's key and value select a rule by their joined text, so key `a_b` and key `a` with value `b` are the same
 * name. Each split of a composite key is entered, which saves joining strings for each request.
 */
export class Level<Rule extends LevelRule> {
  /** How the last `find` found its rule. */
  static lastFound: Found = found.exact;
  /** For each split of a composite key, and for keys without a value. */
  readonly #byKey: TextMap<KeyRules<Rule>>;
  /** By the unsplit composite key, for entries whose key is not in `#byKey`. */
  readonly #byComposite: TextMap<Rule>;
  /** Whether there are rules whose composite key has too many splits to enter each. */
  readonly #hasUnsplit: boolean;
  /** Undefined when there are no wildcards. */
  readonly #findWildcard: FindWildcard<Rule> | undefined;

  private constructor(
    byKey: TextMap<KeyRules<Rule>>,
    byComposite: TextMap<Rule>,
    hasUnsplit: boolean,
    findWildcard: FindWildcard<Rule> | undefined,
  ) {
    this.#byKey = byKey;
    this.#byComposite = byComposite;
    this.#hasUnsplit = hasUnsplit;
    this.#findWildcard = findWildcard;
  }

  /** Of rules with the same name the last one wins. Yields so that the thread can serve other callers. */
  static *create<Rule extends LevelRule>(rules: readonly Rule[]): Generator<void, Level<Rule>> {
    let byKey: TextMap<KeyRules<Rule>> = new Map();
    let byComposite: TextMap<Rule> = new Map();
    let hasUnsplit = false;
    const wildcards: WildcardRule<Rule>[] = [];

    function at(key: string): KeyRules<Rule> {
      let named = byKey.get(key);
      if (named === undefined) {
        named = { keyOnly: byComposite.get(key), byValue: undefined };
        byKey = withRoom(byKey);
        byKey.set(key, named);
      }
      return named;
    }

    function enter(key: string, value: string, rule: Rule): void {
      const named = at(key);
      named.byValue = withRoom(named.byValue ?? new Map<string, Rule>());
      named.byValue.set(value, rule);
    }

    for (const [index, rule] of rules.entries()) {
      if (index % rulesAtOnce === rulesAtOnce - 1) yield;
      const { key, value, composite, wildcard } = rule;
      if (wildcard !== undefined) wildcards.push({ rule, wildcard });
      byComposite = withRoom(byComposite);
      byComposite.set(composite, rule);
      // Rules with values get no object of their own here, to save memory: a whole name is hardly ever a key.
      const named = value === '' ? at(composite) : byKey.get(composite);
      if (named !== undefined) named.keyOnly = rule;
      const splits = splitsOf(composite);
      hasUnsplit ||= splits === undefined;
      for (const split of splits ?? []) {
        // Reusing these texts leaves fewer objects to collect.
        if (split === key.length) enter(key, value, rule);
        else enter(composite.slice(0, split), composite.slice(split + 1), rule);
      }
    }
    return new Level(byKey, byComposite, hasUnsplit, yield* createWildcardList(wildcards));
  }

  /** The rule for the entry: the first of `inOrder`. Sets `lastFound` to how it was found. */
  find(key: string, value: string): Rule | undefined {
    const named = this.#byKey.get(key);
    Level.lastFound = found.exact;
    const exact =
      named?.byValue?.get(value) ??
      (this.#hasUnsplit ? this.#byComposite.get(`${key}_${value}`) : undefined);
    if (exact !== undefined) {
      // The value may be the pattern's own text: it shares the pattern's counter.
      if (exact.wildcard !== undefined) Level.lastFound = found.wildcard;
      return exact;
    }
    if (this.#findWildcard !== undefined) {
      const fitting = this.#findWildcard(`${key}_${value}`);
      if (fitting !== undefined) {
        Level.lastFound = found.wildcard;
        return fitting;
      }
    }
    Level.lastFound = found.keyOnly;
    return named === undefined ? this.#byComposite.get(key) : named.keyOnly;
  }
}

/** The rules of a level that match an entry, in the order of the lookup. */
export function inOrder<Rule extends Pick<LevelRule, 'composite'>>(
  rules: readonly Rule[],
  key: string,
  value: string,
): Fitting<Rule>[] {
  return runAtOnce(findingInOrder(rules, key, value));
}

/** `inOrder` in steps. */
export function* findingInOrder<Rule extends Pick<LevelRule, 'composite'>>(
  rules: readonly Rule[],
  key: string,
  value: string,
): Generator<void, Fitting<Rule>[]> {
  const text = `${key}_${value}`;
  const found: Record<FoundAs, Fitting<Rule>[]> = { exact: [], wildcard: [], key_only: [] };
  for (const [index, rule] of rules.entries()) {
    if (index % rulesAtOnce === rulesAtOnce - 1) yield;
    const { composite } = rule;
    const isWildcard = composite.includes('*');
    let as: FoundAs | undefined;
    if (composite === text) as = 'exact';
    else if (isWildcard && matchesWildcard(parseWildcard(composite), text)) as = 'wildcard';
    else if (composite === key) as = 'key_only';
    if (as !== undefined) found[as].push({ rule, as });
  }
  return [...found.exact, ...found.wildcard, ...found.key_only];
}

/** The offsets of underscores; undefined when there are too many to enter each. */
function splitsOf(composite: string): number[] | undefined {
  const splits: number[] = [];
  for (let at = composite.indexOf('_'); at !== -1; at = composite.indexOf('_', at + 1)) {
    if (splits.length === maxSplits) return undefined;
    splits.push(at);
  }
  return splits;
}
