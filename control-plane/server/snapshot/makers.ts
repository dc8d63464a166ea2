// Attributes the parts of a change that several authors made one after the other (behaviour: judged-by-maker).

import type { Policy } from '../../authoring/policy/policy-file.ts';
import { findingViolations } from '../../authoring/policy/violations.ts';
import type { RuleChange } from '../../authoring/rule-change.ts';
import type { RevisionInfo } from '../store/revision.ts';
import { comparingForNodes, type RulesForNodes } from './node-change.ts';

/** Rules with the policy that applies to them. */
export interface GovernedRules extends RulesForNodes {
  readonly policy: Policy;
  /** The text of its file; undefined without one. */
  readonly policyText: string | undefined;
}

/** A person who has made a change. */
export interface Maker extends Pick<RevisionInfo, 'author' | 'message'> {
  /** The revision in which the change was made; undefined for a change that is not a revision yet. */
  readonly revision?: string | undefined;
  /** The person who approved that revision by its name. */
  readonly approvedBy?: string | undefined;
}

/** One step from the revision in force to the one that is judged. */
export interface AttributedStep {
  /** Several if intermediate revisions had errors, since the changes of each are unknown. */
  readonly makers: readonly Maker[];
  /** Keys of everything that it changed; undefined if its changes cannot be distinguished from those of other steps. */
  readonly changed: ReadonlySet<string> | undefined;
}

/** The changes of one step, in steps. */
export function* findingChanged(
  before: GovernedRules,
  after: GovernedRules,
  policy: Policy,
): Generator<void, ReadonlySet<string>> {
  const changed = new Set<string>(listPolicyKeys(before, after));
  if (changed.size > 0) changed.add(policyText);
  yield* comparingForNodes(before, after, (change) => {
    for (const key of toKeys(change)) changed.add(key);
    if (isOfGroup(change)) changed.add(toGroupsKey(change));
  });
  const had = new Set<string>();
  for (const { identity } of yield* findingViolations(policy, before.documents)) had.add(identity);
  for (const { identity } of yield* findingViolations(policy, after.documents)) {
    if (!had.has(identity)) changed.add(toViolationKey(identity));
    yield;
  }
  return changed;
}

/** The makers of the last step with this change; if no step made it alone, all of them made it together. */
export class Makers {
  readonly #steps: readonly AttributedStep[];
  readonly #all: readonly Maker[];

  constructor(steps: readonly AttributedStep[]) {
    this.#steps = steps;
    this.#all = steps.flatMap(({ makers }) => makers);
  }

  ofPolicy(before: GovernedRules, after: GovernedRules): readonly Maker[] {
    return this.#ofAll(listPolicyKeys(before, after));
  }

  ofViolation(identity: string): readonly Maker[] {
    return this.#lastOf(toViolationKey(identity)) ?? this.#all;
  }

  ofChange(change: RuleChange): readonly Maker[] {
    const keys = toKeys(change);
    const isKnown = keys.some((key) => this.#lastOf(key) !== undefined);
    if (isKnown || !isOfGroup(change)) return this.#ofAll(keys);
    // Two changes of groups combined differ from each of them alone.
    const key = toGroupsKey(change);
    const touching = this.#steps.filter(({ changed }) => changed?.has(key) !== false);
    return touching.length === 0 ? this.#all : touching.flatMap(({ makers }) => makers);
  }

  #ofAll(keys: readonly string[]): readonly Maker[] {
    return [...new Set(keys.flatMap((key) => this.#lastOf(key) ?? this.#all))];
  }

  #lastOf(key: string): readonly Maker[] | undefined {
    return this.#steps.findLast(({ changed }) => changed?.has(key))?.makers;
  }
}

const policyText = 'policy';

/** Keys of the differing fields of all policies for the same domains; the key of the text if no field differs. */
function listPolicyKeys(before: GovernedRules, after: GovernedRules): readonly string[] {
  if (before.policyText === after.policyText) return [];
  const [had, has] = [listFields(before.policy), listFields(after.policy)];
  const names = new Set([...had.keys(), ...has.keys()]);
  const changed = [...names].filter((name) => had.get(name) !== has.get(name));
  return changed.length === 0 ? [policyText] : changed;
}

function listFields({ owners, policies }: Policy): ReadonlyMap<string, string> {
  const fields = new Map([['policy owners', JSON.stringify(owners) ?? '']]);
  for (const { line, domains, ...others } of policies) {
    for (const [name, value] of Object.entries({ domains, ...others })) {
      const key = `policy ${JSON.stringify(domains)} ${name}`;
      fields.set(key, `${fields.get(key) ?? ''} ${JSON.stringify(value)}`);
    }
  }
  return fields;
}

function toViolationKey(identity: string): string {
  return `violation ${identity}`;
}

function isOfGroup({ kind }: RuleChange): boolean {
  return kind.startsWith('group_');
}

function toGroupsKey({ domain }: RuleChange): string {
  return `groups ${domain}`;
}

/** How much a rule admits: the author of the last number is the maker of the entire limit. */
export const amountKinds: ReadonlySet<string> = new Set([
  ...['limit_added', 'limit_removed', 'raised', 'lowered', 'window_changed'],
  ...['blocked', 'unblocked', 'unlimited', 'no_longer_unlimited'],
]);

/** The key of one part of a change, such as a limit of a list; equal for two parts if the later one replaces the
 * earlier one. */
function toKeys(change: RuleChange): readonly string[] {
  const { windows } = change;
  return windows?.map((window) => toKey(change, window)) ?? [toKey(change, undefined)];
}

function toKey(change: RuleChange, window: number | undefined): string {
  const { domain, kind, requests, text, furtherWindow, isLasting } = change;
  const what = amountKinds.has(kind) ? 'amount' : kind.replace(/_(?:on|off)$/, '');
  return JSON.stringify([
    ...[domain, requests, what, furtherWindow ?? window, isLasting],
    isOfGroup(change) ? text : null,
  ]);
}
