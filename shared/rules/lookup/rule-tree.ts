// One domain's rules as a tree of levels, and the lookup in it (behaviour: lookup-order, shared-counters, metric-keys).
// Every decision runs this: a match allocates nothing unless the metric key needs values of the request.

import type { DomainRules, Entry, Limit, LookupStep, Match, Nesting } from '../rule.ts';
import { type RuleDescriptor, toCompositeKey } from '../rule-document.ts';
import { type Found, found, Level, type LevelRule } from './level.ts';
import { toMetricKey, toSegment, toSharedPart } from './metric-key.ts';
import { createLimit, createList, type ListedLimit } from './rule-limit.ts';
import { parseWildcard } from './wildcard.ts';

/** A descriptor of the configuration in force. */
export interface RuleNode {
  /** Domain and composite keys, joined by dots. */
  readonly fullKey: string;
  /** The only limit, or the first one of a list. */
  readonly limit: Limit | undefined;
  /** The limits of a list, else undefined. */
  readonly list: readonly ListedLimit[] | undefined;
  readonly children: readonly RuleNode[];
}

/** A node of a tree; another tree of the same domain may share it. */
export interface TreeNode extends RuleNode, LevelRule {
  readonly descriptor: RuleDescriptor;
  readonly isShared: boolean;
  readonly valueToMetric: boolean;
  readonly detailedMetric: boolean;
  /** The match, where the metric key needs nothing of the request; set when there is a limit. */
  readonly staticMatch: Match | undefined;
  readonly children: readonly TreeNode[];
  readonly level: Level<TreeNode> | undefined;
}

/** How many rules are built between two yields: this takes well below a millisecond. */
const rulesAtOnce = 100;

export interface DomainWithNodes {
  readonly rules: DomainRules;
  /** The top level, in configuration order. */
  readonly nodes: readonly TreeNode[];
  /** How many of the rules have a limit. */
  readonly limitCount: number;
}

/** The totals of all rules of a domain. */
interface Totals {
  limits: number;
  depth: number;
  hasExemptions: boolean;
}

/**
 * `lists` has the top levels of the domain's documents, which add up. `before` is the top level of an earlier tree of
 * the domain: its nodes are reused where the descriptors are the same objects. Yields so that the thread can serve
 * other callers.
 */
export function* createDomainTree(
  domain: string,
  lists: readonly (readonly RuleDescriptor[])[],
  sanitizeMetricDots: boolean,
  before: readonly TreeNode[] = [],
): Generator<void, DomainWithNodes> {
  let seen = 0;
  function* createNodes(
    descriptors: Iterable<RuleDescriptor>,
    ancestors: readonly RuleDescriptor[],
    parentKey: string,
    earlier: EarlierNodes,
  ): Generator<void, TreeNode[]> {
    const nodes: TreeNode[] = [];
    for (const descriptor of descriptors) {
      if (++seen % rulesAtOnce === 0) yield;
      nodes.push(
        earlier.enter(descriptor) ??
          (yield* createNode(descriptor, ancestors, parentKey, earlier.below(descriptor))),
      );
    }
    return nodes;
  }

  function* createNode(
    descriptor: RuleDescriptor,
    ancestors: readonly RuleDescriptor[],
    parentKey: string,
    earlier: EarlierNodes,
  ): Generator<void, TreeNode> {
    const { key, value, descriptors: below } = descriptor;
    const composite = toCompositeKey(key, value);
    const fullKey = `${parentKey}.${composite}`;
    const lineage = [...ancestors, descriptor];
    const children =
      below.length === 0 ? noNodes : yield* createNodes(below, lineage, fullKey, earlier);
    const limit = createLimit(descriptor);
    const list = limit && createList(descriptor, limit);
    return {
      descriptor,
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
      level: children.length === 0 ? undefined : yield* Level.create(children),
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
      listedAs: undefined,
    };
    return Object.freeze({ ...match, parts: list && toParts(match, list) });
  }

  const nodes = yield* createNodes(eachOf(lists), [], domain, new EarlierNodes(before));
  const totals = yield* sumUp(nodes);
  const root = yield* Level.create(nodes);
  const rules = new DomainTree(domain, totals, root, nodes, sanitizeMetricDots);
  return { rules, nodes, limitCount: totals.limits };
}

const noNodes: readonly TreeNode[] = Object.freeze([]);

function* eachOf(lists: readonly (readonly RuleDescriptor[])[]): Generator<RuleDescriptor, void> {
  for (const list of lists) yield* list;
}

/** The nodes of one level of an earlier tree, searched in their order. */
class EarlierNodes {
  readonly #nodes: readonly TreeNode[];
  #at = 0;

  constructor(nodes: readonly TreeNode[]) {
    this.#nodes = nodes;
  }

