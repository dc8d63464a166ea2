// The effect of a configuration change on each node, whichever file it is made in: changed rules, and domains that
// groups of nodes get or lose although no rule changes (behaviour: what-each-node-gets). Policy, removal guard, diff
// and history read it. Pure.
import { runAtOnce } from '../../../shared/in-slices.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { type ComparedRules, comparing, type RuleChange } from '../../authoring/rule-change.ts';
import { findingClasses, type GroupDomains, type NodeClass } from './node-classes.ts';
import { matchesAny, type NodeGroup, parseNodeGroups } from './node-groups.ts';

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
      add('group_loses_domain', domain, `${who} do not get the domain any more`);
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
