// One domain's rules as a tree of levels, and the lookup in it
// (behaviour: lookup-order, shared-counters, metric-keys). This is on the path of every decision: a
// match allocates nothing unless the metric key needs values of the request.

import { toLimiter, toWindowName } from './limit-shape.ts';
import { toMetricKey, toSegment } from './metric-key.ts';
import type { DomainRules, Entry, Limit, LookupStep, Match } from './rule.ts';
import { type RateLimitBlock, type RuleDescriptor, toCompositeKey } from './rule-document.ts';
import { toModes } from './rule-keys.ts';
import { parseWildcard, type Wildcard } from './wildcard.ts';
import { createWildcardList, type FindWildcard } from './wildcard-list.ts';

/** A descriptor of the configuration in force. */
export interface RuleNode {
  /** Domain and composite keys, joined by dots. */
  readonly fullKey: string;
  /** The first one of a list. */
  readonly limit: Limit | undefined;
  /** Those of a list, else undefined. */
  readonly list: readonly ListedLimit[] | undefined;
  readonly children: readonly RuleNode[];
}

/** A limit of a list. */
interface ListedLimit {
  readonly limit: Limit;
  /** The last segment of the metric key of its statistics. */
  readonly segment: string;
}

interface Node extends RuleNode {
  readonly key: string;
  readonly value: string;
  readonly composite: string;
  /** The whole composite key as a pattern, if it holds a `*`. */
  readonly wildcard: Wildcard | undefined;
  readonly isShared: boolean;
  readonly valueToMetric: boolean;
  readonly detailedMetric: boolean;
  /** The answer wherever the metric key needs nothing of the request; set when there is a limit. */
  readonly staticMatch: Match | undefined;
  readonly children: readonly Node[];
  readonly level: Level | undefined;
}

/** The rules of one level, under all the ways in which an entry can name them. */
interface Level {
  readonly byKey: Map<string, KeyRules>;
  /** Exact rules that are not under `byKey` for each split; undefined when there are none. */
  readonly byComposite: Map<string, Node> | undefined;
  /** Undefined when there are no wildcards. */
  readonly findWildcard: FindWildcard<Node> | undefined;
}

interface KeyRules {
  /** The rule whose composite key is the entry's key. */
  keyOnly: Node | undefined;
  /** By the entry's value: the rule whose composite key is key, `_` and value. */
  byValue: Map<string, Node> | undefined;
}

/** How an entry found its rule. */
const found = { exact: 0, wildcard: 1, keyOnly: 2 } as const;
type Found = (typeof found)[keyof typeof found];

/** How many rules are built before others have their turn: well below a millisecond. */
const rulesAtOnce = 100;

interface DomainTree {
  readonly rules: DomainRules;
  /** The top level, in configuration order. */
  readonly nodes: readonly RuleNode[];
}