  /** Returns the node of the same descriptor. */
  enter(descriptor: RuleDescriptor): TreeNode | undefined {
    return this.#find((node) => node.descriptor === descriptor);
  }

  /** The earlier level below a descriptor with the same name: its counters and statistics have the same names. */
  below({ key, value, shareThreshold, descriptors }: RuleDescriptor): EarlierNodes {
    if (descriptors.length === 0) return noEarlierNodes;
    const same = this.#find(
      (node) => node.key === key && node.value === value && node.isShared === shareThreshold,
    );
    return same === undefined ? noEarlierNodes : new EarlierNodes(same.children);
  }

  #find(isSought: (node: TreeNode) => boolean): TreeNode | undefined {
    const end = Math.min(this.#nodes.length, this.#at + mostSearched);
    for (let at = this.#at; at < end; at++) {
      const node = this.#nodes[at] as TreeNode;
      if (!isSought(node)) continue;
      this.#at = at + 1;
      return node;
    }
    return undefined;
  }
}

/** How far ahead a node is searched: farther than the number of rules that are read again when one of them changes. */
const mostSearched = 250;
const noEarlierNodes = new EarlierNodes([]);

function* sumUp(nodes: readonly TreeNode[]): Generator<void, Totals> {
  const totals = { limits: 0, depth: 0, hasExemptions: false };
  let seen = 0;
  function* visit(level: readonly TreeNode[], depth: number): Generator<void, void> {
    totals.depth = Math.max(totals.depth, depth);
    for (const node of level) {
      if (++seen % nodesAtOnce === 0) yield;
      if (node.limit !== undefined) totals.limits++;
      else if (node.children.length === 0) totals.hasExemptions = true;
      if (node.children.length > 0) yield* visit(node.children, depth + 1);
    }
  }
  if (nodes.length > 0) yield* visit(nodes, 1);
  return totals;
}

/** Nodes that are counted between two yields. */
const nodesAtOnce = 2_000;

/** A class because its methods are compiled once for all domains; closures would be compiled for each. */
class DomainTree implements DomainRules {
  readonly domain: string;
  readonly #root: Level<TreeNode>;
  readonly #nodes: readonly TreeNode[];
  readonly #maxDepth: number;
  readonly #hasExemptions: boolean;
  readonly #sanitizeMetricDots: boolean;
  /** How each entry of the current request found its rule; reused, as `match` runs to its end. */
  readonly #finds: Found[];
  readonly #path: TreeNode[] = [];

  constructor(
    domain: string,
    { depth, hasExemptions }: Totals,
    root: Level<TreeNode>,
    nodes: readonly TreeNode[],
    sanitizeMetricDots: boolean,
  ) {
    this.domain = domain;
    this.#root = root;
    this.#nodes = nodes;
    this.#maxDepth = depth;
    this.#hasExemptions = hasExemptions;
    this.#sanitizeMetricDots = sanitizeMetricDots;
    this.#finds = new Array(this.#maxDepth).fill(found.exact);
  }

