// The effect of a configuration change on each node, whichever file it is made in: changed rules, and domains that
// groups of nodes get or lose although no rule changes (behaviour: what-each-node-gets), for each kind of node that the
// groups before and after distinguish. Policy, removal guard, diff and history read it. Pure.
import { runAtOnce } from '../../../shared/in-slices.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { coversGlob } from '../../authoring/glob.ts';
import { type ComparedRules, comparing, type RuleChange } from '../../authoring/rule-change.ts';
import {
  matchesAny,
  type NodeGroup,
  type NodeMatch,
  noConditions,
  type Pattern,
  parseNodeGroups,
} from './node-groups.ts';

/** Rules, and the domains of them that each group of nodes gets: the last group matches all other nodes. */
export interface RulesForNodes extends ComparedRules {
  readonly groups: readonly GroupDomains[];
}

/** The text of the node groups file; undefined if absent, or if it is invalid. */
export function readGroupDomains(
  text: string | undefined,
  domains: readonly string[],
): readonly GroupDomains[] {
  const { groups, problems } = parseNodeGroups(text, domains);
  if (problems.some(isError)) return readGroupDomains(undefined, domains);
  return groups.map((group) => ({
    group,
    domains: domains.filter((domain) => matchesAny(group.domains, domain)),
  }));
}

/** Changes of rules first, then changes of groups. */
export function compareForNodes(before: RulesForNodes, after: RulesForNodes): RuleChange[] {
  return runAtOnce(comparingForNodes(before, after, (change) => change));
}

/** Like `compareForNodes`, in steps. `toItem`: as for `comparing`. */
export function* comparingForNodes<Item>(
  before: RulesForNodes,
  after: RulesForNodes,
  toItem: (change: RuleChange) => Item,
): Generator<void, Item[]> {
  const items = yield* comparing(before, after, toItem);
  for (const change of yield* comparingGroups(before, after)) items.push(toItem(change));
  return items;
}

/** Maximum number of changes of one domain that are named. */
const maxNamed = 20;

/** Changes of groups only, in steps. */
export function* comparingGroups(
  before: RulesForNodes,
  after: RulesForNodes,
): Generator<void, RuleChange[]> {
  const byDomain = new Map<string, Map<string, RuleChange>>();
  const add = (kind: RuleChange['kind'], domain: string, words: string) => {
    const known = byDomain.get(domain) ?? new Map<string, RuleChange>();
    byDomain.set(domain, known);
    const text = known.size < maxNamed ? words : 'nodes of more groups';
    const none = { requests: [], before: undefined, after: undefined };
    const change = { ...none, kind, domain, text, ruleBefore: undefined, ruleAfter: undefined };
    known.set(`${kind} ${text}`, change);
  };
  for (const each of yield* findingClasses(before.groups, after.groups)) {
    yield;
    const steps = [each.before, each.after].map(({ group }) => describeSteps(group));
    if (each.before.domains === each.after.domains && steps[0] === steps[1]) continue;
    const [had, has] = [new Set(each.before.domains), new Set(each.after.domains)];
    const who = describeClass(each);
    for (const domain of had) {
      yield;
      // A removed domain is a change of the rules.
      if (has.has(domain) || !after.ruleSet.domains.has(domain)) continue;
      add('group_loses_domain', domain, `${who} no longer get the domain`);
    }
    for (const domain of has) {
      yield;
      if (steps[0] !== steps[1]) {
        add('group_steps_changed', domain, `${who} have other steps: ${steps.join(' -> ')}`);
      }
      if (had.has(domain) || !before.ruleSet.domains.has(domain)) continue;
      add('group_gets_domain', domain, `${who} get the domain`);
    }
  }
  const changes: RuleChange[] = [];
  for (const domain of [...byDomain.keys()].sort()) {
    for (const change of byDomain.get(domain)?.values() ?? []) changes.push(change);
    yield;
  }
  return changes;
}

export function describeClass({ before, after }: NodeClass): string {
  const [from, to] = [before, after].map(({ group }) => `'${toExcerpt(group.name)}'`);
  return from === to ? `nodes of group ${to}` : `nodes of group ${from}, which come to ${to},`;
}