/** Yields where a caller may give way to others. */
export function* createDomainTree(
  domain: string,
  descriptors: readonly RuleDescriptor[],
  sanitizeMetricDots: boolean,
): Generator<void, DomainTree> {
  let createdNodes = 0;
  const nodes = yield* createNodes(descriptors, [], domain);
  const root = yield* createLevel(nodes);
  const maxDepth = depthOf(nodes);
  const hasExemptions = someExempts(nodes);
  /** How each entry of the request at hand found its rule; reused, as `match` runs to its end. */
  const finds: Found[] = new Array(maxDepth).fill(found.exact);
  const path: Node[] = [];

  function* createNodes(
    descriptors: readonly RuleDescriptor[],
    ancestors: readonly RuleDescriptor[],
    parentKey: string,
  ): Generator<void, Node[]> {
    const nodes: Node[] = [];
    for (const descriptor of descriptors) {
      nodes.push(yield* createNode(descriptor, ancestors, parentKey));
      if (++createdNodes % rulesAtOnce === 0) yield;
    }
    return nodes;
  }

  function* createNode(
    descriptor: RuleDescriptor,
    ancestors: readonly RuleDescriptor[],
    parentKey: string,
  ): Generator<void, Node> {
    const { key, value } = descriptor;
    const composite = toCompositeKey(key, value);
    const fullKey = `${parentKey}.${composite}`;
    const lineage = [...ancestors, descriptor];
    const below = descriptor.descriptors;
    const children = below.length === 0 ? [] : yield* createNodes(below, lineage, fullKey);
    const limit = createLimit(descriptor);
    const list = limit && createList(descriptor, limit);
    return {
      fullKey,
      key,
      value,
      composite,
      wildcard: composite.includes('*') ? parseWildcard(composite) : undefined,
      isShared: descriptor.shareThreshold,
      valueToMetric: descriptor.valueToMetric,
      detailedMetric: descriptor.detailedMetric,
      limit,
      list,
      staticMatch: limit && createStaticMatch(limit, list, lineage),
      children,
      level: children.length === 0 ? undefined : yield* createLevel(children),
    };
  }

  function createStaticMatch(
    limit: Limit,
    list: readonly ListedLimit[] | undefined,
    lineage: readonly RuleDescriptor[],
  ): Match {
    const segments = lineage.map(({ key, value, shareThreshold }) =>
      toSegment(key, shareThreshold ? toSharedPart(value) : value),
    );
    const isShared = lineage.some((descriptor) => descriptor.shareThreshold);
    const match = {
      limit,
      metricKey: toMetricKey(domain, segments, sanitizeMetricDots),
      metricKeyIsStatic: true,
      sharedValues: isShared
        ? Object.freeze(lineage.map((each) => (each.shareThreshold ? each.value : undefined)))
        : undefined,
      parts: undefined,
    };
    return Object.freeze({ ...match, parts: list && toParts(match, list) });
  }

  function match(entries: readonly Entry[]): Match | undefined {
    const depth = entries.length;
    if (depth === 0 || depth > maxDepth) return undefined;
    let level: Level | undefined = root;
    let node: Node | undefined;
    let plainIsStatic = true;
    let detailedIsStatic = true;
    for (let index = 0; index < depth; index++) {
      if (level === undefined) return undefined;
      const { key, value } = entries[index] as Entry;
      const keyRules: KeyRules | undefined = level.byKey.get(key);
      let find: Found = found.exact;
      node = keyRules?.byValue?.get(value) ?? level.byComposite?.get(`${key}_${value}`);
      if (node === undefined && level.findWildcard !== undefined) {
        node = level.findWildcard(`${key}_${value}`);
      }
      if (node === undefined) {
        node = keyRules?.keyOnly;
        if (node === undefined) return undefined;
        find = found.keyOnly;
        detailedIsStatic = false;
        if (node.valueToMetric) plainIsStatic = false;
      } else if (node.wildcard !== undefined) {
        // Also where the value is the pattern's own text: it shares the pattern's counter.
        find = found.wildcard;
        if (node.key !== key || node.value === '') plainIsStatic = detailedIsStatic = false;
        else if (!node.isShared) {
          detailedIsStatic = false;
          if (node.valueToMetric) plainIsStatic = false;
        }
      } else if (value === '') {
        // A key that ends in `_`: the metric key has no underscore for the empty value.
        plainIsStatic = detailedIsStatic = false;
      }
      finds[index] = find;
      path[index] = node;
      level = node.level;
    }
    if (node === undefined) return undefined;
    const isStatic = node.detailedMetric ? detailedIsStatic : plainIsStatic;
    return isStatic ? node.staticMatch : createRuntimeMatch(entries, node);
  }

  /** Reads `path` and `finds`, which `match` has just filled. */
  function createRuntimeMatch(entries: readonly Entry[], node: Node): Match | undefined {
    const { limit } = node;
    if (limit === undefined) return undefined;
    const sharedValues = entries.map(({ key }, index) => {
      const rule = path[index] as Node;
      return rule.isShared && finds[index] === found.wildcard ? toPattern(rule, key) : undefined;
    });
    const isShared = sharedValues.some((pattern) => pattern !== undefined);
    const segments = entries.map(({ key, value }, index) => {
      const pattern = sharedValues[index];
      if (pattern !== undefined) return toSegment(key, toSharedPart(pattern));
      if (node.detailedMetric) return isShared ? toSegment(key, value) : `${key}_${value}`;
      return toSegment(key, toValuePart(path[index] as Node, finds[index], key, value));
    });
    const match = {
      limit,
      metricKey: toMetricKey(domain, segments, sanitizeMetricDots),
      metricKeyIsStatic: false,
      sharedValues: isShared ? sharedValues : undefined,
      parts: undefined,
    };
    return node.list === undefined ? match : { ...match, parts: toParts(match, node.list) };
  }

  return {
    rules: Object.freeze({
      domain,
      match,
      exempts: (entries: readonly Entry[]) => hasExemptions && isExempt(root, entries),
      traceLookup: (entries: readonly Entry[]) => traceLookup(root, entries),
    }),
    nodes,
  };
}

/** A lookup of its own, so that `match` pays nothing for those who want to know. */
function traceLookup(root: Level, entries: readonly Entry[]): LookupStep[] {
  const steps: LookupStep[] = [];
  let level: Level | undefined = root;
  for (const { key, value } of entries) {
    if (level === undefined) break;
    const composite = `${key}_${value}`;
    const named = findNamed(level, key, value);
    const node: Node | undefined = named ?? level.byKey.get(key)?.keyOnly;
    const tried = named === undefined ? [composite, key] : [composite];
    steps.push({ tried, hasLimit: node?.limit !== undefined });
    level = node?.level;
  }
  return steps;
}

/** Whether the lookup gets to its end at a rule that holds nothing. */
function isExempt(root: Level, entries: readonly Entry[]): boolean {
  let level: Level | undefined = root;
  let node: Node | undefined;
  for (const { key, value } of entries) {
    if (level === undefined) return false;
    node = findNamed(level, key, value) ?? level.byKey.get(key)?.keyOnly;
    if (node === undefined) return false;
    level = node.level;
  }
  return node !== undefined && isExempting(node);
}