  match(entries: readonly Entry[]): Match | undefined {
    const depth = entries.length;
    if (depth === 0 || depth > this.#maxDepth) return undefined;
    let level: Level<TreeNode> | undefined = this.#root;
    let node: TreeNode | undefined;
    let plainIsStatic = true;
    let detailedIsStatic = true;
    for (let index = 0; index < depth; index++) {
      if (level === undefined) return undefined;
      const { key, value } = entries[index] as Entry;
      node = level.find(key, value);
      if (node === undefined) return undefined;
      const as = Level.lastFound;
      if (as === found.keyOnly) {
        detailedIsStatic = false;
        if (node.valueToMetric) plainIsStatic = false;
      } else if (as === found.wildcard) {
        if (node.key !== key || node.value === '') plainIsStatic = detailedIsStatic = false;
        else if (!node.isShared) {
          detailedIsStatic = false;
          if (node.valueToMetric) plainIsStatic = false;
        }
      } else if (value === '') {
        // A key that ends in `_`: the metric key has no underscore for the empty value.
        plainIsStatic = detailedIsStatic = false;
      }
      this.#finds[index] = as;
      this.#path[index] = node;
      level = node.level;
    }
    if (node === undefined) return undefined;
    const isStatic = node.detailedMetric ? detailedIsStatic : plainIsStatic;
    return isStatic ? node.staticMatch : this.#createRuntimeMatch(entries, node);
  }

  exempts(entries: readonly Entry[]): boolean {
    if (!this.#hasExemptions) return false;
    let level: Level<TreeNode> | undefined = this.#root;
    let node: TreeNode | undefined;
    for (const { key, value } of entries) {
      node = level?.find(key, value);
      if (node === undefined) return false;
      level = node.level;
    }
    return node !== undefined && isExempting(node);
  }

  nest(entries: readonly Entry[]): Nesting | undefined {
    if (entries.length === 0 || entries.length > this.#maxDepth) return undefined;
    return findNesting(this.#root, this.#nodes, entries);
  }

  traceLookup(entries: readonly Entry[]): LookupStep[] {
    const steps: LookupStep[] = [];
    let level: Level<TreeNode> | undefined = this.#root;
    for (const { key, value } of entries) {
      if (level === undefined) break;
      const node: TreeNode | undefined = level.find(key, value);
      const composite = `${key}_${value}`;
      const tried = Level.lastFound === found.keyOnly ? [composite, key] : [composite];
      steps.push({ tried, hasLimit: node?.limit !== undefined });
      level = node?.level;
    }
    return steps;
  }

  /** Reads `#path` and `#finds`, which `match` has just filled. */
  #createRuntimeMatch(entries: readonly Entry[], node: TreeNode): Match | undefined {
    const { limit } = node;
    if (limit === undefined) return undefined;
    const sharedValues = entries.map(({ key }, index) => {
      const rule = this.#path[index] as TreeNode;
      return rule.isShared && this.#finds[index] === found.wildcard
        ? toPattern(rule, key)
        : undefined;
    });
    const isShared = sharedValues.some((pattern) => pattern !== undefined);
    const segments = entries.map(({ key, value }, index) => {
      const pattern = sharedValues[index];
      if (pattern !== undefined) return toSegment(key, toSharedPart(pattern));
      if (node.detailedMetric) return isShared ? toSegment(key, value) : `${key}_${value}`;
      return toSegment(
        key,
        toValuePart(this.#path[index] as TreeNode, this.#finds[index], key, value),
      );
    });
    const match = {
      limit,
      metricKey: toMetricKey(this.domain, segments, this.#sanitizeMetricDots),
      metricKeyIsStatic: false,
      sharedValues: isShared ? sharedValues : undefined,
      parts: undefined,
      listedAs: undefined,
    };
    return node.list === undefined ? match : { ...match, parts: toParts(match, node.list) };
  }
}

function isExempting({ limit, level }: TreeNode): boolean {
  return limit === undefined && level === undefined;
}

/** The value's part in a metric key that is not detailed, on a level that is not shared. */
function toValuePart(node: TreeNode, find: Found | undefined, key: string, value: string): string {
  if (find === found.exact || node.valueToMetric) return value;
  return find === found.wildcard ? toPattern(node, key) : '';
}

/** The pattern for the entry's value. A star within the key leaves the value unchanged. */
function toPattern(node: TreeNode, key: string): string {
  const { composite } = node;
  const isValuePattern = composite.startsWith(key) && composite.charAt(key.length) === '_';
  return isValuePattern ? composite.slice(key.length + 1) : composite;
}

/** Each limit of the list counts separately, with its own statistics. */
function toParts(match: Match, list: readonly ListedLimit[]): readonly Match[] {
  return list.map(({ limit, segment }) => ({
    ...match,
    limit,
    metricKey: `${match.metricKey}.${segment}`,
    listedAs: segment,
  }));
}

/** Entries can be ordered in many ways: 2,000 tries are far more than authors' rules need. */
const maxTries = 2_000;

/**
 * The order of a bucket's entries: a bucket has none, rules need one (behaviour: quota-service).
 * Finds the order that leads to a rule with a limit for all entries, the first one in configuration order; if none
 * does, the order that leads to a rule without a limit and without rules below. `rules` are those of the top level in
 * configuration order.
 */
function findNesting(
  root: Level<TreeNode>,
  rules: readonly TreeNode[],
  entries: readonly Entry[],
): Nesting | undefined {
  let tries = 0;
  const found: Entry[][] = [];
  let exempting: Entry[] | undefined;

  function search(
    level: Level<TreeNode>,
    siblings: readonly TreeNode[],
    path: readonly Entry[],
    left: readonly Entry[],
  ): void {
    const fitting: { readonly entry: Entry; readonly rule: TreeNode }[] = [];
    for (const entry of left) {
      if (++tries > maxTries) return;
      const rule = level.find(entry.key, entry.value);
      if (rule !== undefined) fitting.push({ entry, rule });
    }
    if (fitting.length > 1) {
      fitting.sort((a, b) => siblings.indexOf(a.rule) - siblings.indexOf(b.rule));
    }
    for (const { entry, rule } of fitting) {
      const next = [...path, entry];
      if (left.length > 1) {
        const rest = left.filter((other) => other !== entry);
        if (rule.level !== undefined) search(rule.level, rule.children, next, rest);
      } else if (rule.limit !== undefined) found.push(next);
      else if (rule.level === undefined) exempting ??= next;
      // Only the existence of a second one matters.
      if (found.length > 1) return;
    }
  }

  search(root, rules, [], entries);
  const first = found[0] ?? exempting;
  return first && { entries: first, isAmbiguous: found.length > 1 };
}