function describeSteps({ rollout }: NodeGroup): string {
  if (rollout === undefined) return 'those of all';
  if (rollout.length === 0) return 'none';
  return rollout.map(({ percent, holdMs }) => `${percent}%:${holdMs / 1000}s`).join(',');
}

export interface GroupDomains {
  readonly group: NodeGroup;
  readonly domains: readonly string[];
}

/** Nodes that are in one group before a change and in another one after it. */
export interface NodeClass {
  readonly before: GroupDomains;
  readonly after: GroupDomains;
}

/** Maximum number of pairs of characters to compare: a change can replace all groups of a file, and patterns have any
 * length and number. */
const maxCompared = 200_000_000;
/** The cost of a comparison besides its characters, in such pairs. */
const ofEach = 100;

class TooMany extends Error {}

/** Finds every kind of node. Unless two patterns are known to exclude each other, nodes that match both are assumed to
 * exist. In steps. */
export function* findingClasses(
  before: readonly GroupDomains[],
  after: readonly GroupDomains[],
): Generator<void, NodeClass[]> {
  const [was, is] = [before, after].map((groups) => groups.map(({ group }) => toKey(group.match)));
  if (was === undefined || is === undefined) return [];
  const shorter = Math.min(was.length, is.length);
  let start = 0;
  while (start < shorter && was[start] === is[start]) start++;
  let end = 0;
  while (end < shorter - start && was.at(-1 - end) === is.at(-1 - end)) end++;
  const classes: NodeClass[] = [];
  const add = (from: number, to: number) => {
    const [one, other] = [before[from], after[to]];
    if (one && other) classes.push({ before: one, after: other });
  };
  // A node that matches none of the changed groups stays in its group.
  for (let index = 0; index < start; index++) add(index, index);
  for (let index = end; index > 0; index--) add(before.length - index, after.length - index);
  const comparison = new Comparison(before, after);
  try {
    for (let from = start; from < before.length; from++) {
      for (let to = start; to < after.length; to++) {
        if (from >= before.length - end && to >= after.length - end) break;
        if (yield* comparison.haveNodes(from, to)) add(from, to);
      }
    }
  } catch (error) {
    if (!(error instanceof TooMany)) throw error;
    return toUnknown(before, after);
  }
  return classes;
}

/** Assumes that any node may lose all that it had, and get all that there is. */
function toUnknown(before: readonly GroupDomains[], after: readonly GroupDomains[]): NodeClass[] {
  const group = {
    ...{ name: '(too many to compare)', domains: [], match: noConditions },
    ...{ rollout: undefined, offset: undefined },
  };
  const all = (groups: readonly GroupDomains[]): GroupDomains => {
    const domains = new Set<string>();
    for (const each of groups) for (const domain of each.domains) domains.add(domain);
    return { group, domains: [...domains] };
  };
  const none = { group, domains: [] };
  return [
    { before: all(before), after: none },
    { before: none, after: all(after) },
  ];
}

/** The text of a condition, or the name of a metadata key with it. */
type Condition = readonly [name: string, patterns: readonly Pattern[]];
/** A kind of node: for each condition, the two patterns that its nodes match. */
type Region = ReadonlyMap<string, readonly [string, string]>;

class Comparison {
  readonly #before: readonly (readonly Condition[])[];
  readonly #after: readonly (readonly Condition[])[];
  #compared = 0;

  constructor(before: readonly GroupDomains[], after: readonly GroupDomains[]) {
    const conditions = ({ group }: GroupDomains) => toConditions(group.match);
    this.#before = before.map(conditions);
    this.#after = after.map(conditions);
  }

