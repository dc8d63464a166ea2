// Who has made what of a change that several people made one after the other (behaviour: judged-by-maker).

import type { Policy } from '../../authoring/policy/policy-file.ts';
import { findingViolations } from '../../authoring/policy/violations.ts';
import type { RuleChange } from '../../authoring/rule-change.ts';
import type { RevisionInfo } from '../store/revision.ts';
import { comparingForNodes, type RulesForNodes } from './node-change.ts';

/** Rules with the policy that stands beside them. */
export interface GovernedRules extends RulesForNodes {
  readonly policy: Policy;
  /** The text of its file; undefined without one. */
  readonly policyText: string | undefined;
}

/** A person who has made a change. */
export interface Maker extends Pick<RevisionInfo, 'author' | 'message'> {
  /** The revision by which it was made; undefined of one that is not made yet. */
  readonly revision?: string | undefined;
  /** The person who has approved that revision by its name. */
  readonly approvedBy?: string | undefined;
}

/** A part of the way from what is in force to what is judged. */
export interface Step {
  /** Several where revisions between had errors, and what each of them changed is not known. */
  readonly makers: readonly Maker[];
  /** Keys of all that it changed; undefined where that is not known apart from the other steps. */
  readonly changed: ReadonlySet<string> | undefined;
}

/** What one step changed, in steps. */
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

/** The last step that changed something made it; where no step did so alone, all of them did together. */
export class Makers {
  readonly #steps: readonly Step[];
  readonly #all: readonly Maker[];

  constructor(steps: readonly Step[]) {
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
    // Two changes of groups together are another one than each of them.
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

/** Of the fields that differ, of all policies for the same domains; of the text alone where none does. */
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

/** How much a rule lets pass: whoever sets the number last has set all of it. */
export const amountKinds: ReadonlySet<string> = new Set([
  ...['limit_added', 'limit_removed', 'raised', 'lowered', 'window_changed'],
  ...['blocked', 'unblocked', 'unlimited', 'no_longer_unlimited'],
]);

/** Of all parts of a change, such as limits of a list; equal for those of which the later one replaces the earlier one. */
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
