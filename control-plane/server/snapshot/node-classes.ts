// The kinds of nodes that two lists of groups distinguish. Pure.
import { globContains, globsMeet, maxProduct } from './glob-sets.ts';
import { type NodeGroup, type NodeMatch, noConditions, type Pattern } from './node-groups.ts';

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
