// How many of the rules the nodes get: groups may withhold domains from some or all of them. Pure.
import { toCountText } from '../../../shared/count-text.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { BuiltSnapshots } from './build.ts';
import { matchesAll } from './node-groups.ts';

export interface ServedCounts {
  /** Counts of the domains and limits that at least one node gets. */
  readonly domains: number;
  readonly limits: number;
  /** The first groups whose nodes get fewer domains, in the order in which nodes are matched. */
  readonly fewer: readonly GroupCounts[];
  /** The total number of such groups. */
  readonly fewerInAll: number;
}

export interface GroupCounts {
  readonly group: string;
  readonly domains: number;
  readonly limits: number;
}

const mostListed = 20;
const mostNamed = 3;
const known = new WeakMap<BuiltSnapshots, ServedCounts>();

/** Counted once per build. */
export function countServed(built: BuiltSnapshots): ServedCounts {
  const before = known.get(built);
  if (before !== undefined) return before;
  const { groups, ruleSet } = built;
  const last = groups.findIndex(({ group }) => matchesAll(group.match));
  const reached = groups.slice(0, last + 1);
  const domains = new Set<string>();
  for (const group of reached) for (const domain of group.domains) domains.add(domain);
  const countLimits = (names: Iterable<string>, count: number) => {
    if (count === ruleSet.domains.size) return ruleSet.limitCount;
    let sum = 0;
    for (const name of names) sum += ruleSet.domains.get(name)?.limitCount ?? 0;
    return sum;
  };
  const fewer = reached.filter((each) => each.domains.length < domains.size);
  const counts = {
    domains: domains.size,
    limits: countLimits(domains, domains.size),
    fewer: fewer.slice(0, mostListed).map(({ group, domains: own }) => ({
      group: group.name,
      domains: own.length,
      limits: countLimits(own, own.length),
    })),
    fewerInAll: fewer.length,
  };
  known.set(built, counts);
  return counts;
}

/** Describes which groups get fewer domains; undefined if no group does. */
export function describeFewer({
  limits,
  fewer,
  fewerInAll,
}: Omit<ServedCounts, 'domains'>): string | undefined {
  if (fewerInAll === 0) return undefined;
  const named = fewer
    .slice(0, mostNamed)
    .map(
      ({ group, limits: own }) =>
        `nodes of group '${toExcerpt(group)}' get ${own} of ${toCountText(limits, 'limit')}`,
    );
  const more = fewerInAll - named.length;
  return [
    ...named,
    ...(more > 0 ? [`nodes of ${toCountText(more, 'more group')} get fewer`] : []),
  ].join(', ');
}