  /** Whether any node is in this pair of groups. */
  *haveNodes(from: number, to: number): Generator<void, boolean> {
    for (const region of this.#regions(this.#before[from] ?? [], this.#after[to] ?? [])) {
      yield;
      if (region === undefined) continue;
      const isFound =
        (yield* this.#isFound(region, this.#before, from)) ||
        (yield* this.#isFound(region, this.#after, to));
      if (!isFound) return true;
    }
    return false;
  }

  /** Each combination of patterns that a node can match; undefined for a combination that no node can match. */
  *#regions(
    one: readonly Condition[],
    other: readonly Condition[],
  ): Generator<Region | undefined, void> {
    const [some, more] = [new Map(one), new Map(other)];
    const names = [...new Set([...some.keys(), ...more.keys()])];
    const count = this;

    function* add(region: Region, index: number): Generator<Region | undefined, void> {
      const name = names[index];
      if (name === undefined) {
        yield region;
        return;
      }
      const [left = more.get(name) ?? [], right = left] = [some.get(name), more.get(name)];
      const isShared = some.has(name) && more.has(name);
      for (const a of left) {
        for (const b of isShared ? right : [a]) {
          count.#count(a.text, b.text);
          if (globsMeet(a.text, b.text)) {
            yield* add(new Map([...region, [name, [a.text, b.text]]]), index + 1);
          } else yield undefined;
        }
      }
    }

    this.#count('', '');
    yield* add(new Map(), 0);
  }

  /** Whether all of these nodes are in an earlier group. */
  *#isFound(
    region: Region,
    groups: readonly (readonly Condition[])[],
    index: number,
  ): Generator<void, boolean> {
    for (const conditions of groups.slice(0, index)) {
      yield;
      let isContained = true;
      for (const [name, patterns] of conditions) {
        isContained &&= yield* this.#isContained(region.get(name) ?? [], patterns);
      }
      if (isContained) return true;
    }
    return false;
  }

  *#isContained(
    matched: readonly string[],
    patterns: readonly Pattern[],
  ): Generator<void, boolean> {
    for (const inner of matched) {
      for (const { text } of patterns) {
        this.#count(text, inner);
        if (globContains(text, inner)) return true;
        yield;
      }
    }
    return false;
  }

  #count(one: string, other: string): void {
    this.#compared += ofEach + Math.min(one.length * other.length, maxProduct);
    if (this.#compared > maxCompared) throw new TooMany();
  }
}

function toConditions({ id, cluster, metadata }: NodeMatch): Condition[] {
  return [
    ...(id === undefined ? [] : [['id', id] as const]),
    ...(cluster === undefined ? [] : [['cluster', cluster] as const]),
    ...[...metadata].map(([name, patterns]) => [`metadata ${name}`, patterns] as const),
  ];
}

function toKey(match: NodeMatch): string {
  return JSON.stringify(
    toConditions(match).map(([name, patterns]) => [name, patterns.map(({ text }) => text)]),
  );
}

/** The largest product of two lengths for which patterns are compared. */
export const maxProduct = 100_000;

/** Whether some text may match both patterns. Takes time proportional to the product of their lengths, as `globContains`
 * does; for longer patterns both return the answer that misses no difference. */
export function globsMeet(one: string, other: string): boolean {
  if (one === other || one.length * other.length > maxProduct) return true;
  for (let at = 0; !isWild(one[at]) && !isWild(other[at]); at++) {
    if (one[at] !== other[at]) return false;
  }
  // For the pattern after the current character of `one`: whether it matches `other` from each index on.
  let next: boolean[] = new Array(other.length + 1).fill(false);
  for (let at = one.length; at >= 0; at--) {
    const now: boolean[] = new Array(other.length + 1).fill(false);
    for (let to = other.length; to >= 0; to--) {
      const [a, b] = [one[at], other[to]];
      if (a === undefined && b === undefined) now[to] = true;
      else if (a === '*') now[to] = next[to] === true || now[to + 1] === true;
      else if (b === '*') now[to] = now[to + 1] === true || next[to] === true;
      else if (a !== undefined && b !== undefined && (a === b || a === '?' || b === '?')) {
        now[to] = next[to + 1] === true;
      }
    }
    next = now;
  }
  return next[0] === true;
}

function isWild(character: string | undefined): boolean {
  return character === undefined || character === '*' || character === '?';
}

/** Whether `outer` matches every text that `inner` matches; false if that is not known. */
export function globContains(outer: string, inner: string): boolean {
  if (/^\*+$/.test(outer)) return true;
  if (outer.length * inner.length > maxProduct) return false;
  return coversGlob(outer, inner);
}