function someExempts(nodes: readonly Node[]): boolean {
  return nodes.some((node) => isExempting(node) || someExempts(node.children));
}

function isExempting({ limit, level }: Node): boolean {
  return limit === undefined && level === undefined;
}

/** The rule for this very value: exact, or the first wildcard that fits. */
function findNamed(level: Level, key: string, value: string): Node | undefined {
  const { byKey, byComposite, findWildcard } = level;
  const exact = byKey.get(key)?.byValue?.get(value) ?? byComposite?.get(`${key}_${value}`);
  if (exact !== undefined || findWildcard === undefined) return exact;
  return findWildcard(`${key}_${value}`);
}

/** The value part of a level that is not shared, in a metric key that is not detailed. */
function toValuePart(node: Node, find: Found | undefined, key: string, value: string): string {
  if (find === found.exact || node.valueToMetric) return value;
  return find === found.wildcard ? toPattern(node, key) : '';
}

/** The pattern as it stands for the entry's value. A star within the key leaves it whole. */
function toPattern(node: Node, key: string): string {
  const { composite } = node;
  const isValuePattern = composite.startsWith(key) && composite.charAt(key.length) === '_';
  return isValuePattern ? composite.slice(key.length + 1) : composite;
}

/** What a metric key has of a shared pattern: the part before the `*`
 * (behaviour: shared-counters). */
function toSharedPart(pattern: string): string {
  return pattern.slice(0, pattern.indexOf('*'));
}

/** Each counts by itself, with statistics of its own. */
function toParts(match: Match, list: readonly ListedLimit[]): readonly Match[] {
  return list.map(({ limit, segment }) => ({
    ...match,
    limit,
    metricKey: `${match.metricKey}.${segment}`,
  }));
}

function createLimit(descriptor: RuleDescriptor): Limit | undefined {
  const { rateLimit } = descriptor;
  return rateLimit && toLimit(descriptor, rateLimit, false);
}

function createList(descriptor: RuleDescriptor, first: Limit): readonly ListedLimit[] | undefined {
  const { furtherLimits } = descriptor;
  if (furtherLimits.length === 0) return undefined;
  const limits = [first, ...furtherLimits.map((block) => toLimit(descriptor, block, true))];
  return limits.map((limit) => {
    const name = toWindowName(limit);
    const isAlone = limits.filter((other) => toWindowName(other) === name).length === 1;
    return { limit, segment: isAlone ? name : `${name}_${limit.algorithm}` };
  });
}

/** `isFurther`: in a list, not the first. */
function toLimit(descriptor: RuleDescriptor, block: RateLimitBlock, isFurther: boolean): Limit {
  const limiter = toLimiter(block);
  const kind = limiter === undefined ? '' : `${block.algorithm}_`;
  return Object.freeze({
    requestsPerUnit: block.requestsPerUnit,
    unit: block.unit,
    unlimited: block.unlimited,
    name: block.name,
    replaces: Object.freeze(block.replaces.map((replacement) => replacement.name)),
    unitMultiplier: block.unitMultiplier,
    algorithm: block.algorithm,
    burst: block.burst,
    countOverLimit: block.countOverLimit,
    lease: block.lease,
    limiter,
    counterTag: limiter !== undefined || isFurther ? `${kind}${toWindowName(block)}` : '',
    ...toModes((mode) => descriptor[mode]),
    metadata: descriptor.metadata,
  });
}

/** Above this many underscores a composite key is looked up whole instead. */
const maxSplits = 32;

/**
 * A request's key and value name a rule by their joined text, so key `a_b` and key `a` with value
 * `b` are the same name. Each split of a composite key is entered, which saves joining strings for
 * each request.
 */
function* createLevel(nodes: readonly Node[]): Generator<void, Level> {
  const byKey = new Map<string, KeyRules>();
  let byComposite: Map<string, Node> | undefined;

  function at(key: string): KeyRules {
    let rules = byKey.get(key);
    if (rules === undefined) {
      rules = { keyOnly: undefined, byValue: undefined };
      byKey.set(key, rules);
    }
    return rules;
  }

  for (const [index, node] of nodes.entries()) {
    if (index % rulesAtOnce === rulesAtOnce - 1) yield;
    const { composite } = node;
    at(composite).keyOnly = node;
    const splits = splitsOf(composite);
    if (splits === undefined) {
      byComposite ??= new Map();
      byComposite.set(composite, node);
      continue;
    }
    for (const split of splits) {
      const rules = at(composite.slice(0, split));
      rules.byValue ??= new Map();
      rules.byValue.set(composite.slice(split + 1), node);
    }
  }
  return { byKey, byComposite, findWildcard: createWildcardList(nodes) };
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

function depthOf(nodes: readonly Node[]): number {
  let depth = 0;
  for (const node of nodes) depth = Math.max(depth, 1 + depthOf(node.children));
  return depth;
}
